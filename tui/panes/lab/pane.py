"""The Lab: random queries and keys, unscaled and scaled, recomputed on every key press."""

from __future__ import annotations

import time
from asyncio import Event, wait_for
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size

from ....core.against import fault_of_settings
from ....core.errors import InputError
from ....core.field import Field, differing
from ....core.message import counted, joined, message
from ....core.models import MODEL_WIDTHS
from ....core.parameters import FIELD, FIELDS, Parameters
from ....core.questions.lab import Measure, Report
from ....core.questions.request import Failed, Progress, Request
from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.statistics.measurement import Column
from ...compute.measure import ExactCells, PredictEntropy
from ...views.bars import Key
from ...views.fields.entry import FieldEntry
from ...views.fields.panel import value_text
from ...views.help import key_word
from ...views.lines import Line
from ...views.plots.lab_pictures import WIDTHS, Curve, curves_of
from ...views.results.lab_page import LabPage, changed_settings, shows_curve
from ...views.results.table import with_theory
from ...widgets.parameter_panel import ParameterPanel
from ...widgets.results import View
from ...widgets.typing import typing
from ..fields import TwoParts
from ..pane import Host
from ..stepping import STOP, SteppingPane, stepping_keys
from .results import LabResults, PageLines

_FIELD_KEYS: tuple[Key, ...] = (  # letters and digits type
    ("↑↓", "step"), ("←→", "±1"), ("a-z 0-9", "type"), ("Enter", "accept, list"), ("Tab", "next field"),
    ("Esc", "back"), ("?", "help"), (">", "next tab"),
)  # fmt: skip
_KEY_OF_FIELD = {
    "scale": "lab.scale", "against": "lab.against", "precision": "lab.format", "components": "lab.law",
    "mask": "lab.mask", "mechanism": "lab.mechanism", "seed": "lab.redraw", "": "lab.parameters",
}  # fmt: skip
_TABLE_KEYS: tuple[Key, ...] = (("↑↓", "row"), ("PgUp PgDn", "page"), ("Esc", "back"), ("←→", "d_k ±1"))


REST = 0.7  # seconds without a change that end a held key
PATIENCE = 1.0  # seconds that an export waits for what is not on screen


