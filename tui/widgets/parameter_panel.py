"""The parameter panel: selects, steps and edits fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, Literal

from textual import events
from textual.binding import Binding, BindingType

from ...core.errors import ParameterError
from ...core.field import Field
from ...core.message import message
from ...core.parameters import FIELD, Parameters, Value
from ..views.fields.entry import CHARACTERS, FieldEntry, typed
from ..views.fields.panel import applicable, field_rows, panel_lines
from ..views.lines import Line
from .lines import Content, LinesWidget
from .typing import pasted_line, typed_character


class ParameterPanel(LinesWidget, can_focus=True):
    """Shows and edits the parameters. With focus, one field has the cursor, and letters and digits type into it.

    A click gives it the focus when it ends: with the focus other fields are shown, which would move meanwhile.
    """

    FOCUS_ON_CLICK = False
    TITLE = "parameters"
    DEFAULT_CLASSES = "region"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(1)", "step up"),
        Binding("down", "step(-1)", "step down"),
        Binding("right", "fine(1)", "+1"),
        Binding("left", "fine(-1)", "-1"),
        Binding("tab", "move(1)", "next field"),
        Binding("shift+tab", "move(-1)", "previous field"),
        Binding("enter", "enter", "accept the typed value, or choose from a list"),
        Binding("escape", "cancel", "cancel"),
        Binding("backspace", "erase", "erase"),
        Binding("ctrl+u", "clear", "erase all"),
    ]

    cursor: Content[str] = Content("d_k")
    editing: Content[FieldEntry[Parameters] | None] = Content(None)
    parameters: Content[Parameters] = Content(Parameters())
    keys: Mapping[str, str] = MappingProxyType({})  # that set a field, by its name, and the one that hides all

    def __init__(
        self,
        parameters: Parameters,
        change: Callable[[Parameters], object],
        reject: Callable[[str], object],
        say: Callable[[str], object],
        choose: Callable[[str], object],
        beyond: Callable[[Literal[-1, 1]], object],
    ) -> None:
        """Show `parameters`; `change` is called with edited ones.

        `reject` is called with the error message for the text being typed, "" if resolved, `say` with the reason why
        a step is not possible, `choose` with the name of a field whose value is to be chosen from a list, and
        `beyond` when Tab leaves the last field, or Shift+Tab the first one.
        """
        super().__init__()
        self.parameters = parameters
        self._change, self._reject, self._say, self._choose = change, reject, say, choose
        self._beyond = beyond
        self._line: int | None = None  # that of the field with the cursor, once that was clicked

    def show(self, parameters: Parameters) -> None:
        """Show these parameters; text being typed stays."""
        self.parameters = parameters
        if self.cursor not in {field.name for field in self.fields}:
            self.cursor = "d_k"

    @property
    def fields(self) -> Sequence[Field]:
        """The fields that are shown."""
        return applicable(self.parameters)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        focus, _, line = self._rows()
        return panel_lines(self.parameters, width, height, self.glyphs, focus, self.editing, self.keys, line)

    def _rows(self) -> tuple[str | None, FieldEntry[Parameters] | None, int | None]:
        """Return what the field of each line depends on, as `field_rows` takes it."""
        line = None if self._line is None else min(self._line, self.size.height - 1)
        return (self.cursor, self.editing, line) if self.has_focus else (None, self.editing, None)

    def note(self) -> Line:
        key = self.keys.get("", "")
        return ((key, "key"), (f" {self.glyphs.say('hide')}", "dim")) if key else ()

    def type_into(self, name: str, character: str) -> None:
        """Type a character into a field; the first one replaces its value. It takes effect at once, or on accept."""
        if self.editing is not None and self.editing.field != name:
            self.leave_field()
        self._line = None  # from now on, a reason why the text is refused needs room
        self._try(name, (self.editing.text if self.editing else "") + character)

    def finish(self) -> None:
        """Stop typing; an accepted value stays, or is set now; a refused one has left what stood before."""
        pending = self.editing.pending if self.editing else None
        self.drop()
        if pending is not None:
            self.ask_for(pending)

    def drop(self) -> None:
        """Stop typing, and set nothing more."""
        editing, self.editing = self.editing, None
        if editing is not None and editing.objection is not None:
            self._reject("")

    def action_erase(self) -> None:
        """Erase the last character; if nothing is typed yet, that of the field's value."""
        if self.editing is not None:
            self._try(self.editing.field, self.editing.text[:-1])
        elif self.field.kind != "choice":
            self._try(self.cursor, self.field.format(self._value)[:-1])

    def action_clear(self) -> None:
        """Erase the whole text."""
        if self.editing is not None or self.field.kind != "choice":
            self._try(self.cursor, "")

    def leave_field(self) -> None:
        """Stop typing; if the text is refused, what stood before stays, and the reason is shown."""
        refused = self.editing.objection if self.editing else None
        self.finish()
        if refused is not None:
            self._say(message("{reason}.", reason=refused))

    def action_enter(self) -> None:
        """Accept what is typed; if nothing is, show the list of the field with the cursor, if it has one."""
        if self.editing is not None:
            self.leave_field()
        elif self.field.kind in ("choice", "setting"):
            self._choose(self.cursor)

    def action_cancel(self) -> None:
        """Restore the value before typing; if nothing is typed, leave the panel."""
        editing = self.editing
        if editing is not None:
            self.drop()
            self.ask_for(editing.before)
        else:
            self.action_leave()

    def action_step(self, direction: Literal[-1, 1]) -> None:
        """Step the field with the cursor, as FIELDS declares."""
        self.leave_field()
        self.ask(self.cursor, self.parameters.stepped(self.cursor, direction))

    def action_fine(self, direction: Literal[-1, 1]) -> None:
        """Step by one if the field's step is to double; otherwise as `action_step`."""
        if self.field.step != "double":
            self.action_step(direction)
        else:
            self.leave_field()
            value = int(self._value) + direction
            if self.field.low <= value <= self.field.high:
                self.ask(self.cursor, value)

    def action_move(self, direction: Literal[-1, 1]) -> None:
        """Move to the next field; past the last or first field, to the next or previous widget."""
        self.leave_field()
        names = [field.name for field in self.fields]
        position = names.index(self.cursor) + direction
        if 0 <= position < len(names):
            self.cursor, self._line = names[position], None
        else:
            self._beyond(direction)

    def on_key(self, event: events.Key) -> None:
        """Type a character into the field with the cursor."""
        character = typed_character(event, CHARACTERS)
        if character:
            event.stop()
            self.type_into(self.cursor, character)

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        line = pasted_line(event)
        if line:
            self.type_into(self.cursor, line)

    def on_click(self, event: events.Click) -> None:
        place, field = self.place_of(event), self._field_at(event)
        if field is not None:
            self.leave_field()
            again = self.has_focus and self.cursor == field.name
            self.cursor, self._line = field.name, place.y
            self.focus()
            direction = self._arrow_at(*place) if again else None
            if direction is not None:
                self.action_fine(direction)
            elif again:
                self.action_enter()

    def _arrow_at(self, x: int, y: int) -> Literal[-1, 1] | None:
        """Return the direction of the arrow beside the value at a cell, if there is one."""
        shown = "".join(text for text, _ in self.compose_lines(*self.size)[y])
        if shown[x : x + 1] not in (self.glyphs.left, self.glyphs.right):
            return None
        return 1 if shown[x : x + 1] == self.glyphs.right else -1

    def _field_at(self, event: events.MouseEvent) -> Field | None:
        """Return the field under the mouse."""
        rows = field_rows(self.parameters, *self.size, self.glyphs, *self._rows())
        y = self.place_of(event).y
        return rows[y] if 0 <= y < len(rows) else None

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        """Step the field under the mouse."""
        field = self._field_at(event)
        if field is not None:
            self.leave_field()
            self.ask(field.name, self.parameters.stepped(field.name, -1 if direction > 0 else 1))

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return FIELD[self.cursor]

    @property
    def _value(self) -> Value:
        return getattr(self.parameters, self.cursor)

    def _try(self, name: str, text: str) -> None:
        """Apply the text typed so far, or show why it is not accepted."""
        refused = self.editing is not None and self.editing.objection is not None
        self.editing = typed(self.editing, self.parameters, FIELD[name], text, Parameters.with_value, self.glyphs.say)
        if refused:
            self._reject("")
        if self.editing.value != self.parameters:
            self.ask_for(self.editing.value)
        if self.editing.objection is not None:
            self._reject(message("{reason}.", reason=self.editing.objection))

    def ask(self, name: str, value: Value) -> None:
        """Change the value of a field, or say why it is not accepted beside the others."""
        try:
            changed = self.parameters.with_value(name, value)
        except ParameterError as error:
            self._say(message("{reason}.", reason=error))
        else:
            self.ask_for(changed)

    def ask_for(self, parameters: Parameters) -> None:
        """Change the parameters."""
        self.show(parameters)
        self._change(parameters)
