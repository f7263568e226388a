"""The Capture pane: every head of a real model on one map, and the selected one in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message

from ...core.attention.scales import SCALE_RULES
from ...core.statistics.catalogue import STATISTICS
from ...core.statistics.measurement import Estimate, Measurement
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.table import Contents
from ..widgets.head_map import HeadMapWidget
from ..widgets.results import Results

if TYPE_CHECKING:
    from ...core.captures.heads import HeadSubject
    from ...core.captures.reader import Capture

KEYS: tuple[Key, ...] = (
    ("←→", "head"), ("↑↓", "layer"), ("m", "map of"), ("s", "compare with"), ("?", "help"), ("q", "quit"),
    (">", "next pane"), ("Enter", "shape to Lab"), ("v", "view"), ("R", "read again"), ("Tab", "rows"),
)  # fmt: skip

_RULES = tuple(name for name in SCALE_RULES if name != "custom")


class CapturePane(Container, can_focus=True):
    """The map at the left; the selected head under the file's scale and under another rule at the right."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(0, 1)", "next head", show=False),
        Binding("left,h", "move(0, -1)", "previous head", show=False),
        Binding("down,j", "move(1, 0)", "next layer", show=False),
        Binding("up,k", "move(-1, 0)", "previous layer", show=False),
        Binding("m", "statistic(1)", "next statistic on the map", show=False),
        Binding("M", "statistic(-1)", "previous statistic on the map", show=False),
        Binding("s", "rule(1)", "compare with the next scale rule", show=False),
        Binding("S", "rule(-1)", "compare with the last scale rule", show=False),
        Binding("v", "view", "table and histograms, or one of them", show=False),
        Binding("R", "read_again", "read the file again", show=False),
        Binding("enter", "to_lab", "the head's shape into the Lab", show=False),
    ]

    class HeadWanted(Message):
        """The selected head, under this rule beside the file's scale."""

        def __init__(self, layer: int, head: int, rule: str) -> None:
            super().__init__()
            self.layer, self.head, self.rule = layer, head, rule

    class ReadAgain(Message):
        """The file is to be opened anew."""

    class ShapeToLab(Message):
        """The lab is to take over the selected head's shape."""

        def __init__(self, d_k: int, keys: int, queries: int) -> None:
            super().__init__()
            self.d_k, self.keys, self.queries = d_k, keys, queries

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(classes="pane")
        self.map = HeadMapWidget()
        self.results = Results(glyphs)
        self.rule = "none"

    def compose(self) -> ComposeResult:
        yield self.map
        yield self.results

    def show_capture(self, capture: Capture) -> None:
        """A file is open: its heads are asked for, the one with the cursor first."""
        self.map.capture = capture
        self.map.measured.clear()
        layer = min(self.map.cursor[0], len(capture.layers) - 1)
        self.map.cursor = (layer, min(self.map.cursor[1], capture.layers[layer].heads - 1))
        self.map.redraw()
        self._want()

    def show_head(self, measurement: Measurement[HeadSubject]) -> None:
        """The selected head, measured."""
        self.results.show(Contents(measurement.columns))

    def show_stale(self, reason: str) -> None:
        """What is on screen is not the selected head, and why."""
        self.results.show_stale(reason)

    def show_map(self, found: Sequence[tuple[tuple[int, int], Mapping[str, Estimate] | None]]) -> None:
        """More heads are measured for the map."""
        self.map.measured.update(found)
        self.map.redraw()

    def on_head_map_widget_moved(self, event: HeadMapWidget.Moved) -> None:
        event.stop()
        self._want()

    def action_move(self, down: int, right: int) -> None:
        self.map.move(down, right)

    def action_statistic(self, direction: int) -> None:
        at = STATISTICS.index(self.map.statistic) + direction
        self.map.statistic = STATISTICS[at % len(STATISTICS)]
        self.map.redraw()

    def action_rule(self, direction: int) -> None:
        self.rule = _RULES[(_RULES.index(self.rule) + direction) % len(_RULES)]
        self._want()

    def action_view(self) -> None:
        self.results.next_view()

    def action_read_again(self) -> None:
        self.post_message(self.ReadAgain())

    def action_to_lab(self) -> None:
        if self.map.capture is not None:
            layer = self.map.capture.layers[self.map.cursor[0]]
            self.post_message(self.ShapeToLab(layer.d_k, layer.keys, layer.queries))

    def _want(self) -> None:
        if self.map.capture is not None:
            self.post_message(self.HeadWanted(*self.map.cursor, self.rule))
