"""The Capture pane: a map of all heads of a real model, the heads ranked, and the selected head in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from textual.binding import BindingType

from ....core.captures.capture import Capture, HeadSubject, Meaning
from ....core.diagnosis.heads.results import AttentionRow, Matrix
from ....core.errors import InputError, ParameterError
from ....core.message import joined, message
from ....core.statistics.catalogue import Statistic
from ....core.statistics.measurement import Measurement
from ...compute.request import Failed, Progress, Request
from ...views.bars import Key, progress_status
from ...views.lines import Line
from ...views.results.table import Contents
from ..pane import Host
from .command import capture_line
from .keys import ASKING, BINDINGS, KEYS, KEYS_OF_PART
from .parts import AttentionBars, AttentionMatrix, MatrixPlace
from .requests import (
    ComparedHeads,
    CompareHeads,
    HeadStatistics,
    MeasureHead,
    MeasureHeads,
    OpenCapture,
    ReplayHead,
    ReplayTable,
    RoughHeads,
    ShowMatrix,
    ShowRow,
)
from .selecting import RankedHeads, RankedState
from .shown import ViewState
from .sides import Sides
from .widget import HeadMapWidget

if TYPE_CHECKING:
    from ....core.program.text import Dialect
    from ....core.tables.table import Format, Table


# Requests whose answers would be about the old file.
_OF_FILE = (ShowMatrix, ShowRow, ReplayHead, RoughHeads, MeasureHead, MeasureHeads)
UndoState: TypeAlias = tuple[RankedState, Sides, ViewState, MatrixPlace]


class CapturePane(RankedHeads):
    """All heads on a map and ranked; of the selected one its attention, its figures and every rule replayed."""

    NAME = "Capture"
    KEYS: ClassVar[tuple[Key, ...]] = KEYS
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    def __init__(
        self,
        host: Host,
        path: Path | None = None,
        axes: str | None = None,
        mask_true: Meaning | None = None,
        expect: str | None = None,
    ) -> None:
        super().__init__(host, OpenCapture(path, axes, mask_true, expect))
        self.sides = Sides()
        self._measured: MeasureHead | None = None  # what `measurement` answers
        self.measurement: Measurement[HeadSubject] | None = None

    def follow(self) -> None:
        if self.map.capture is None:
            self.action_read_again()
        elif not self.is_current:
            self._measure()

    @property
    def keys(self) -> Sequence[Key]:
        if self.verdict.draft is not None:
            return ASKING
        if (part := self.focused_part) is not None:
            own = KEYS_OF_PART[part]
            pressed = {press for press, _ in own}
            return (*own, *(key for key in self.KEYS if key[0] not in pressed and key[0] != "←→"))
        return (("Esc", message("back to {source}", source=self.source)), *self.KEYS) if self.source else self.KEYS

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return progress_status(self.progress, self.glyphs, pace=self.pace)
        capture = self.map.capture
        if capture is None:
            return ()
        heads = sum(layer.heads for layer in capture.layers)
        texts = [capture.model or capture.path.name, message("{heads} heads", heads=heads)]
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
        return self._replayed(kind) if self.shown == "replay" else super().numbers(kind)

    def result(self, kind: Format) -> Table[Any]:
        from ....core.tables.heads import inspect_table

        capture, measurement = self._measured_head()
        columns = measurement.columns
        apart = [*dict.fromkeys(name for column in columns for name in column.apart)]
        return inspect_table([capture], [(measurement, None)], len(columns), apart, whole=True)

    def code(self, dialect: Dialect) -> str:
        from ....core.program.captured import head_code

        return head_code(self._measured_head()[1], dialect, self.command())

    def _measured_head(self) -> tuple[Capture, Measurement[HeadSubject]]:
        """Return what is shown of the selected head; raise InputError if it is not known yet."""
        capture, measurement = self.map.capture, self.measurement
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if capture is None or measurement is None or not self._is_selected(capture, measurement):
            raise InputError("This head is still being measured.")
        return capture, measurement

    def command(self) -> str:
        capture = self.map.capture
        if capture is None:
            raise InputError("No file is open.")
        replayed = self.shown == "replay"
        baseline = None if replayed else self.baseline
        return capture_line(capture, self.map.cursor, self.file, self.sides, baseline, replayed, self.glyphs.ascii)

    @property
    def file_name(self) -> str:
        if self.map.capture is None:
            return super().file_name
        layer, head = self.map.cursor
        return f"{self.map.capture.path.stem}-layer{self.map.capture.layers[layer].index}-head{head}"

    def show_answer(self, request: Request, answer: object) -> None:
        if (request if isinstance(request, OpenCapture) else getattr(request, "file", self.file)) != self.file:
            return  # about a file that was shown before
        match answer:
            case Capture():
                self._open(answer)
            case Measurement() if isinstance(request, MeasureHead):
                self._measured = request
                self.measurement = cast("Measurement[HeadSubject]", answer)
                self._show_measured()
                self.show_progress(None)
                self.say_verdict()
            case HeadStatistics():
                self.map.learn(answer.heads, answer.explained, answer.rough)
                if self.matrix.disputed != bool(self.doubt) and self.is_current and not self.is_stale:
                    self._show_measured()
                self.rank()
                self.say_verdict()
            case Matrix():
                self.matrix.show(answer)
            case AttentionRow():
                if (answer.layer, answer.head, answer.query) == (*self.map.cursor, self.matrix.cursor[0]):
                    self.bars.show(answer, self.matrix.tokens)
                    self.set_problem("")
            case ReplayTable():
                if (answer.layer, answer.head) == self.map.cursor:
                    self.replay.show(answer)
            case ComparedHeads():
                self.learn_changes(answer)
            case Progress(fraction) if isinstance(request, MeasureHead):
                self.results.show_stale(message("Computing this head."))
                self.show_progress(fraction)
            case Progress(fraction) if isinstance(request, MeasureHeads | CompareHeads):
                self.show_progress(None if fraction == 1 else fraction)
                if fraction == 1:
                    self.to_first()
            case Failed(reason):
                self._fail(request, message("{reason}.", reason=reason))
            case _:
                pass

    def _fail(self, request: Request, reason: str) -> None:
        """Show why a request has no answer; if that is because the file or head cannot be read, instead of it."""
        if isinstance(request, MeasureHead | OpenCapture):
            self.results.show_stale(reason)
            self.show_progress(None)
            self.verdict.show(reason, role="alert")
        if isinstance(request, CompareHeads):
            self.baseline = None
            self.verdict.show(reason, role="alert")
        elif not isinstance(request, MeasureHead):
            self.set_problem(reason)

    def _show_measured(self) -> None:
        """Show the figures of the selected head, and whether they are those of the scale that was used."""
        if self.measurement is not None:
            layer = self.measurement.subject.layer
            cap = self.sides.cap(layer)
            capped = "" if cap is None else message("Both are capped at {softcap:g}.", softcap=cap)
            said = [text for text in (capped, self.doubt) if text]
            self.results.show(Contents(self.measurement.columns), joined([*said, ""], " ") if said else "")
        self.say_whose(self.sides)

    def _open(self, capture: Capture) -> None:
        """Show the file and request its heads, the one with the cursor first."""
        self.home = None if self.source else self.map.cursor
        self.map.open(capture)
        self.arrange_parts()  # the map is as wide as its heads need
        self.matrix.text = 0
        self.host.show_status()
        self._measure()
        self.rank()
        self.say_verdict()
        self.ask(RoughHeads(self.file))
        self.ask(MeasureHeads(self.file))
        if self.baseline is not None:
            self.ask(CompareHeads(self.file, self.baseline))

    @property
    def undo_state(self) -> UndoState:
        ranked = self.file, self.source, self.baseline, self.map.statistic, self.order, self.map.cursor
        return ranked, self.sides, self.view_state, self.matrix.place

    def restore_state(self, state: UndoState) -> None:
        ranked, self.sides, shown, place = state
        self.restore_ranked(*ranked)
        self.restore_view(*shown)
        self.matrix.restore(place, None if self.map.capture is None else self.map.capture.layers[self.map.cursor[0]])
        self._measured = None  # `follow` asks again for everything that is shown

    def on_head_map_widget_moved(self, event: HeadMapWidget.Moved) -> None:
        event.stop()
        self._measure()
        self.rank()

    def on_attention_matrix_moved(self, event: AttentionMatrix.Moved) -> None:
        event.stop()
        self.bars.choose(self.matrix.cursor[1])
        self._ask_attention()

    def on_attention_bars_chosen(self, event: AttentionBars.Chosen) -> None:
        event.stop()
        self.matrix.choose(self.matrix.cursor[0], event.key)

    @property
    def against(self) -> str:
        """In what A differs from B."""
        return self.sides.against

    @property
    def rule(self) -> str:
        """The scale rule of B."""
        return self.sides.b.scale

    def action_rule(self) -> None:
        """Choose B's next scale rule."""
        self._take_sides(lambda: self.sides.with_next_rule("B"))

    def action_against(self) -> None:
        """Choose A's next scale rule."""
        self._take_sides(lambda: self.sides.with_next_rule("A"))

    def action_format(self) -> None:
        """Choose B's next number format."""
        self._take_sides(self.sides.with_next_format)

    def action_options(self, which: str = "") -> None:
        """Choose the statistic of the map, or the setting of A or B, from a list of those that start with `which`."""
        from ..options import choose_option, head_rows

        capture = self.map.capture
        capped = capture is not None and capture.layers[self.map.cursor[0]].softcap is not None
        choose_option(
            self.host, self.map.choices, self.map.statistic, self.sides.chosen, self._take_option,
            head_rows(capped), which,
        )  # fmt: skip

    def _take_option(self, what: str, value: str) -> None:
        if what == "statistic":
            self.show_statistic(value)
        else:
            self._take_sides(lambda: self.sides.with_choice(what, value))

    def _take_sides(self, change: Callable[[], Sides]) -> None:
        """Change the settings of A and B, or say why that is not accepted."""
        try:
            self.sides = change()
        except ParameterError as error:
            self.host.say(message("{reason}.", reason=error))
        else:
            self._measure()

    def action_zoom(self, factor: float) -> None:
        self.matrix.zoom(factor)

    def action_text(self, direction: int) -> None:
        capture = self.map.capture
        if capture is None:
            return
        texts = capture.layers[self.map.cursor[0]].batch
        if texts == 1:
            self.host.say(message("The file has one text."))
            return
        self.matrix.text = (self.matrix.text + direction) % texts
        self._measure()

    def action_read(self, lines: int) -> None:
        self.bring("map")
        self.map.read(lines)

    def action_read_again(self) -> None:
        for kind in _OF_FILE:
            self.host.engine.withdraw(kind)
        self.ask(self.file)

    def action_to_lab(self) -> None:
        """Open the Lab with the head's shape; if that is beyond the Lab's bounds, explain it."""
        if self.map.capture is None:
            return
        layer, changed = self.map.capture.layers[self.map.cursor[0]], self.parameters
        try:
            for name, value in (("d_k", layer.d_k), ("n_keys", layer.keys), ("n_queries", layer.queries)):
                changed = changed.with_value(name, value)
        except ParameterError as error:
            self.host.say(message("The Lab cannot show this shape. {error}.", error=error))
        else:
            self.host.to_lab(changed)

    def _is_selected(self, capture: Capture, measurement: Measurement[HeadSubject]) -> bool:
        """Return whether a measurement is of the head with the cursor, under both rules."""
        same_layer = measurement.subject.layer == capture.layers[self.map.cursor[0]]
        return same_layer and self._measured == self._asked

    @property
    def _asked(self) -> MeasureHead:
        return MeasureHead(self.file, *self.map.cursor, self.against, self.rule, self.sides.b.computed)

    def _measure(self) -> None:
        """Request what is shown of the selected head."""
        capture = self.map.capture
        if capture is None:
            return
        layer, head = self.map.cursor
        self.matrix.text = min(self.matrix.text, capture.layers[layer].batch - 1)
        self.matrix.open(capture.layers[layer], head, capture.tokens_of(capture.layers[layer], self.matrix.text))
        self.bars.dim(True)
        self.replay.dim(True)
        self.say_whose(self.sides)
        self._ask_attention()
        self.ask_view()
        self.ask(self._asked)

    def _ask_attention(self) -> None:
        """Request the row with the cursor, and the part of the matrix that is shown."""
        if self.map.capture is None or self.matrix.source is None:
            return
        layer, head = self.map.cursor
        row = self.matrix.text, self.matrix.cursor[0], self.sides.b.computed
        self.ask(ShowRow(self.file, layer, head, self.against, self.rule, *row))
        shown = self.matrix.view
        if self.matrix.room.area and "matrix" in self.arranged(self.size):
            ends = shown.queries, shown.keys
            self.ask(ShowMatrix(self.file, layer, head, self.matrix.text, *ends, shown.down, shown.across))

    def ask_view(self) -> None:
        """Request the rules replayed, if they are shown."""
        if self.map.capture is not None and "replay" in self.arranged(self.size):
            self.ask(ReplayHead(self.file, *self.map.cursor))

    def _replayed(self, kind: Format) -> str:
        table = self.replay.table
        if table is None or (table.layer, table.head) != self.map.cursor:
            raise InputError("The rules are still being replayed on this head.")
        return self.glyphs.say(table.texts[kind]) if kind == "markdown" else table.texts[kind]
