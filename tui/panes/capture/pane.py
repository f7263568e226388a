"""The Capture pane: a map of all heads of a real model, the heads ranked, and the selected head in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.layout import Layout
from textual.widget import Widget

from ....core.captures.capture import CaptureContents, HeadSubject, sample_path
from ....core.diagnosis.heads.reasons import has_evidence
from ....core.diagnosis.results import AttentionCells, AttentionRow, Replay
from ....core.errors import InputError, ParameterError
from ....core.field import next_of
from ....core.message import joined, message, plain
from ....core.questions.captures.compare import CompareCaptures
from ....core.questions.captures.diagnose import DiagnoseCaptures
from ....core.questions.captures.inspect import InspectCaptures
from ....core.questions.request import Failed, Progress, Request
from ....core.statistics.catalogue import Statistic
from ....core.statistics.measurement import Measurement
from ...views.bars import Key, progress_status
from ...views.lines import Line
from ...views.results.table import TableContents
from ...widgets.placed import PLACED
from ...widgets.results import Results
from ..lists import choose_of
from ..pane import FileHead, Host, Pane
from .heads import ORDERS, Heads, find
from .heatmap import HeadMapWidget
from .matrix import AttentionMatrix, MatrixPlace
from .parts import HeadList, ReplayList, VerdictPage
from .requests import (
    ComparedHeads,
    CompareHeads,
    HeadStatistics,
    MeasureHead,
    MeasureHeads,
    OpenCapture,
    Place,
    ReplayHead,
    RoughHeads,
    ShowMatrix,
    ShowRow,
)
from .row import AttentionBars
from .sides import Sides
from .verdict_line import Question, VerdictLine
from .views import HeadViews, Part, ViewState

if TYPE_CHECKING:
    from ....core.program.text import Dialect

# Requests whose answers would be about the old file.
_OF_FILE = (ShowMatrix, ShowRow, ReplayHead, RoughHeads, MeasureHead, MeasureHeads)
_KEYS_OF_PART: Mapping[Part, tuple[Key, ...]] = {  # shown before the others while the part has the focus
    "list": (("↑↓", "head"), ("Esc", "back")),
    "matrix": (("↑↓", "query"), ("←→", "key"), ("+ -", "zoom"), ("Esc", "back")),
    "results": (("↑↓", "row"), ("Esc", "back")),
    "replay": (("↑↓", "scroll"), ("Esc", "back")),
}
_ASKING: tuple[Key, ...] = (("Enter", "accept"), ("Esc", "cancel"))  # everything else types
# File, pane that opened it, baseline, statistic, order, head.
_FileState: TypeAlias = tuple[OpenCapture, str, Path | None, Statistic, int, Place]
UndoState: TypeAlias = tuple[_FileState, Sides, ViewState, MatrixPlace]


class CapturePane(Pane):
    """All heads on a map and ranked; of the selected one its attention, its figures and every rule replayed."""

    NAME = "Capture"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "head"), ("n N", "of note"), ("a s", "scales"), ("v", "view"), ("/", "find"), ("?", "help"),
        ("q", "quit"), (">", "next tab"), ("w", "should be"), ("o", "order"), ("f", "format"), ("b", "baseline"),
        ("m", "map"), ("↑↓", "layer"), ("Tab", "list, matrix"), ("i", "list"), ("+ -", "zoom"), ("Enter", "Lab"),
        ("r", "reload"), ("PgUp PgDn", "scroll"), (", .", "text"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(0, 1)", "next head", id="capture.next_head"),
        Binding("left,h", "move(0, -1)", "previous head", id="capture.previous_head"),
        Binding("down,j", "move(1, 0)", "next layer", id="capture.next_layer"),
        Binding("up,k", "move(-1, 0)", "previous layer", id="capture.previous_layer"),
        Binding("n", "of_note(1)", "next head that is not healthy", id="capture.next_of_note"),
        Binding("N", "of_note(-1)", "previous head that is not healthy", id="capture.previous_of_note"),
        Binding("slash", "find", "find a head, a query or a token", id="capture.find"),
        Binding("b", "baseline", "compare with another capture", id="capture.baseline"),
        Binding("m", "options('statistic')", "choose the statistic on the map", id="capture.statistic"),
        Binding("M", "statistic", "next statistic on the map", id="capture.next_statistic"),
        Binding("w", "expect", "choose what the scale should be", id="capture.expect"),
        Binding("o", "choose_order", "choose the order of the list", id="capture.order"),
        Binding("O", "order", "next order of the list", id="capture.sort_next"),
        Binding("i", "options", "choose statistic, scale rules or formats from a list", id="capture.options"),
        Binding("s", "options('B')", "B: choose the scale rule", id="capture.scale"),
        Binding("S", "rule('B')", "B: next scale rule", id="capture.next_scale"),
        Binding("a", "options('A')", "A: choose the scale rule", id="capture.against"),
        Binding("A", "rule('A')", "A: next scale rule", id="capture.next_against"),
        Binding("f", "options('B precision=')", "B: choose the number format", id="capture.format"),
        Binding("F", "format", "B: next number format", id="capture.next_format"),
        Binding("v", "view", "next view: attention, statistics, rules replayed", id="capture.view"),
        Binding("plus,equals_sign", "zoom(0.5)", "zoom the matrix in", id="capture.zoom_in"),
        Binding("minus", "zoom(2)", "zoom the matrix out", id="capture.zoom_out"),
        Binding("full_stop", "text(1)", "next text of the file", id="capture.next_text"),
        Binding("comma", "text(-1)", "previous text of the file", id="capture.previous_text"),
        Binding("pagedown,space", "read(4)", "scroll down", id="capture.read_on"),
        Binding("pageup", "read(-4)", "scroll up", id="capture.read_back"),
        Binding("r", "read_again", "read the file again", id="capture.read_again"),
        Binding("escape", "back", "back to Watch, if it opened the file", id="capture.back"),
        Binding("enter", "to_lab", "open the Lab with the head's shape", id="capture.to_lab"),
    ]

    def __init__(self, host: Host, file: OpenCapture | None = None) -> None:
        """Show a file, or the sample."""
        super().__init__(host)
        self.file = OpenCapture() if file is None else file
        self.source = ""  # the pane that opened the file, which Esc goes back to
        self.home: Place | None = None  # where the cursor waits for the first head of the list
        self._to_worst = True  # whether it goes there once the file that is being opened is known
        self.sides = Sides()
        self.heads = Heads()
        self._measured: MeasureHead | None = None  # what `measurement` answers
        self.measurement: Measurement[HeadSubject] | None = None
        self.verdict = VerdictLine(self._take_answer)
        self.map = HeadMapWidget(self.heads, self._selected)
        self.page = VerdictPage(self.heads, lambda layer, head: self.map.go(layer, head))
        self.list = HeadList(lambda row: self.map.go(*self.heads.places[row]))
        self.matrix = AttentionMatrix(self._matrix_moved)
        self.bars = AttentionBars(self._choose_key)
        self.results = Results(host.glyphs)
        self.replay = ReplayList()
        self.parts: Mapping[Part, Widget] = {
            "verdict": self.verdict, "page": self.page, "map": self.map, "list": self.list, "matrix": self.matrix,
            "row": self.bars, "results": self.results, "replay": self.replay,
        }  # fmt: skip
        self.views = HeadViews(self, self.heads, self.parts, self.results, self.verdict, self._request_view)

    # Where the parts stand

    @property
    def layout(self) -> Layout:
        return PLACED

    def compose(self) -> ComposeResult:
        yield from self.parts.values()

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        return self.views.regions(size)

    def on_mount(self) -> None:
        self.views.show_parts()

    def on_resize(self) -> None:
        self.views.show_parts()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.views.focus(event.widget)

    def action_view(self) -> None:
        self.views.turn()

    @property
    def keys(self) -> Sequence[Key]:
        if self.verdict.draft is not None:
            return _ASKING
        if (part := self.views.focused) is not None:
            own = _KEYS_OF_PART[part]
            pressed = {press for press, _ in own}
            return (*own, *(key for key in self.KEYS if key[0] not in pressed and key[0] != "←→"))
        return (("Esc", message("back to {source}", source=self.source)), *self.KEYS) if self.source else self.KEYS

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return progress_status(self.progress, self.glyphs, pace=self.pace)
        capture = self.heads.capture
        if capture is None:
            return ()
        heads = sum(layer.heads for layer in capture.layers)
        texts = [capture.model or plain(capture.path.name), message("{heads} heads", heads=heads)]
        return [((self.glyphs.say(text), "text"),) for text in texts]

    @property
    def topic(self) -> Statistic | None:
        return self.results.table.statistic

    # The question and its answer

    @property
    def question(self) -> InspectCaptures | DiagnoseCaptures | CompareCaptures:
        """What is shown of the selected head; of all heads, their verdicts or how they differ from the baseline."""
        if self.views.shown == "replay":
            return self._of_head(replayed=True)
        file = self._of_file
        if self.heads.baseline is not None:
            [path], news = file["paths"], self.heads.news
            opened = () if news is None else (news.reference, *file["opened"])
            return CompareCaptures(*self.file.hints, reference=self.heads.baseline, test=path, opened=opened)
        if self.views.shown == "verdict":
            return DiagnoseCaptures(expect=self.file.expect, **file)
        return self._of_head()

    @property
    def _of_file(self) -> dict[str, Any]:
        """The file, as questions about its heads name it."""
        capture = self.heads.capture
        if capture is None:
            raise InputError("No file is open.")
        return {**self.file.hints._asdict(), "paths": (capture.path,), "opened": (capture,)}

    def _of_head(self, replayed: bool = False) -> InspectCaptures:
        """Return the question about the selected head: every rule replayed on it, or its figures."""
        file: dict[str, Any] = {**self._of_file, "only": (self.heads.layer, self.heads.cursor[1])}
        if replayed:
            return InspectCaptures(rules="all", **file)
        return InspectCaptures(setting=self.sides.b, **self.sides.options, **file)

    def answered(self) -> Any:
        """Return what is shown of the selected head, or of all; raise InputError if it is not known yet."""
        if self.views.shown == "replay":
            table = self.replay.table
            if table is None or (table.layer.position, table.head) != self.heads.cursor:
                raise InputError("The rules are still being replayed on this head.")
            return [table]
        if self.heads.baseline is not None:
            return self.heads.comparison
        if self.views.shown == "verdict":
            page = self.heads.page
            if len(page.heads) < sum(layer.heads for layer in page.layers if has_evidence(layer)):
                raise InputError("The heads are still being judged.")
            return page.heads
        return [(self._measured_head(), None)]

    def _measured_head(self) -> Measurement[HeadSubject]:
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if self.measurement is None or not self.is_current:
            raise InputError("This head is still being measured.")
        return self.measurement

    def code(self, dialect: Dialect) -> str:
        """Return the program of the selected head; with a baseline, of the head that differs first."""
        if self.heads.baseline is not None and self.views.shown != "replay":
            return super().code(dialect)
        return self._of_head().code([(self._measured_head(), None)], dialect)

    @property
    def files_read(self) -> Sequence[Path]:
        capture, baseline = self.heads.capture, self.heads.baseline
        return () if capture is None else (*capture.files, *([] if baseline is None else [baseline]))

    @property
    def is_current(self) -> bool:
        """Whether the measurement is of the head with the cursor, in both settings."""
        if self.heads.capture is None or self.measurement is None:
            return False
        return self.measurement.subject.layer == self.heads.layer and self._measured == self._wanted

    @property
    def is_stale(self) -> bool:
        return bool(self.results.why_stale)

    # Requests and answers

    def follow(self) -> None:
        if self.heads.capture is None:
            self.action_read_again()
        elif not self.is_current:
            self._measure()

    def show_item(self, item: FileHead) -> None:
        """Open a file with the cursor on a head, and compare it with a baseline."""
        self.source = item.source
        self._open(OpenCapture(item.path), item.place, item.baseline)
        self.follow()
        self.host.show_status()
        self.host.show_keys()

    def _open(self, file: OpenCapture, place: Place, baseline: Path | None) -> None:
        """Show another file; `follow` requests it."""
        self.file = file
        self.heads.capture, self.heads.cursor, self.home, self._to_worst = None, place, None, False
        self._replace_baseline(baseline)
        self.views.set_problem("")
        self.verdict.show(message("Opening {name}.", name=(file.path or sample_path()).name))

    def show_answer(self, request: Request, answer: object) -> None:
        if (request if isinstance(request, OpenCapture) else getattr(request, "file", self.file)) != self.file:
            return  # about a file that was shown before
        match answer:
            case CaptureContents():
                self._show_file(answer)
            case Measurement() if isinstance(request, MeasureHead):
                self._measured = request
                self.measurement = cast("Measurement[HeadSubject]", answer)
                self._show_measured()
                self.show_progress(None)
                self._say_verdict()
            case HeadStatistics():
                self.heads.learn(answer)
                if self.matrix.disputed != bool(self.heads.doubt) and self.is_current and not self.is_stale:
                    self._show_measured()
                    self._request_attention()
                self._show_heads()
            case AttentionCells():
                self.matrix.show(answer)
            case AttentionRow():
                if (answer.layer, answer.head, answer.query) == (*self.heads.cursor, self.matrix.cursor[0]):
                    self.bars.show(answer, self.matrix.tokens)
                    self.views.set_problem("")
            case Replay():
                if (answer.layer.position, answer.head) == self.heads.cursor:
                    self.replay.show(answer)
            case ComparedHeads() if getattr(request, "baseline", None) == self.heads.baseline:
                self.heads.learn_changes(answer)
                self.views.show_parts()
                self._show_heads()
            case Progress(fraction) if isinstance(request, MeasureHead):
                self.results.show_stale(message("Computing this head."))
                self.show_progress(fraction)
            case Progress(fraction) if isinstance(request, MeasureHeads | CompareHeads):
                self.show_progress(None if fraction == 1 else fraction)
                if fraction == 1:
                    self._to_first()
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
            self.heads.baseline = None
            self.verdict.show(reason, role="alert")
        elif not isinstance(request, MeasureHead):
            self.views.set_problem(reason)

    def _show_file(self, capture: CaptureContents) -> None:
        """Show the file and request its heads, the one with the cursor first."""
        self.home, self._to_worst = self.heads.cursor if self._to_worst else None, False
        self.heads.open(capture)
        self.views.show_parts()  # the page of the verdict where there is evidence, and the map as wide as its heads
        self.matrix.text = 0
        self.host.show_status()
        self._measure()
        self._show_heads()
        self.ask(RoughHeads(self.file))
        self.ask(MeasureHeads(self.file))
        if self.heads.baseline is not None:
            self.ask(CompareHeads(self.file, self.heads.baseline))

    def _show_heads(self) -> None:
        """Show what is known of all heads, and the verdict on the file."""
        self._rank()
        self._say_verdict()

    def _rank(self) -> None:
        """Show the map, and the list in its order."""
        self.map.redraw()
        self.page.redraw()
        if self.heads.capture is not None:
            self.list.show(self.heads.rank())

    def _say_verdict(self) -> None:
        if self.heads.capture is not None and not self.results.why_stale:
            forms, bad = self.heads.verdict()
            label = "" if self.heads.is_judged else message("NOT JUDGED")
            self.verdict.show(*forms, role="alert" if bad else "text", label=label)

    def _to_first(self) -> None:
        """Go to the first head of the list, the worst one, unless another was chosen."""
        places = self.heads.places
        if places and self.home == self.heads.cursor:
            self.map.go(*places[0])
        self.home = None

    def _show_measured(self) -> None:
        """Show the figures of the selected head, and whether they are those of the scale that was used."""
        if self.measurement is not None:
            cap = self.sides.cap(self.measurement.subject.layer)
            capped = "" if cap is None else message("Both are capped at {softcap:g}.", softcap=cap)
            said = [text for text in (capped, self.heads.doubt) if text]
            self.results.show(TableContents(self.measurement.columns), joined([*said, ""], " ") if said else "")
        self._say_whose()

    def _say_whose(self) -> None:
        """Say beside the attention whether it is as computed, which is about the file's scale, and the soft-cap."""
        self.bars.softcap = None if self.heads.capture is None else self.sides.cap(self.heads.layer)
        self.matrix.disputed = bool(self.heads.doubt)
        self.bars.disputed = self.matrix.disputed and self.sides.of_file and self._judged_sides is None

    @property
    def _wanted(self) -> MeasureHead:
        return MeasureHead(self.file, self.heads.cursor, self.sides)

    def _measure(self) -> None:
        """Request what is shown of the selected head."""
        capture = self.heads.capture
        if capture is None:
            return
        layer = self.heads.layer
        self.matrix.text = min(self.matrix.text, layer.batch - 1)
        self.matrix.open(layer, self.heads.cursor[1], capture.tokens_of(layer, self.matrix.text))
        self.bars.dim(True)
        self.replay.dim(True)
        self._say_whose()
        self._request_attention()
        self._request_view()
        self.ask(self._wanted)
        self.host.expect_answer()

    def _request_attention(self) -> None:
        """Request the row with the cursor, and the part of the matrix that is shown."""
        if self.heads.capture is None or self.matrix.source is None:
            return
        place, text = self.heads.cursor, self.matrix.text
        judged = self._judged_sides
        self.ask(ShowRow(self.file, place, judged or self.sides, text, self.matrix.cursor[0], judged is not None))
        shown = self.matrix.view
        if self.matrix.room.area and "matrix" in self.views.arranged(self.size):
            self.ask(ShowMatrix(self.file, place, text, shown.queries, shown.keys, shown.down, shown.across))

    @property
    def _judged_sides(self) -> Sides | None:
        """What q·k was multiplied by and what it should be, if only that was wrong, unless other rules are chosen."""
        products = self.heads.products if self.sides == Sides() else None
        with suppress(ParameterError):  # a number that is no multiplier here
            return products and Sides(repr(products[0]), replace(self.sides.b, scale=repr(products[1])))
        return None

    def _request_view(self) -> None:
        """Request the rules replayed, if they are shown."""
        if self.heads.capture is not None and "replay" in self.views.arranged(self.size):
            self.ask(ReplayHead(self.file, self.heads.cursor))

    # Undo

    @property
    def undo_state(self) -> UndoState:
        heads = self.heads
        state = self.file, self.source, heads.baseline, heads.statistic, heads.order, heads.cursor
        return state, self.sides, self.views.state, self.matrix.place

    def restore_state(self, state: UndoState) -> None:
        (file, self.source, baseline, statistic, order, cursor), self.sides, views, place = state
        if file != self.file:
            self._open(file, cursor, baseline)
        elif baseline != self.heads.baseline:
            self._compare_with(baseline)
        self.heads.select(*cursor)
        self.heads.statistic, self.heads.order = statistic, order
        self._show_heads()
        self.views.restore(views)
        self.matrix.restore(place, None if self.heads.capture is None else self.heads.layer)
        self._measured = None  # `follow` asks again for everything that is shown

    # Selecting a head, a query and a key

    def _selected(self) -> None:
        self.home = None  # a head was chosen
        self._measure()
        self._rank()

    def _choose_key(self, key: int) -> None:
        self.matrix.choose(self.matrix.cursor[0], key)

    def _matrix_moved(self) -> None:
        self.bars.key = self.matrix.cursor[1]
        self._request_attention()

    def action_move(self, down: int, right: int) -> None:
        layer, head = self.heads.cursor
        self.map.go(layer + down, head + right)

    def action_of_note(self, direction: int) -> None:
        """Go to the next head of the list that is not healthy."""
        place = self.heads.next_of_note(direction)
        if place is not None:
            self.map.go(*place)
        elif self.heads.compared:
            self.host.say(message("No head compared so far differs from the baseline."))
        else:
            self.host.say(message("Every head measured so far is healthy."))

    def action_find(self) -> None:
        if self.heads.capture is not None:
            self.verdict.ask("find")

    def action_expect(self) -> None:
        """Choose what is intended; every head is then judged by it."""
        if self.heads.capture is not None:
            from .choices import choose_expectation

            choose_expectation(self.host, self.heads.page.heads, self.file.expect, self._expect)

    def _expect(self, rule: str | None) -> None:
        """Judge the file by another expectation."""
        if rule != self.file.expect:
            for kind in _OF_FILE:
                self.host.engine.withdraw(kind)
            self.file = replace(self.file, expect=rule)
            self.ask(self.file)

    def action_baseline(self) -> None:
        if self.heads.capture is not None:
            self.verdict.ask("baseline", str(self.heads.baseline or ""))

    def _take_answer(self, question: Question, text: str) -> None:
        """Take the answer to a question of the verdict line."""
        if question == "baseline":
            self.verdict.close()
            self._compare_with(Path(text).expanduser() if text else None)
            return
        capture = self.heads.capture
        if capture is None or not text:
            self.verdict.close()
            return
        found = find(text, capture.layers, self.heads.layer, self.matrix.tokens[0], self.matrix.cursor[0])
        if isinstance(found, str):
            self.verdict.objection = found
            return
        self.verdict.close()
        if isinstance(found, tuple):
            self.map.go(*found)
        else:
            self.matrix.choose(found, self.matrix.cursor[1])

    def _compare_with(self, baseline: Path | None) -> None:
        """Compare with another file, or with none."""
        self._replace_baseline(baseline)
        if baseline is not None:
            self.home = self.heads.cursor
            self.ask(CompareHeads(self.file, baseline))
        self._show_heads()

    def _replace_baseline(self, baseline: Path | None) -> None:
        self.host.engine.withdraw(CompareHeads)
        self.heads.compare_with(baseline)

    # What is shown of the heads

    def action_statistic(self) -> None:
        self.show_statistic(next_of(self.heads.choices, self.heads.statistic).name)

    def show_statistic(self, name: str) -> None:
        self.heads.statistic = next(choice for choice in self.heads.choices if choice.name == name)
        self._rank()

    def action_order(self) -> None:
        """Sort the list in the next order."""
        self._show_order((self.heads.order + 1) % len(ORDERS))

    def action_choose_order(self) -> None:
        """Choose the order of the list from a list."""
        choose_of(self.host, message("order"), [*enumerate(self.heads.titles)], self.heads.order, self._show_order)

    def _show_order(self, order: int) -> None:
        self.heads.order = order
        self._rank()

    def action_rule(self, side: Literal["A", "B"]) -> None:
        """Choose the next scale rule of A or B."""
        self._take_sides(lambda: self.sides.with_next_rule(side))

    def action_format(self) -> None:
        """Choose B's next number format."""
        self._take_sides(self.sides.with_next_format)

    def action_options(self, which: str = "") -> None:
        """Choose the statistic of the map, or the setting of A or B, from a list of those that start with `which`."""
        from .choices import choose_option, head_rows

        capped = self.heads.capture is not None and self.heads.layer.softcap is not None
        choose_option(
            self.host, self.heads.choices, self.heads.statistic, self.sides.chosen, self._take_option,
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
        if self.heads.capture is None:
            return
        texts = self.heads.layer.batch
        if texts == 1:
            self.host.say(message("The file has one text."))
            return
        self.matrix.text = (self.matrix.text + direction) % texts
        self._measure()

    def action_read(self, lines: int) -> None:
        self.views.bring("map")
        self.map.read(lines)

    def action_read_again(self) -> None:
        for kind in _OF_FILE:
            self.host.engine.withdraw(kind)
        self.ask(self.file)

    def action_back(self) -> None:
        """Go back to the pane that opened the file, if one did."""
        if self.source:
            self.host.to_pane(self.source)

    def action_to_lab(self) -> None:
        """Open the Lab with the head's shape; if that is beyond the Lab's bounds, explain it."""
        if self.heads.capture is None:
            return
        layer, changed = self.heads.layer, self.parameters
        try:
            for name, value in (("d_k", layer.d_k), ("n_keys", layer.keys), ("n_queries", layer.queries)):
                changed = changed.with_value(name, value)
        except ParameterError as error:
            self.host.say(message("The Lab cannot show this shape. {error}.", error=error))
        else:
            self.host.to_lab(changed)
