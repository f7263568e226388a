"""The Capture pane: every head of a real model on one map, and the selected one in full."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from ...core.attention.scales import SCALE_RULES
from ...core.errors import InputError
from ...core.parameters import ParameterError, Parameters
from ...core.statistics.catalogue import ALWAYS, Statistic
from ...core.statistics.measurement import Measurement
from .. import work
from ..command import in_shell
from ..messages import CaptureOpened, Failed, MapPart, MeasurementReady, Progress, StatusChanged, ToLab
from ..views.bars import Key, progress_status
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..views.table import Contents
from ..widgets.head_map import HeadMapWidget
from ..widgets.results import Results
from .two_parts import TwoParts

if TYPE_CHECKING:
    from ...core.captures.heads import HeadSubject
    from ...core.captures.reader import Capture, Layer
    from ...core.export.formats import Format

_RULES = tuple(name for name in SCALE_RULES if name != "custom")


class CapturePane(TwoParts):
    """The map at the left; the selected head under the file's scale and under another rule at the right."""

    NAME = "Capture"
    WORK = ("file", "head", "map")
    LEFT = (22, 43)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "head"), ("↑↓", "layer"), ("m", "map of"), ("s", "compare with"), ("?", "help"), ("q", "quit"),
        (">", "next pane"), ("Enter", "shape to Lab"), ("v", "view"), ("R", "read again"), ("Tab", "rows"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(0, 1)", "next head", show=False, id="capture.next_head"),
        Binding("left,h", "move(0, -1)", "previous head", show=False, id="capture.previous_head"),
        Binding("down,j", "move(1, 0)", "next layer", show=False, id="capture.next_layer"),
        Binding("up,k", "move(-1, 0)", "previous layer", show=False, id="capture.previous_layer"),
        Binding("m", "statistic(1)", "next statistic on the map", show=False, id="capture.next_statistic"),
        Binding("M", "statistic(-1)", "previous statistic on the map", show=False, id="capture.previous_statistic"),
        Binding("s", "rule(1)", "compare with the next scale rule", show=False, id="capture.next_scale"),
        Binding("S", "rule(-1)", "compare with the last scale rule", show=False, id="capture.previous_scale"),
        Binding("v", "view", "table and histograms, or one of them", show=False, id="capture.view"),
        Binding("pagedown,space", "read(4)", "read on about the file", show=False, id="capture.read_on"),
        Binding("pageup", "read(-4)", "read back", show=False, id="capture.read_back"),
        Binding("R", "read_again", "read the file again", show=False, id="capture.read_again"),
        Binding("enter", "to_lab", "the head's shape into the Lab", show=False, id="capture.to_lab"),
    ]

    def __init__(
        self, parameters: Parameters, glyphs: Glyphs, path: Path | None = None, axes: str | None = None
    ) -> None:
        super().__init__(parameters, glyphs)
        self.path, self.axes = path, axes
        self.map = self.left = self.in_front = HeadMapWidget()
        self.results = self.right = Results(glyphs)
        self.rule = "none"
        self.measurement: Measurement[HeadSubject] | None = None

    def shown(self) -> None:
        if self.map.capture is None:
            self.action_read_again()

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return progress_status(self.progress, self.glyphs)
        capture = self.map.capture
        if capture is None:
            return ()
        texts = [capture.model or capture.path.name, f"{sum(layer.heads for layer in capture.layers)} heads"]
        return [((self.glyphs.say(text), "text"),) for text in texts]

    @property
    def topic(self) -> Statistic | None:
        return self.results.table.statistic

    def numbers(self, kind: Format) -> str:
        from ...core.export.inspect import head_markdown, inspect_csv, inspect_json

        capture, measurement = self.map.capture, self.measurement
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if capture is None or measurement is None or not self._is_asked_for(capture, measurement):
            raise InputError("This head is still being measured.")
        if kind == "markdown":
            return head_markdown(capture, measurement, self.glyphs.say)
        return inspect_json(capture, [measurement]) if kind == "json" else inspect_csv([measurement])

    def command(self) -> str:
        if self.map.capture is None:
            raise InputError("No file is open.")
        path, (layer, head) = str(self.map.capture.path), self.map.cursor
        path = f"./{path}" if path.startswith("-") else path  # or it would be an option
        words = [path, "--layer", _layer_word(self.map.capture.layers, layer), "--head", str(head)]
        words += ["--scale", self.rule] if self.rule != "none" else []
        words += ["--axes", self.axes] if self.axes else []
        return in_shell(["attn-tui", "inspect", *words], self.glyphs.ascii)

    @property
    def file_name(self) -> str:
        if self.map.capture is None:
            return super().file_name
        layer, head = self.map.cursor
        return f"{self.map.capture.path.stem}-layer{self.map.capture.layers[layer].index}-head{head}"

    @property
    def files_read(self) -> Sequence[Path]:
        capture = self.map.capture
        return () if capture is None else (capture.path, *(path for path, _ in capture.files))

    def on_capture_opened(self, message: CaptureOpened) -> None:
        """A file is open: its heads are asked for, the one with the cursor first."""
        capture = self.map.capture = message.capture
        self.map.measured.clear()
        layer = min(self.map.cursor[0], len(capture.layers) - 1)
        self.map.cursor = (layer, min(self.map.cursor[1], capture.layers[layer].heads - 1))
        self.map.redraw()
        self.post_message(StatusChanged())
        self._measure()
        self.compute("map", partial(work.measure_all, capture))

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        self.measurement = message.measurement
        self.results.show(Contents(message.measurement.columns))
        self.say_progress(None)

    def on_map_part(self, message: MapPart) -> None:
        self.map.measured.update(message.part)
        self.map.redraw()

    def on_progress(self, message: Progress) -> None:
        self.results.show_stale("Computing this head.")
        self.say_progress(message.fraction)

    def on_failed(self, message: Failed) -> None:
        self.results.show_stale(f"{message.reason}.")
        self.say_progress(None)

    def on_head_map_widget_moved(self, event: HeadMapWidget.Moved) -> None:
        event.stop()
        self._measure()

    def action_move(self, down: int, right: int) -> None:
        self.map.move(down, right)

    def action_statistic(self, direction: int) -> None:
        at = ALWAYS.index(self.map.statistic) + direction
        self.map.statistic = ALWAYS[at % len(ALWAYS)]
        self.map.redraw()

    def action_rule(self, direction: int) -> None:
        self.rule = _RULES[(_RULES.index(self.rule) + direction) % len(_RULES)]
        self._measure()

    def action_view(self) -> None:
        if not self.one_at_a_time:
            self.results.next_view()
        elif self.in_front is self.map:
            self.results.first_view()
            self.bring(self.results)
        elif self.results.next_view():
            self.focus()
            self.bring(self.map)

    def action_read(self, lines: int) -> None:
        self.bring(self.map)
        self.map.read(lines)

    def action_read_again(self) -> None:
        self.compute("file", partial(work.open_file, self.path, self.axes))

    def action_to_lab(self) -> None:
        """The Lab takes over the shape of the head; what is beyond its bounds is said, not bent."""
        if self.map.capture is None:
            return
        layer = self.map.capture.layers[self.map.cursor[0]]
        try:
            changed = self.parameters
            for name, value in (("d_k", layer.d_k), ("n_keys", layer.keys), ("n_queries", layer.queries)):
                changed = changed.with_value(name, value)
        except ParameterError as error:
            self.results.show_stale(f"The Lab cannot take this shape over. {error}.")
        else:
            self.post_message(ToLab(changed))

    def _is_asked_for(self, capture: Capture, measurement: Measurement[HeadSubject]) -> bool:
        layer, head = self.map.cursor
        subject = measurement.subject
        same_head = subject.layer is capture.layers[layer] and subject.head == head
        return same_head and measurement.columns[0].rule == self.rule

    def _measure(self) -> None:
        if self.map.capture is not None:
            ask = partial(work.measure_one, self.map.capture, *self.map.cursor, self.rule)
            self.compute("head", ask)


def _layer_word(layers: Sequence[Layer], position: int) -> str:
    """What --layer takes for this layer alone: its number, or its name where two have that number."""
    chosen = layers[position]
    for word in (str(chosen.index), chosen.name):
        if [layer for layer in layers if word in (str(layer.index), layer.name)] == [chosen]:
            return word
    raise InputError(f"No command tells this layer {chosen.index} from the other one of its name.")
