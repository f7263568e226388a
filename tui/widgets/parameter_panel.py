"""The parameter panel: a cursor over fields, typing into them, stepping them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.message import Message

from ...core.parameters import FIELD, Field, ParameterError, Parameters, Value
from ..messages import EditRejected, ParametersEdited, StatusChanged
from ..views.lines import Line
from ..views.panel import Editing, applicable, field_rows, panel_lines
from .lines import LinesWidget

_NAMES = {".": "full_stop", "-": "minus", "+": "plus"}


def typing(others: str = "", words: str = "type a number") -> list[BindingType]:
    """Bindings for digits and these characters. As bindings they keep their order with the other keys; an `on_key`
    would overtake keys that are still on their way up to the app."""
    return [Binding(_NAMES.get(c, c), f"type('{c}')", words, show=False) for c in "0123456789" + others]


class ParameterPanel(LinesWidget, can_focus=True):
    """Shows the parameters; asks for others with ParametersEdited. With focus, one field has the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(1)", "step up", show=False),
        Binding("down", "step(-1)", "step down", show=False),
        Binding("right", "fine(1)", "+1", show=False),
        Binding("left", "fine(-1)", "-1", show=False),
        Binding("tab", "move(1)", "next field", show=False),
        Binding("shift+tab", "move(-1)", "previous field", show=False),
        Binding("enter", "accept", "accept", show=False),
        Binding("escape", "cancel", "cancel", show=False),
        Binding("backspace", "erase", "erase", show=False),
        *typing(".-+e"),
    ]

    parameters = Parameters()
    cursor = "d_k"
    editing: Editing | None = None
    _before = Parameters()  # what to go back to when typing is cancelled

    def show(self, parameters: Parameters) -> None:
        """Show these parameters; what is being typed stays."""
        self.parameters = parameters
        if self.cursor not in {field.name for field in applicable(parameters)}:
            self.cursor = "d_k"
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        focus = self.cursor if self.has_focus else None
        return panel_lines(self.parameters, width, height, self.glyphs, focus, self.editing)

    def type_into(self, name: str, character: str) -> None:
        """Type one character into a field, the first one in place of its value; every keystroke counts."""
        if self.editing is not None and self.editing.field != name:
            self.finish()
        self._try(name, (self.editing.text if self.editing else "") + character)

    def finish(self) -> None:
        """Stop typing; the last accepted value stands."""
        editing, self.editing = self.editing, None
        if editing is not None:
            if editing.objection is not None:
                self._tell(EditRejected(""))
            self.redraw()

    def action_erase(self) -> None:
        """Take back the last character; on an untouched field, start from its value."""
        if self.editing is not None:
            self._try(self.editing.field, self.editing.text[:-1])
        elif self.field.kind != "choice":
            self._try(self.cursor, self.field.format(self._value)[:-1])

    def action_accept(self) -> None:
        """Done with this field; what is not accepted stays on screen until it is mended or cancelled."""
        if self.editing is not None and self.editing.objection is None:
            self.finish()

    def action_cancel(self) -> None:
        """Back to the value before typing; when nothing is being typed, leave the panel."""
        if self.editing is not None:
            self.finish()
            self.ask_for(self._before)
        else:
            self.leave()

    def action_step(self, direction: Literal[-1, 1]) -> None:
        """Step the field with the cursor, as its row of FIELDS says."""
        self.finish()
        self.ask(self.cursor, self.field.stepped(self._value, direction))

    def action_fine(self, direction: Literal[-1, 1]) -> None:
        """Step by one where stepping doubles; otherwise as `step`."""
        if self.field.step != "double":
            self.action_step(direction)
        else:
            self.finish()
            value = int(self._value) + direction
            if self.field.low <= value <= self.field.high:
                self.ask(self.cursor, value)

    def action_move(self, direction: Literal[-1, 1]) -> None:
        """To the next field; past the last or the first one, on to the next widget."""
        self.action_accept()
        if self.editing is not None:
            return
        names = [field.name for field in applicable(self.parameters)]
        position = names.index(self.cursor) + direction
        if 0 <= position < len(names):
            self.cursor = names[position]
            self.redraw()
        elif direction > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_type(self, character: str) -> None:
        """Into the field with the cursor; digits on a choice set d_k, as they do anywhere in the Lab."""
        if character == "e" and self.editing is None:  # no number begins with it: it exports, as it does elsewhere
            raise SkipAction
        if self.field.kind != "choice":
            self.type_into(self.cursor, character)
        elif character.isdigit():
            self.type_into("d_k", character)

    def on_click(self, event: events.Click) -> None:
        rows = field_rows(self.parameters, self.size.height, self.cursor if self.has_focus else None)
        field = rows[event.y] if event.y < len(rows) else None
        if field is not None:
            self.action_accept()
            self.cursor = field.name
            self.redraw()

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return FIELD[self.cursor]

    @property
    def _value(self) -> Value:
        return getattr(self.parameters, self.cursor)

    def _try(self, name: str, text: str) -> None:
        """Take the text as it stands so far: ask for it if it is accepted, otherwise say why not."""
        if self.editing is None:
            self._before = self.parameters
        try:
            value = FIELD[name].parse(text)
        except ParameterError as error:
            self.editing = Editing(name, text, str(error))
            self._tell(EditRejected(str(error)))
        else:
            self.editing = Editing(name, text)
            self.ask(name, value)
        self.redraw()

    def ask(self, name: str, value: Value) -> None:
        """Ask for another value."""
        self.ask_for(self.parameters.with_value(name, value))

    def ask_for(self, parameters: Parameters) -> None:
        """Ask for other parameters. The next key may come before the app has answered, and starts from these."""
        self.show(parameters)
        # Straight to the app, so that the top bar says it in the same frame.
        self.app.post_message(StatusChanged())  # pyright: ignore[reportUnknownMemberType]
        self._tell(ParametersEdited())

    def _tell(self, message: Message) -> None:
        # The pane calls this widget for keys typed anywhere in it; a message that counts as the pane's own, sent
        # from below it, would not travel past it.
        self.post_message(message.set_sender(self))
