"""The shape of a layer with a cursor, and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from textual import events
from textual.message import Message

from ....core.attention.cost import SHAPE_FIELDS, Cost, Layer
from ....core.attention.presets import Preset
from ....core.errors import ParameterError
from ....core.parameters import Field, Value
from ...views.fields.draft import LONGEST_NUMBER
from ...views.fields.entry import entered
from ...views.lines import Line
from ...widgets.lines import LinesWidget
from ...widgets.scrolled import ScrolledLines
from .shape import shape_lines, shape_rows
from .tables import screen_lines

FOLLOWING = {"kv_heads", "d_k", "d_v"}  # fields that follow from others if they are not set


class ShapePanel(LinesWidget):
    """Shows and steps the fields of a layer; while they are stepped, the shape may be impossible."""

    TITLE = "layer"
    LEADS = True
    DEFAULT_CLASSES = "region"

    def __init__(self) -> None:
        super().__init__()
        self.cursor = SHAPE_FIELDS[0].name
        self.objection = ""
        self.text: str | None = None  # being typed into the field with the cursor
        self.refusal = ""  # why the text is not accepted
        self._before: Value | None = None  # restored if typing is cancelled, or the text refused
        self.take(Layer())

    def take(self, layer: Layer) -> None:
        """Take all values from this layer."""
        self.finish()
        self.values: dict[str, Any] = {field.name: getattr(layer, field.name) for field in fields(layer)}

    def as_layer(self) -> Layer:
        """Return the layer with these values; raises ParameterError if they are not valid together."""
        return Layer(**self.values)

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return next(field for field in SHAPE_FIELDS if field.name == self.cursor)

    @property
    def followed(self) -> dict[str, Value]:
        """The values of the fields in FOLLOWING if they are not set; without d_k if it would not be an integer."""
        d_model, heads = self.values["d_model"], self.values["heads"]
        found: dict[str, Value] = {"kv_heads": heads}
        if d_model % heads == 0:
            found["d_k"] = d_model // heads
        d_k = self.values["d_k"] or found.get("d_k")
        return found if d_k is None else found | {"d_v": d_k}

    def move(self, step: int) -> None:
        """Move the cursor, at most to the first or last field."""
        self.finish()
        names = [field.name for field in SHAPE_FIELDS]
        self.cursor = names[min(max(names.index(self.cursor) + step, 0), len(names) - 1)]

    def step(self, direction: Literal[-1, 1], fine: bool = False) -> None:
        """Step the field with the cursor as its declaration says; with `fine`, by one instead of doubling."""
        self.finish()
        field = self.field
        value: Any = self.values[field.name]
        if value is None:  # start at the value it follows, or at the integer below
            value = self.followed.get(field.name, max(self.values["d_model"] // self.values["heads"], 1))
        if fine and field.step == "double":
            value = int(min(max(value + direction, field.low), field.high))
        else:
            value = field.stepped(value, direction)
        self.values[field.name] = value

    def type(self, character: str) -> None:
        """Type a character into the field with the cursor; the first one replaces its value."""
        if self.field.kind != "choice":
            self._try((self.text or "") + character)

    def _try(self, text: str) -> None:
        """Apply the text typed so far; a refused one restores the value before typing."""
        if self.text is None:
            self._before = self.values[self.cursor]
        self.text, self.refusal = text[:LONGEST_NUMBER], ""
        try:
            self.values[self.cursor] = entered(self.field, text)
        except ParameterError as error:
            self.values[self.cursor], self.refusal = self._before, str(error)

    def finish(self) -> None:
        """Stop typing; an accepted value stays."""
        self.text, self.refusal = None, ""

    def cancel(self) -> None:
        """Restore the value before typing."""
        if self.text is not None:
            self.values[self.cursor] = self._before
            self.finish()

    def erase(self) -> None:
        """Erase a typed character; otherwise unset the field with the cursor, if it can follow from others."""
        if self.text is not None:
            self._try(self.text[:-1])
        elif self.cursor in FOLLOWING:
            self.values[self.cursor] = None

    def on_click(self, event: events.Click) -> None:
        field = self._field_at(event)
        if field is not None:
            self.finish()
            again, self.cursor = field.name == self.cursor, field.name
            self.post_message(self.Clicked(again))

    def _field_at(self, event: events.MouseEvent) -> Field | None:
        """Return the field under the mouse."""
        rows, y = shape_rows(), self.place_of(event).y
        return rows[y] if 0 <= y < len(rows) else None

    class Clicked(Message):
        """A field was clicked; `again` if it had the cursor before."""

        def __init__(self, again: bool) -> None:
            super().__init__()
            self.again = again

    class Stepped(Message):
        """The wheel stepped a field."""

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, direction: Literal[-1, 1]) -> None:
        field = self._field_at(event)
        if field is not None:
            self.finish()
            self.cursor = field.name
            self.step(direction)
            self.post_message(self.Stepped())

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return shape_lines(
            self.values, self.followed, self.cursor, self.objection, width, height, self.glyphs, self.text
        )


class CostText(ScrolledLines):
    """Shows the cost of a layer."""

    TITLE = "cost"
    DEFAULT_CLASSES = "region"

    cost: Cost | None = None
    preset: Preset | None = None

    def show(self, cost: Cost, preset: Preset | None) -> None:
        """Show this cost, of a layer that may have started from a preset; for another preset, scroll to the top."""
        if preset is not self.preset:
            self.top = 0
        self.cost, self.preset = cost, preset
        self.redraw()

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.cost is None:
            return ()
        lines = screen_lines(self.cost, width, height, self.glyphs, self.preset)
        # If space is short, blank lines are dropped: headings separate the tables too.
        return lines if len(lines) <= height else [line for line in lines if line]