class LabPane(TwoParts, SteppingPane):
    """The parameters at the left, the results at the right."""

    NAME = "Lab"
    LEFT = (24, 30)
    SIDE_BY_SIDE = 72  # narrower screens have the fields instead of the pictures
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "d_k"), ("s", "scale"), ("v", "numbers"), ("p", "parameters"), ("↑↓", "×2"), ("Enter", "tour"),
        ("?", "help"), ("q", "quit"), (">", "next tab"), ("0-9", "type"), ("[ ]", "keys"), ("a", "against"),
        ("c", "law"), ("d", "mechanism"), ("f", "format"), ("x", "mask"), ("r", "redraw"), ("Tab", "fields"),
        ("i", "exact"), ("R", "reset"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", id="lab.more"),
        Binding("left,h", "d_k(-1)", "d_k − 1", id="lab.less"),
        Binding("up,k", "double(1)", "d_k to the next power of two", id="lab.double"),
        Binding("down,j", "double(-1)", "d_k to the previous power of two", id="lab.halve"),
        Binding("v", "view", "show all numbers, then the histograms", id="lab.view"),
        Binding("p", "parameters", "show all parameters, or the leading ones", id="lab.parameters"),
        *typing("0123456789", "type d_k"),
        Binding("enter", "enter", "accept the typed value, or open the guided tour", id="lab.tour"),
        Binding("tab", "fields", "accept the typed value, and go to the fields"),
        *stepping_keys("lab"),
        Binding("slash", "choose('scale')", "choose the scale rule from a list", id="lab.find"),
        Binding("i", "theory", "show exact values instead of ± (narrow screens)", id="lab.theory"),
        Binding("backspace", "typed('erase')", "erase a digit"),
        Binding("escape", "typed('cancel')", "cancel typing"),
        Binding("shift+tab", "fields(-1)", "accept the typed value, and go back"),
    ]

    def __init__(self, host: Host, whole: bool = False, statistics: bool = False) -> None:
        """Show the parameters beside the page if `whole`, and all `statistics` instead of the page."""
        super().__init__(host)
        self._saved = {"all_parameters": whole, "all_statistics": statistics}
        self.whole = whole  # whether the parameters are shown where there is room for both parts
        self.panel = self.left = ParameterPanel(
            host.parameters, host.change, self._typed, host.say, self.action_choose, self.action_fields
        )
        self.results = self.right = self.in_front = LabResults(host.glyphs)
        self.results.view = "table" if statistics else "both"
        self.panel.keys = self._field_keys()
        self.answer: Report | None = None  # the one on screen
        self._before: Report | None = None  # the one that was on screen before the last keys
        self._shown_at = 0.0  # when the parameters on screen changed last, in seconds
        self._is_full = Event()  # set by a full answer
        self._early = ""  # that the answer on screen is of the first draws
        self._to_explain = ""  # the statistic to explain once there is a result
        self._curves: tuple[PredictEntropy | None, tuple[Curve, ...]] = None, ()  # asked last, and known last
        self._objection = ""  # why the parameters, or the text being typed, are not accepted

    def _field_keys(self) -> Mapping[str, str]:
        """Return the keys that set a field, by its name, and the one that shows all of them as that of ""."""
        found = {binding.id: binding.key for binding in self.BINDINGS if isinstance(binding, Binding)}
        keys = {name: self.host.keymap.get(id, found[id]) for name, id in _KEY_OF_FIELD.items()}
        return {name: key_word(key.split(",")[0]) for name, key in keys.items()}

    # Where the parts stand

    def columns(self, size: Size) -> tuple[int, int]:
        if size.width < self.SIDE_BY_SIDE or self.whole or self.panel.has_focus:
            return super().columns(size)
        return 0, size.width

    # Results

    def follow(self) -> None:
        p = self.parameters
        if p != self.panel.parameters:
            self.panel.drop()
            self.panel.show(p)
        fault = self._fault()
        self._reject(fault)
        if fault:
            return
        if (lacking := self._lacking()) is not None:
            self.ask(lacking)
            self.host.expect_answer()
            self._show_page()
        if self.held:
            again = p.with_value("d_k", self.last_step(p.d_k))
            self.call_after_refresh(self.host.engine.prefetch, Measure(again, self.results.shows_all))

    def leave(self) -> None:
        """Withdraw the measurement: a long one would be finished before what another pane shows."""
        super().leave()
        self.host.engine.withdraw(Measure)
        self.show_progress(None)

    def _lacking(self) -> Measure | None:
        """Show what the view needs if it is known; otherwise return the request for it."""
        known = self.host.engine.cached(self.parameters, self.results.shows_all)
        if known is None:
            return Measure(self.parameters, self.results.shows_all)
        self.host.engine.withdraw(Measure)
        self._take(known)
        return None

    def on_lab_results_turned(self, event: LabResults.Turned) -> None:
        event.stop()
        if not (self.is_current or self._fault()) and (lacking := self._lacking()) is not None:
            self.ask(lacking)

    def show_answer(self, request: Request, answer: object) -> None:
        if isinstance(answer, ExactCells):
            if request == self._curves[0] and self.answer is not None:
                self._curves = self._curves[0], curves_of(answer.cells)
                self._show_page()
            return
        full = isinstance(answer, Report) and answer.full and answer.measurement.complete
        if self.is_current and not (full and request == Measure(self.parameters)):  # of earlier parameters
            return
        match answer:
            case Report():
                self._take(answer)
            case Progress(fraction):
                partial = self.answer is not None and self.answer.parameters == self.parameters
                if not partial and not self._objection:
                    field = self._changed_field()
                    value = value_text(field, self.parameters)
                    self._show_stale(message("Computing {label} {value}.", label=field.label, value=value))
                self.show_progress(fraction)
            case Failed(reason):
                if isinstance(request, Measure) and request.parameters == self.parameters:
                    self._show_stale(message("{reason}.", reason=reason))
                self.show_progress(None)
            case _:
                pass

    def _take(self, answer: Report) -> None:
        """Show an answer, which may cover only the first draws."""
        self._remember(answer)
        self.answer = answer
        (self._is_full.set if answer.full else self._is_full.clear)()
        measured, theory = answer.measurement, answer.theory
        self._early = ""
        if not measured.complete:
            self._early = message("After {draws} of {asked} draws: ", draws=measured.draws, asked=measured.asked)
        contents = with_theory(measured, theory, answer.full)
        self.results.show(contents, self._early, theory.curves, self._earlier(answer))
        self._show_page()
        if self._objection:
            self._show_stale(self._objection)
        if self._to_explain:
            self.call_after_refresh(self.show_statistic, self._to_explain)
        if measured.complete:
            self.show_progress(None)

    def _remember(self, answer: Report) -> None:
        """Remember what was on screen before keys changed it; those of a held key count as one."""
        if self.answer is not None and self.answer.parameters != answer.parameters:
            now = time.monotonic()
            if now - self._shown_at > REST:
                self._before = self.answer
            self._shown_at = now

    def _earlier(self, answer: Report) -> Sequence[Column]:
        """Return the columns before the last keys, unless those of this answer are the same again."""
        before = self._before
        return () if before is None or before.parameters == answer.parameters else before.measurement.columns

    def on_page_lines_resized(self, event: PageLines.Resized) -> None:
        event.stop()
        self._show_page()

    def _show_page(self) -> None:
        """Show the page of the answer on screen, or what is typed and why it is not accepted."""
        answer = self.answer
        if answer is None:
            return
        measured, editing = answer.measurement, self.panel.editing
        contents = with_theory(measured, answer.theory, answer.full)
        typed = editing.text if editing is not None and editing.field == "d_k" else None
        curves = self._entropy(answer) if shows_curve(self.results.page.size) else ()
        stale = self.results.why_stale
        page = LabPage(
            answer.parameters, contents, measured.draws, curves, self._hint(), self._early, self.parameters.d_k,
            typed, stale,
        )  # fmt: skip
        self.results.page.show(page)

    def _hint(self) -> Sequence[str]:
        """Return what the arrow does, or which settings are not the usual ones, in forms from long to short."""
        p = self.parameters
        if self.stopped and p.d_k == STOP:
            return message("a held key stops here; press again to go on"), message("press again to go on"), "→"
        if changed := changed_settings(p):
            return (changed,)
        if p.d_k in MODEL_WIDTHS and not self.held:
            return message("as in {model}", model=MODEL_WIDTHS[p.d_k]), message("hold →")
        return message("hold → to widen q and k"), message("hold →")

    def _entropy(self, answer: Report) -> tuple[Curve, ...]:
        """Return entropy over d_k, or none until it is known; the curves are the same at every d_k."""
        asked = PredictEntropy(replace(answer.parameters, d_k=Parameters.d_k), WIDTHS, (answer.parameters.n_keys,))
        if asked != self._curves[0]:
            self._curves = asked, ()
            self.ask(asked)
        return self._curves[1]

    @property
    def is_current(self) -> bool:
        shown = self.answer
        if shown is None or shown.parameters != self.parameters:
            return False
        return shown.measurement.complete and shown.full >= self.results.shows_all

    async def complete(self) -> None:
        if self.is_current and not self._is_full.is_set():
            self.ask(Measure(self.parameters))
            with suppress(TimeoutError):
                await wait_for(self._is_full.wait(), PATIENCE)

    @property
    def is_stale(self) -> bool:
        return bool(self.results.why_stale)

    def _typed(self, objection: str) -> None:
        """Show the error message for the text being typed; remove it if `objection` is empty."""
        self._reject(objection or self._fault())

    def _reject(self, reason: str) -> None:
        """Dim the last result and show the reason; with an empty reason, show it as current."""
        before, self._objection = self._objection, reason
        if reason:
            self._show_stale(reason)
        elif before and self.answer is not None:
            self._take(self.answer)

    def _show_stale(self, reason: str) -> None:
        shown = ""
        if self.answer is not None:
            field = self._changed_field()
            value = value_text(field, self.answer.parameters)
            shown = message(" The numbers shown are for {label} {value}.", label=field.label, value=value)
        self.results.show_stale(joined([reason, shown], ""))
        self._show_page()

    def _changed_field(self) -> Field:
        """Return the first field that has changed since the answer on screen; without one, d_k."""
        shown = self.answer.parameters if self.answer else self.parameters
        return FIELD[next(iter(differing(FIELDS, shown, self.parameters)), "d_k")]

    def _fault(self) -> str:
        """Return why a scale rule has no multiplier for these parameters; empty if both have one."""
        fault = fault_of_settings(self.parameters)
        return fault and message("{reason}.", reason=fault)

    # Actions

    @property
    def awaits_picture(self) -> bool:
        return not self.is_current

    def action_type(self, character: str) -> None:
        """Type a digit of d_k."""
        self.panel.type_into("d_k", character)
        self._show_page()

    def action_typed(self, end: Literal["erase", "cancel"]) -> None:
        """Erase a digit or cancel, if something is being typed."""
        panel = self.panel
        if panel.editing is not None:
            {"erase": panel.action_erase, "cancel": panel.action_cancel}[end]()
            self._show_page()

    def action_enter(self) -> None:
        """Accept what is typed; if nothing is, open the guided tour."""
        if self.panel.editing is not None:
            self.panel.leave_field()
            self._show_page()
        else:
            self.host.to_pane("Learn")

    def action_fields(self, direction: Literal[-1, 1] = 1) -> None:
        """Go to the fields, the table or the pane, whichever comes next."""
        self.panel.leave_field()
        parts = self.panel, *([self.results.table] if self.results.shown == "table" else [])
        stops = [self, *(part for part in parts if part.focusable)]
        at = next((at for at, part in enumerate(stops) if part.has_focus), 0)
        stops[(at + direction) % len(stops)].focus()

    def action_parameters(self) -> None:
        """Show the parameters beside the page, or hide them; on a narrow screen, bring them to the front, or it."""
        if self.one_at_a_time:
            front = self.results if self.in_front is self.panel else self.panel
            self.focus()
            self.bring(front)
        else:
            self._unfold(not self.whole)

    def _unfold(self, whole: bool) -> None:
        self.whole = whole
        if not whole and self.panel.has_focus:
            self.focus()
        self.panel.refresh(layout=True)  # of a part: only that makes the pane arrange its parts again

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        super().on_descendant_focus(event)
        self.panel.refresh(layout=True)

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        super().on_descendant_blur(event)
        self.panel.refresh(layout=True)

    def go_to_field(self, name: str) -> None:
        """Focus the field of a parameter."""
        self.panel.finish()
        self.panel.cursor = name
        self.bring(self.panel)
        self.panel.focus()

    def show_item(self, item: str) -> None:
        self.results.first_view()
        if item:
            self.show_statistic(item)

    def show_statistic(self, name: str) -> None:
        """Explain a statistic in the table, as soon as there is a result; if it is not measured, say so."""
        self.bring(self.results)
        waited = bool(self._to_explain and self.answer)
        self._to_explain = "" if self.answer else name
        if self.answer and not self.results.explain(STATISTIC[name]):
            self.host.say(message("{label} is not measured with these parameters.", label=STATISTIC[name].label))
        if waited:
            self.host.note_shown(self)  # the step was made when it was asked for

    @property
    def entry(self) -> FieldEntry[Parameters] | None:
        return self.panel.editing

    def end_typing(self) -> None:
        self.panel.finish()
        self._show_page()

    def action_theory(self) -> None:
        self.results.table.turn += 1

    def action_view(self) -> None:
        """Turn to the next view; on a narrow screen, the parameters are a view too."""
        if not self.one_at_a_time:
            self.results.next_view()
        elif self.in_front is self.panel:
            self.results.first_view()
            self.focus()
            self.bring(self.results)
        elif self.results.next_view():
            if self.has_focus:
                self.bring(self.panel)  # without the focus: the next `v` goes on, instead of into a field
            else:
                self.focus()

    def on_focus(self) -> None:
        self.bring(self.results)

    # Undo, keys, status, help, export

    @property
    def keys(self) -> Sequence[Key]:
        if self.panel.has_focus:
            return _FIELD_KEYS
        if self.results.table.has_focus:
            return (*_TABLE_KEYS, *self.KEYS[2:])
        return self.KEYS

    @property
    def undo_state(self) -> tuple[View, int, bool]:
        return self.results.view, self.results.table.turn, self.whole

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        now = {"all_parameters": self.whole, "all_statistics": self.results.view == "table"}
        return dict(now.items() - self._saved.items())

    def restore_state(self, state: tuple[View, int, bool]) -> None:
        view, self.results.table.turn, whole = state
        self._unfold(whole)
        self.results.turn(view)

    def statuses(self) -> Sequence[Line]:
        """Return how many keys there are: d_k, which moves, stands in large digits."""
        forms: Sequence[Line] = super().statuses()
        if self.progress is not None:
            return forms
        if self.results.shows_d_k:
            keys = counted("{number} key", "{number} keys", self.parameters.n_keys)
            alone: Line = ((self.glyphs.say(keys), "text"),)
            forms = [alone]
        if not self.host.as_left:
            return forms
        restored: Line = ((self.glyphs.say("as you left it, R resets · "), "accent"),)
        return [*((*restored, *form) for form in forms), *forms]

    @property
    def topic(self) -> Field | Statistic | None:
        return self.panel.field if self.panel.has_focus else self.results.table.statistic

    @property
    def question(self) -> Measure:
        return Measure(self.parameters)

    def answered(self) -> Report:
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if self.answer is None or not (self.is_current and self.answer.full):
            self.ask(Measure(self.parameters))
            raise InputError("The numbers for d_k {d_k} are still being computed.", d_k=self.parameters.d_k)
        return self.answer

    def command(self) -> str:
        if self._objection:
            raise InputError(self._objection)
        return super().command()
