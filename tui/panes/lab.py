"""The Lab: random queries and keys, unscaled beside scaled, recomputed on every key."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from ...core.landmarks import next_width
from ...core.parameters import FIELD, Parameters, Value
from ...core.statistics.measurement import Measurement
from ..messages import Theory
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.table import Contents
from ..widgets.parameter_panel import ParameterPanel, typing
from ..widgets.results import Results

KEYS: tuple[Key, ...] = (
    ("←→", "d_k ±1"), ("↑↓", "×2 ÷2"), ("0-9", "type it"), ("s", "scale"), ("?", "help"), ("q", "quit"),
    (">", "next pane"), ("Tab", "fields"), ("[ ]", "keys"), ("c", "law"), ("x", "mask"), ("r", "redraw"),
    ("t", "theory"), ("v", "view"),
)  # fmt: skip


class Lab(Container, can_focus=True):
    """Parameters at the left, what they lead to at the right."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", show=False),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False),
        Binding("up,k", "step('d_k', 1)", "d_k to the next power of two", show=False),
        Binding("down,j", "step('d_k', -1)", "d_k to the previous power of two", show=False),
        Binding("pageup", "width(1)", "next width of a real model", show=False),
        Binding("pagedown", "width(-1)", "previous width of a real model", show=False),
        Binding("right_square_bracket", "step('n_keys', 1)", "keys × 2", show=False),
        Binding("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", show=False),
        Binding("s", "step('scale', 1)", "next scale rule", show=False),
        Binding("S", "step('scale', -1)", "previous scale rule", show=False),
        Binding("c", "step('components', 1)", "next component law", show=False),
        Binding("x", "step('mask', 1)", "next mask", show=False),
        Binding("r", "step('seed', 1)", "redraw with a new seed", show=False),
        Binding("t", "theory", "exact values in place of ±, where there is no room for both", show=False),
        Binding("v", "view", "table and histograms, or one of them", show=False),
        *typing(),
        Binding("backspace", "typed('erase')", "erase a digit", show=False),
        Binding("enter", "typed('accept')", "done with typing", show=False),
        Binding("escape", "typed('cancel')", "back to the value before typing", show=False),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(classes="pane")
        self.panel = ParameterPanel()
        self.panel.parameters = parameters
        self.results = Results(glyphs)
        self._objection = ""  # why what is being asked for cannot be; it outlives results that are still on their way
        self.measurement: Measurement[Parameters] | None = None
        self.theory: Theory | None = None

    def compose(self) -> ComposeResult:
        yield self.panel
        yield self.results

    @property
    def parameters(self) -> Parameters:
        """What is asked for; the panel keeps it, so that keys in a burst each start from the one before."""
        return self.panel.parameters

    def show_measurement(self, measurement: Measurement[Parameters], theory: Theory | None) -> None:
        """Show a measurement of all the draws that were asked for, or of the first of them, beside its theory."""
        self.measurement, self.theory = measurement, theory
        early = "" if measurement.complete else f"After {measurement.draws} of {measurement.asked} draws: "
        if theory is None:
            self.results.show(Contents(measurement.columns), early)
        else:
            contents = Contents(measurement.columns, theory.prediction.columns, theory.deviations)
            self.results.show(contents, early, theory.curve)
        if self._objection:
            self.show_stale(self._objection)

    def object_to(self, reason: str) -> None:
        """What is asked for cannot be; with an empty reason, it can again."""
        before, self._objection = self._objection, reason
        if reason:
            self.show_stale(reason)
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
        d_k = self.parameters.d_k + change
        if FIELD["d_k"].low <= d_k <= FIELD["d_k"].high:
            self._ask("d_k", d_k)

    def action_width(self, direction: int) -> None:
        self._ask("d_k", next_width(self.parameters.d_k, direction))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        self._ask(name, FIELD[name].stepped(getattr(self.parameters, name), direction))

    def action_theory(self) -> None:
        self.results.table.swap()

    def action_view(self) -> None:
        self.results.next_view()

    def _ask(self, name: str, value: Value) -> None:
        self.panel.finish()
        self.panel.ask(name, value)
