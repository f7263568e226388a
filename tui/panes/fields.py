"""A pane with a list of fields at the left, into which keys type, and what follows from them at the right."""

from __future__ import annotations

from typing import Literal

from ...core.field import Field
from ..widgets.field_list import FieldList
from .lists import choose_in
from .two_parts import TwoParts


class FieldsPane(TwoParts):
    """A pane whose arrows go through fields and step them; subclasses show what follows from their values."""

    fields: FieldList

    def show(self) -> None:
        """Show the fields, and what follows from them."""
        raise NotImplementedError

    def follow(self) -> None:
        self.show()

    @property
    def topic(self) -> Field:
        return self.fields.field

    def go_to_field(self, name: str) -> None:
        """Put the cursor on the field with this name."""
        self.bring(self.fields)
        self.fields.go_to(name)
        self.show()

    def action_move(self, step: int) -> None:
        self.leave_field()
        self.fields.move(step)
        self.show()

    def action_step(self, direction: Literal[-1, 1]) -> None:
        self.leave_field()
        self.fields.step(direction)
        self.show()

    def changed(self, again: bool) -> None:
        """Show what the mouse changed; a second click on a field shows the list of its values."""
        self.show()
        if again:
            self._choose()

    def _choose(self) -> bool:
        """Show the list of the field with the cursor; return whether it has one."""
        has_list = self.fields.field.kind == "choice"
        if has_list:
            choose_in(self.host, self.fields, self.show)
        return has_list

    def accept(self) -> bool:
        """Accept what is typed, or show the list of the field with the cursor; return whether there was either."""
        if not self.is_typing:
            return self._choose()
        self.leave_field()
        return True

    def action_type(self, character: str) -> None:
        self.fields.type(character)
        self.show()

    def action_erase(self) -> None:
        self.fields.erase()
        self.show()

    def action_cancel(self) -> None:
        self.fields.cancel()
        self.show()

    @property
    def is_typing(self) -> bool:
        return self.fields.text is not None

    @property
    def refusal(self) -> str | None:
        return self.fields.refusal

    def end_typing(self) -> None:
        self.fields.finish()
        self.show()
