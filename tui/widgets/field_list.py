"""A list of fields with a cursor, stepped and typed into by keys, and stepped by the wheel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal

from textual import events

from ...core.field import Field
from ..views.fields.entry import FieldEntry, typed
from .lines import Content, LinesWidget


class FieldList(LinesWidget):
    """Shows fields, one line each; subclasses hold their values."""

    LEADS = True
    DEFAULT_CLASSES = "region"

    cursor: Content[str] = Content("")  # the name of a field
    editing: Content[FieldEntry[Any] | None] = Content(None)  # the text being typed into the field with the cursor

    def __init__(
        self, rows: Sequence[Field | None], leave: Callable[[], object], changed: Callable[[bool], object]
    ) -> None:
        """Show these rows; `leave` stops typing, and says why a text is refused.

        `changed` is called when the mouse steps a field or clicks one, and whether that had the cursor before.
        """
        super().__init__()
        self._leave, self._changed = leave, changed
        self.rows = rows  # the field of each line; None for a blank line
        self.fields = {field.name: field for field in rows if field is not None}
        self.cursor = next(iter(self.fields))

    @property
    @abstractmethod
    def value(self) -> Any:
        """The value of the field with the cursor."""

    @value.setter
    @abstractmethod
    def value(self, value: Any) -> None: ...

    @property
    def refusal(self) -> str:
        """Why the text being typed is not accepted."""
        return (self.editing and self.editing.objection) or ""

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return self.fields[self.cursor]

    def go_to(self, name: str) -> None:
        """Put the cursor on the field with this name."""
        self.finish()
        self.cursor = name

    def move(self, step: int) -> None:
        """Move the cursor, at most to the first or last field."""
        names = [*self.fields]
        self.go_to(names[min(max(names.index(self.cursor) + step, 0), len(names) - 1)])

    def step(self, direction: Literal[-1, 1]) -> None:
        """Step the field with the cursor as its declaration says."""
        self.finish()
        self.value = self.field.stepped(self.value, direction)

    def type(self, character: str) -> None:
        """Type a character into the field with the cursor; the first one replaces its value."""
        if self.field.kind != "choice":
            self._try((self.editing.text if self.editing else "") + character)

    def erase(self) -> None:
        """Erase a typed character."""
        if self.editing is not None:
            self._try(self.editing.text[:-1])

    def finish(self) -> None:
        """Stop typing; an accepted value stays."""
        self.editing = None

    def cancel(self) -> None:
        """Restore the value before typing."""
        if self.editing is not None:
            self.value = self.editing.before
            self.finish()

    def _try(self, text: str) -> None:
        """Apply the text typed so far; a refused one restores the value before typing."""
        self.editing = typed(self.editing, self.value, self.field, text, lambda before, name, value: value)
        self.value = self.editing.value

    def on_click(self, event: events.Click) -> None:
        before = self.cursor
        if self._go_to(event):
            self._changed(self.cursor == before)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        if self._go_to(event):
            self.step(-1 if direction > 0 else 1)
            self._changed(False)

    def _go_to(self, event: events.MouseEvent) -> bool:
        """Move the cursor to the field under the mouse; return whether there is one."""
        y = self.place_of(event).y
        field = self.rows[y] if 0 <= y < len(self.rows) else None
        if field is None:
            return False
        self._leave()
        self.go_to(field.name)
        return True
