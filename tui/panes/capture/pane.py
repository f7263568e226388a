"""The Capture pane: a map of all heads of a real model, and the selected head in full."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType

from ....core.captures.capture import Capture, HeadSubject, Layer, Meaning
from ....core.errors import InputError, ParameterError
from ....core.scales import SCALE_RULES
from ....core.statistics.catalogue import ALWAYS, Statistic
from ....core.statistics.measurement import Measurement
from ...compute.request import Failed, Progress, Request
from ...views.bars import Key, progress_status
from ...views.lines import Line
from ...views.reproduce import in_shell
from ...views.table import Contents
from ...widgets.results import Results
from ..pane import Host
from ..two_parts import TwoParts
from .requests import HeadStatistics, MeasureHead, MeasureHeads, OpenCapture
from .widget import HeadMapWidget

if TYPE_CHECKING:
    from ....core.export.formats import Format

_RULES = tuple(name for name in SCALE_RULES if name != "custom")


class CapturePane(TwoParts):
    """The map at the left; the selected head under the file's scale and under another rule at the right."""

    NAME = "Capture"
    LEFT = (22, 45)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "head"), ("↑↓", "layer"), ("m", "statistic"), ("s", "compare"), ("?", "help"), ("q", "quit"),
        (">", "next pane"), ("Enter", "open in the Lab"), ("v", "view"), ("PgUp PgDn", "scroll"), ("r", "reload"),
        ("Tab", "rows"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(0, 1)", "next head", show=False, id="capture.next_head"),
        Binding("left,h", "move(0, -1)", "previous head", show=False, id="capture.previous_head"),
        Binding("down,j", "move(1, 0)", "next layer", show=False, id="capture.next_layer"),
        Binding("up,k", "move(-1, 0)", "previous layer", show=False, id="capture.previous_layer"),
        Binding("m", "statistic(1)", "next statistic on the map", show=False, id="capture.next_statistic"),
        Binding("M", "statistic(-1)", "previous statistic on the map", show=False, id="capture.previous_statistic"),
        Binding("s", "rule(1)", "compare with the next scale rule", show=False, id="capture.next_scale"),
        Binding("S", "rule(-1)", "compare with the previous scale rule", show=False, id="capture.previous_scale"),
        Binding("v", "view", "switch between table and histograms", show=False, id="capture.view"),
        Binding("pagedown,space", "read(4)", "scroll down", show=False, id="capture.read_on"),
        Binding("pageup", "read(-4)", "scroll up", show=False, id="capture.read_back"),
        Binding("r", "read_again", "read the file again", show=False, id="capture.read_again"),
        Binding("enter", "to_lab", "open the Lab with the head's shape", show=False, id="capture.to_lab"),
    ]

    def __init__(
        self, host: Host, path: Path | None = None, axes: str | None = None, mask_true: Meaning | None = None
    ) -> None:
        super().__init__(host)
        self.file = OpenCapture(path, axes, mask_true)
        self.map = self.left = self.in_front = HeadMapWidget()
        self.results = self.right = Results(host.glyphs)
        self.rule = "none"
        self.measurement: Measurement[HeadSubject] | None = None

    def follow(self) -> None:
        if self.map.capture is None:
            self.action_read_again()
        elif not self.is_current:
            self._measure()

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return progress_status(self.progress, self.glyphs)
        capture = self.map.capture
        if capture is None:
            return ()
        texts = [capture.model or capture.path.name, f"{sum(layer.heads for layer in capture.layers)} heads"]
        return [((self.glyphs.say(text), "text"),) for text in texts]

    @property
    def is_current(self) -> bool:
        capture, measurement = self.map.capture, self.measurement
        return capture is not None and measurement is not None and self._is_selected(capture, measurement)

    @property
    def is_stale(self) -> bool:
        return bool(self.results.why_stale)

    @property
    def topic(self) -> Statistic | None:
        return self.results.table.statistic

    def numbers(self, kind: Format) -> str:
        from ....core.export.inspect import head_markdown, inspect_csv, inspect_json

        capture, measurement = self.map.capture, self.measurement
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if capture is None or measurement is None or not self._is_selected(capture, measurement):
            raise InputError("This head is still being measured.")
        if kind == "markdown":
            return head_markdown(capture, measurement, self.glyphs.say)
        return inspect_json(capture, [measurement]) if kind == "json" else inspect_csv([measurement])

    def command(self) -> str:
        if self.map.capture is None:
            raise InputError("No file is open.")
        path, (layer, head) = str(self.map.capture.path), self.map.cursor
        path = f"./{path}" if path.startswith("-") else path  # it would be read as an option
        words = [path, "--layer", _layer_word(self.map.capture.layers, layer), "--head", str(head)]
        words += ["--scale", self.rule] if self.rule != "none" else []
        words += ["--axes", self.file.axes] if self.file.axes else []
        words += ["--mask-true", self.file.mask_true] if self.file.mask_true else []
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
        return () if capture is None else capture.files

    def show_answer(self, request: Request, answer: object) -> None:
        match answer:
            case Capture():
                self._open(answer)
            case Measurement():
                self.measurement = cast("Measurement[HeadSubject]", answer)
                self.results.show(Contents(self.measurement.columns))
                self.show_progress(None)
            case HeadStatistics(heads):
                self.map.measured.update(heads)
                self.map.redraw()
            case Progress(fraction) if isinstance(request, MeasureHead):
                self.results.show_stale("Computing this head.")
                self.show_progress(fraction)
            case Failed(reason):
                self.results.show_stale(f"{reason}.")
                self.show_progress(None)
            case _:
                pass

    def _open(self, capture: Capture) -> None:
        """Show the file and request its heads, the one with the cursor first."""
        self.map.capture = capture
        self.map.measured.clear()
        layer = min(self.map.cursor[0], len(capture.layers) - 1)
        self.map.cursor = (layer, min(self.map.cursor[1], capture.layers[layer].heads - 1))
        self.map.redraw()
        self.host.show_status()
        self._measure()
        self.ask(MeasureHeads(self.file))

    @property
    def kept(self) -> tuple[str, Statistic, tuple[int, int]]:
        return self.rule, self.map.statistic, self.map.cursor

    def put_back(self, kept: tuple[str, Statistic, tuple[int, int]]) -> None:
        self.rule, self.map.statistic, self.map.cursor = kept
        self.map.redraw()

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
        for kind in (MeasureHead, MeasureHeads):  # their answers would be about the old file
            self.host.engine.withdraw(kind)
        self.ask(self.file)

    def action_to_lab(self) -> None:
        """Open the Lab with the head's shape; if that is beyond the Lab's bounds, explain it."""
        if self.map.capture is None:
            return
        layer = self.map.capture.layers[self.map.cursor[0]]
        try:
            changed = self.parameters
            for name, value in (("d_k", layer.d_k), ("n_keys", layer.keys), ("n_queries", layer.queries)):
                changed = changed.with_value(name, value)
        except ParameterError as error:
            self.results.show_stale(f"The Lab cannot show this shape. {error}.")
        else:
            self.host.to_lab(changed)

    def _is_selected(self, capture: Capture, measurement: Measurement[HeadSubject]) -> bool:
        layer, head = self.map.cursor
        subject = measurement.subject
        same_head = subject.layer == capture.layers[layer] and subject.head == head
        return same_head and measurement.columns[0].rule == self.rule

    def _measure(self) -> None:
        if self.map.capture is not None:
            self.ask(MeasureHead(self.file, *self.map.cursor, self.rule))


def _layer_word(layers: Sequence[Layer], position: int) -> str:
    """Return the --layer that selects only this layer: its number, or its name if others share the number."""
    chosen = layers[position]
    for word in (str(chosen.index), chosen.name):
        if [layer for layer in layers if word in (str(layer.index), layer.name)] == [chosen]:
            return word
    raise InputError("Two layers share this name and number; no command can select just one.")
