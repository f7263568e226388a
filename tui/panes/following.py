"""What panes have in common that look at the parameters of the Lab in another way."""

from __future__ import annotations

from typing import Literal

from ...core.landmarks import next_width
from ...core.parameters import FIELD, Parameters
from ..messages import ParametersChanged
from ..views.glyphs import Glyphs
from .pane import Pane


class FollowingPane(Pane):
    """A page that asks for what the parameters lead to whenever they change, by its own keys or by others.

    It does so only while it is on screen.
    """

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(parameters, glyphs)
        self._due = False  # whether it is going to show what has come

    def _ask(self) -> None:
        """Ask for what these parameters lead to, as far as it is not known."""
        raise NotImplementedError

    def _show(self) -> None:
        """Show what is known."""
        raise NotImplementedError

    def follow(self, parameters: Parameters) -> None:
        super().follow(parameters)
        self._ask()

    def shown(self) -> None:
        self._ask()

    def on_show(self) -> None:
        self._ask()

    def _show_soon(self) -> None:
        """After what else has come meanwhile."""
        if not self._due:
            self._due = True
            self.call_later(self._show_now)

    def _show_now(self) -> None:
        self._due = False
        self._show()

    # What people do

    def action_d_k(self, change: int) -> None:
        d_k = self.parameters.d_k + change
        if FIELD["d_k"].low <= d_k <= FIELD["d_k"].high:
            self._change(self.parameters.with_value("d_k", d_k))

    def action_width(self, direction: int) -> None:
        self._change(self.parameters.with_value("d_k", next_width(self.parameters.d_k, direction)))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        value = FIELD[name].stepped(getattr(self.parameters, name), direction)
        self._change(self.parameters.with_value(name, value))

    def _change(self, parameters: Parameters) -> None:
        """Go on with these. The next key may come before anybody has answered, and starts from here."""
        if parameters != self.parameters:
            self.parameters = parameters
            self._ask()
            self.post_message(ParametersChanged(parameters, self.NAME))
