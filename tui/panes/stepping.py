"""The actions of panes whose keys step the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ...core.errors import ParameterError
from ...core.model_widths import next_width
from ...core.parameters import FIELD, Parameters, Value
from .pane import Pane


def by(change: int) -> Callable[[int], int]:
    """Return a step of d_k by `change`, staying within bounds."""
    return lambda d_k: int(min(max(d_k + change, FIELD["d_k"].low), FIELD["d_k"].high))


class SteppingPane(Pane):
    """A pane whose keys step d_k and other parameters."""

    def action_d_k(self, change: int) -> None:
        """Step d_k by `change`, staying within bounds."""
        self.step_d_k(by(change))

    def action_double(self, direction: Literal[-1, 1]) -> None:
        """Step d_k to the next power of two."""
        self.step_d_k(lambda d_k: int(FIELD["d_k"].stepped(d_k, direction)))

    def action_width(self, direction: int) -> None:
        """Step d_k to the next width that a real model uses."""
        self.step_d_k(lambda d_k: next_width(d_k, direction))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        """Step a parameter as its field declares."""
        self.set_value(name, FIELD[name].stepped(getattr(self.parameters, name), direction))

    def step_d_k(self, step: Callable[[int], int]) -> None:
        """Apply a step to d_k."""
        self.set_value("d_k", step(self.parameters.d_k))

    def set_value(self, name: str, value: Value) -> None:
        """Replace the value of a parameter, or say why it is not accepted beside the others."""
        try:
            changed = self.parameters.with_value(name, value)
        except ParameterError as error:
            self.host.say(f"{error}.")
        else:
            self.set_parameters(changed)

    def set_parameters(self, parameters: Parameters) -> None:
        """Replace the parameters."""
        self.host.change(parameters)
