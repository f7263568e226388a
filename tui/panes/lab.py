"""The Lab: random queries and keys, unscaled beside scaled, recomputed on every key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.timer import Timer

from ...core.attention.scales import Setting, multiplier
from ...core.errors import InputError
from ...core.lab.service import REFUSALS, Explained
from ...core.landmarks import next_width
from ...core.parameters import FIELD, Field, ParameterError, Parameters, Value
from ...core.statistics.catalogue import Statistic
from ...core.statistics.measurement import Measurement
from .. import work
from ..messages import (
    EditRejected,
    Failed,
    MeasurementReady,
    ParametersChanged,
    ParametersEdited,
    Progress,
)
from ..recompute import Recompute, Work
from ..second_process import SecondProcess
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..views.table import Contents
from ..widgets.parameter_panel import ParameterPanel, typing
from ..widgets.results import Results
from .lookahead import Lookahead, by
from .pane import SOON
from .two_parts import TwoParts

if TYPE_CHECKING:
    from ...core.export.formats import Format
    from ...core.lab.prediction import Theory


_LATER = 0.005  # seconds after a frame until this pane goes on with what may be asked for next


class Lab(TwoParts):
    """Parameters at the left, what they lead to at the right."""

    NAME = "Lab"
    WORK = ("lab", "next")
    LEFT = (22, 26)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "d_k ±1"), ("↑↓", "×2 ÷2"), ("0-9", "type it"), ("s", "scale"), ("?", "help"), ("q", "quit"),
        (">", "next pane"), ("Tab", "fields"), ("[ ]", "keys"), ("c", "law"), ("m", "mechanism"), ("f", "format"),
        ("x", "mask"), ("r", "redraw"), ("t", "theory"), ("v", "view"), ("R", "reset"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", show=False, id="lab.more"),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False, id="lab.less"),
        Binding("up,k", "double(1)", "d_k to the next power of two", show=False, id="lab.double"),
        Binding("down,j", "double(-1)", "d_k to the previous power of two", show=False, id="lab.halve"),
        Binding("pageup", "width(1)", "next width of a real model", show=False, id="lab.next_width"),
        Binding("pagedown", "width(-1)", "previous width of a real model", show=False, id="lab.previous_width"),
        Binding("right_square_bracket", "step('n_keys', 1)", "keys × 2", show=False, id="lab.more_keys"),
        Binding("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", show=False, id="lab.fewer_keys"),
        Binding("s", "step('scale', 1)", "next scale rule", show=False, id="lab.next_scale"),
        Binding("S", "step('scale', -1)", "previous scale rule", show=False, id="lab.previous_scale"),
        Binding("c", "step('components', 1)", "next component law", show=False, id="lab.next_law"),
        Binding("x", "step('mask', 1)", "next mask", show=False, id="lab.next_mask"),
        Binding("m", "step('mechanism', 1)", "next mechanism", show=False, id="lab.next_mechanism"),
        Binding("f", "step('precision', 1)", "next number format", show=False, id="lab.next_format"),
        Binding("r", "step('seed', 1)", "redraw with a new seed", show=False, id="lab.redraw"),
        Binding("R", "reset", "all parameters as they are by default", show=False, id="lab.reset"),
        Binding("t", "theory", "exact values in place of ±, where only one fits", show=False, id="lab.theory"),
        Binding("v", "view", "table and histograms, or one of them", show=False, id="lab.view"),
        *typing(words="type d_k"),
        Binding("backspace", "typed('erase')", "erase a digit", show=False),
        Binding("enter", "typed('accept')", "done with typing", show=False),
        Binding("escape", "typed('cancel')", "back to the value before typing", show=False),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs, second: SecondProcess | None = None) -> None:
        # The panel keeps the parameters, so that keys in a burst each start from the one before.
        self.panel = self.left = ParameterPanel()
        super().__init__(parameters, glyphs)
        # Apart from the keys' own thread, because its steps are long.
        self.theorist = Recompute(("theory",), lambda message: self.deliver(message))
        self.results = self.right = self.in_front = Results(glyphs)
        self._second = second
        self._work = work.Lab(second)
        self._objection = ""  # why what is being asked for cannot be; it outlives results that are still on their way
        self._ahead = Lookahead()
        self._later: Timer | None = None  # until then, nothing is done ahead
        self._quick = False  # whether the last result came soon
        self.as_left = False  # whether the parameters are still those of the last time
        self.measurement: Measurement[Parameters] | None = None
        self.theory: Theory | None = None

    @property
    def parameters(self) -> Parameters:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What is asked for."""
        return self.panel.parameters

    @parameters.setter
    def parameters(self, parameters: Parameters) -> None:
        if parameters != self.panel.parameters:
            self.panel.finish()
            self.panel.show(parameters)

    def statuses(self) -> Sequence[Line]:
        forms = super().statuses()
        if self.progress is not None or not self.as_left:
            return forms
        left: Line = ((self.glyphs.say("as you left it, R resets · "), "accent"),)
        return [*((*left, *form) for form in forms), *forms]

    @property
    def topic(self) -> Field | Statistic | None:
        return self.panel.field if self.panel.has_focus else self.results.table.statistic

    def numbers(self, kind: Format) -> str:
        from ...core.export.report import report_csv, report_json, report_markdown

        measurement, theory = self.measurement, self.theory
        if self.results.why_stale:
            raise InputError(self.results.why_stale)
        if measurement is None or not self.is_current:
            raise InputError(f"The numbers for d_k {self.parameters.d_k} are still being computed.")
        if theory is None:
            raise InputError(f"The theory for d_k {self.parameters.d_k} is still being computed.")
        if kind == "markdown":
            return report_markdown(measurement, theory.prediction, self.glyphs.say)
        return (report_json if kind == "json" else report_csv)(measurement, theory.prediction)

    def command(self) -> str:
        from ..command import command_line

        if self._objection:
            raise InputError(self._objection)
        return command_line(self.parameters)

    @property
    def file_name(self) -> str:
        return f"lab-d{self.parameters.d_k}"

    def start(self) -> None:
        found = self._second and self._second.first(self.parameters)
        if isinstance(found, Explained):
            self.results.show(_contents(*found), curve=found.theory.curve)
        elif found:
            self.results.show(Contents(found.columns, awaited=True))
        super().start()
        self.theorist.start()

    def on_mount(self) -> None:
        found = self._second and self._second.first_measurement(self.parameters)
        if found:  # histograms and theory would keep the first frame
            numbers = [replace(column, histograms={}) for column in found.columns]
            self.results.show(Contents(numbers, awaited=True))

    def on_unmount(self) -> None:
        super().on_unmount()
        self.theorist.stop()

    def shown(self) -> None:
        if self.measurement is None or self.measurement.subject != self.parameters:
            self._measure()

    def on_parameters_edited(self, message: ParametersEdited) -> None:
        message.stop()
        self._edited()

    def _edited(self) -> None:
        """Measure what the panel has now; a message about an edit may come after the next one."""
        self.as_left = False
        self._measure()
        # Straight to the app, so that the top bar says it in the same frame.
        self.app.post_message(ParametersChanged(self.parameters, self.NAME))  # pyright: ignore[reportUnknownMemberType]

    def on_edit_rejected(self, message: EditRejected) -> None:
        message.stop()
        self.object_to(f"{message.reason}." if message.reason else self._fault())

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        measurement, theory = message.measurement, message.theory
        if message.kind == "theory" and measurement is not self.measurement:
            return
        if theory is not None and self.is_current and measurement is self.measurement and theory is self.theory:
            return  # it came when it was only likely to be asked for
        ahead = self._ahead
        if theory is not None and measurement.complete:
            ahead.learn(message)
        if measurement.subject == self.parameters:
            if message.kind != "theory":  # its measurement has come before
                self._quick = ahead.waited < SOON
            if measurement.complete:
                ahead.awaited.clear()
            self._take(message)
        elif message.kind == "next":
            if measurement.subject == ahead.following(self.parameters):
                self.call_after_refresh(self._go_on_later)
        elif message.kind == "theory" or measurement.subject in ahead.awaited:
            if measurement.complete:
                ahead.awaited.discard(measurement.subject)
            self._take(message)
        elif ahead.outrun:
            self.call_after_refresh(self._rehearse)

    def _take(self, message: MeasurementReady) -> None:
        """Show this, and go on from there."""
        measurement, theory = message.measurement, message.theory
        self.show_measurement(measurement, theory)
        self.has_come()
        if theory is None:
            # After the next frame: it would take time from painting.
            self.call_after_refresh(self.theorist.request, "theory", partial(self._work.predict, measurement))
        self.say_progress(None)
        if self._ahead.outrun:
            self.call_after_refresh(self._rehearse)
        elif theory is not None and self._quick:
            self.call_after_refresh(self._go_on_later)

    @property
    def is_current(self) -> bool:
        """Whether what is shown is all of what is asked for."""
        shown = self.measurement
        return shown is not None and shown.complete and shown.subject == self.parameters

    def _go_on_later(self) -> None:
        """Read ahead when the frame is on the screen: of two processors, who writes and shows it needs one."""
        if self._later is not None:
            self._later.stop()
        self._later = self.set_timer(_LATER, self._read_ahead)

    def _read_ahead(self) -> None:
        """Have measured what two more presses of the last key lead to, and the first of it composed.

        A delay is made up for from this lead: without it, everything after a late result would be as late.
        """
        ahead, p = self._ahead, self.parameters
        following = ahead.following(p)
        if following == p or ahead.outrun:
            return
        if following in ahead.known:
            self._rehearse()
            following = ahead.following(following)
        if following not in ahead.known:
            self.recompute.request("next", partial(self._work.measure_next, following, ahead.then(following)))

    def _rehearse(self) -> None:
        """Have composed, before it is to be shown, what the last key leads to first of what is known."""
        message = self._ahead.next_known(self.parameters)
        if message is not None and message.theory is not None:
            self.results.rehearse(_contents(message.measurement, message.theory), message.theory.curve)
            self.panel.rehearse(parameters=message.measurement.subject, editing=None)

    def on_progress(self, message: Progress) -> None:
        if self.is_current:  # the progress is of what is no longer asked for
            return
        asked_for = self.measurement is not None and self.measurement.subject == self.parameters
        if not asked_for and not self._objection:
            self.show_stale(f"Computing d_k {self.parameters.d_k}.")
        self.say_progress(message.fraction)

    def on_failed(self, message: Failed) -> None:
        if self.is_current and self.theory is not None:  # all is there: what failed is no longer asked for
            return
        self.show_stale(f"{message.reason}.")
        self.has_come()
        self.say_progress(None)

    def _measure(self) -> None:
        """Ask for what the panel shows; where the scale rule has no multiplier, say so and keep the numbers."""
        p, fault = self.parameters, self._fault()
        self.object_to(fault)
        if fault:
            return
        ahead = self._ahead
        known = ahead.ask(p)
        if ahead.outrun:
            self.compute_now("lab", partial(self._aimed, p))
            self.has_come()  # what comes soon is of a later key
        elif known is None:
            # A held key goes on: its next d_k would wait as well.
            soon = self._quick and not ahead.held
            self.compute("lab", partial(self._work.measure, p, ahead.then(p)), soon)
        elif ahead.awaited:
            self.drop("lab")
        if known is not None:
            ahead.awaited.clear()
            self._take(known)

    def _aimed(self, p: Parameters) -> Work:
        """The measurement of what a held key will have got to, and of these if it stays."""
        for each in self._ahead.aims(p):
            try:
                for message in self._work.measure(each):
                    yield message
                    if self._ahead.in_vain(each):
                        break
            except REFUSALS:
                if each == p:  # of another one, who really asks for it is told
                    raise

    def _fault(self) -> str:
        """Why what the panel shows cannot be measured, if it cannot."""
        try:
            multiplier(self.parameters.scale, Setting.of(self.parameters))
        except ParameterError as error:
            return f"{error}."
        return ""

    def show_measurement(self, measurement: Measurement[Parameters], theory: Theory | None) -> None:
        """Show a measurement of all the draws that were asked for, or of the first of them, beside its theory."""
        self.measurement, self.theory = measurement, theory
        early = "" if measurement.complete else f"After {measurement.draws} of {measurement.asked} draws: "
        if theory is None:
            self.results.show(Contents(measurement.columns, awaited=True), early)
        else:
            self.results.show(_contents(measurement, theory), early, theory.curve)
        if self._objection:
            self.show_stale(self._objection)

    def object_to(self, reason: str) -> None:
        """What is asked for cannot be; with an empty reason, it can again."""
        before, self._objection = self._objection, reason
        if reason:
            self.show_stale(reason)
            self.has_come()
        elif before and self.measurement is not None:
            self.show_measurement(self.measurement, self.theory)

    def show_stale(self, reason: str) -> None:
        """What is on screen is not what is asked for, and why."""
        shown = f" The numbers shown are for d_k {self.measurement.subject.d_k}." if self.measurement else ""
        self.results.show_stale(reason + shown)

    def action_type(self, character: str) -> None:
        """Digits typed anywhere set d_k."""
        self.panel.type_into("d_k", character)

    def action_typed(self, end: Literal["erase", "accept", "cancel"]) -> None:
        """Backspace, Enter and Escape belong to what is being typed, if anything is."""
        panel = self.panel
        if panel.editing is not None:
            {"erase": panel.action_erase, "accept": panel.action_accept, "cancel": panel.action_cancel}[end]()

    def action_d_k(self, change: int) -> None:
        self._go(by(change))

    def action_double(self, direction: Literal[-1, 1]) -> None:
        self._go(lambda d_k: int(FIELD["d_k"].stepped(d_k, direction)))

    def action_width(self, direction: int) -> None:
        self._go(lambda d_k: next_width(d_k, direction))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        self._ask(name, FIELD[name].stepped(getattr(self.parameters, name), direction))

    def action_reset(self) -> None:
        self._ask_for(Parameters())

    def action_theory(self) -> None:
        self.results.table.swap()

    def action_view(self) -> None:
        """On a narrow screen the parameters are a view as well: the one with the focus."""
        if not self.one_at_a_time:
            self.results.next_view()
        elif self.in_front is self.panel:
            self.results.first_view()
            self.focus()
        elif self.results.next_view():
            self.panel.focus()

    def on_focus(self) -> None:
        self.bring(self.results)

    def _go(self, onward: Callable[[int], int]) -> None:
        """To the next d_k."""
        self._ahead.onward = onward
        self._ask("d_k", onward(self.parameters.d_k))

    def _ask(self, name: str, value: Value) -> None:
        self._ask_for(self.parameters.with_value(name, value))

    def _ask_for(self, parameters: Parameters) -> None:
        """Ask for these; at once, so that a result that is there already is painted with them."""
        self.panel.finish()
        self.panel.show(parameters)
        self._edited()


def _contents(measurement: Measurement[Parameters], theory: Theory) -> Contents:
    return Contents(measurement.columns, theory.prediction.columns, theory.deviations)
