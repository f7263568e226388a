"""The Lab: random queries and keys, unscaled beside scaled, recomputed on every key."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from ...core.landmarks import next_width
from ...core.parameters import FIELD, Parameters, Value
from ...core.statistics.measurement import Measurement
from ..messages import ParametersEdited, Theory
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.table import Contents
from ..widgets.parameter_panel import ParameterPanel
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
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(classes="pane")
        self.parameters = parameters
        self.glyphs = glyphs
        self.measurement: Measurement[Parameters] | None = None
        self.theory: Theory | None = None

    def compose(self) -> ComposeResult:
        self.panel = ParameterPanel()
        self.panel.parameters = self.parameters
        self.results = Results(self.glyphs)
        yield self.panel
        yield self.results

    def show_parameters(self, parameters: Parameters) -> None:
        """These are asked for now; their measurement is on its way."""
        self.parameters = parameters
        self.panel.show(parameters)

    def show_measurement(self, measurement: Measurement[Parameters], theory: Theory | None) -> None:
        """Show a measurement of all the draws that were asked for, or of the first of them, beside its theory."""
        self.measurement, self.theory = measurement, theory
        early = "" if measurement.complete else f"After {measurement.draws} of {measurement.asked} draws: "
        if theory is None:
            self.results.show(Contents(measurement.columns), early)
        else:
            contents = Contents(measurement.columns, theory.prediction.columns, theory.deviations)
            self.results.show(contents, early, theory.curve)

    def show_stale(self, reason: str) -> None:
        """What is on screen is not what is asked for, and why."""
        shown = f" The numbers shown are for d_k {self.measurement.subject.d_k}." if self.measurement else ""
        self.results.show_stale(reason + shown)

    def show_current(self) -> None:
        """What is on screen is what is asked for after all."""
        if self.measurement is not None:
            self.show_measurement(self.measurement, self.theory)

    def on_key(self, event: events.Key) -> None:
        """Digits typed anywhere set d_k."""
        if event.character is not None and event.character in "0123456789":
            self.panel.type_into("d_k", event.character)
        elif self.panel.editing is None:
            return
        elif event.key == "backspace":
            self.panel.action_erase()
        elif event.key == "enter":
            self.panel.action_accept()
        elif event.key == "escape":
            self.panel.action_cancel()
        else:
            return
        event.stop()

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

    def on_parameters_edited(self, message: ParametersEdited) -> None:
        """On its way to the app: the next key may come before the app has answered, and must start from here."""
        self.parameters = self.panel.parameters = message.parameters

    def _ask(self, name: str, value: Value) -> None:
        self.panel.finish()
        self.parameters = self.panel.parameters = self.parameters.with_value(name, value)
        self.post_message(ParametersEdited(self.parameters))
