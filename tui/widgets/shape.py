"""The shape of a layer with a cursor, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

from textual import events

from ...core.attention.cost import SHAPE_FIELDS, Cost, Layer
from ...core.attention.presets import Preset
from ...core.parameters import Field, Value
from ..views.cost import cost_lines
from ..views.lines import Line
from ..views.shape import shape_lines, shape_rows
from .lines import LinesWidget
from .scrolled import ScrolledLines

FOLLOWING = {"kv_heads", "d_k"}  # fields that may be left to follow from others


class ShapePanel(LinesWidget):
    """Shows the fields of a layer, perhaps of none: its values may not go together while one steps through them."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = SHAPE_FIELDS[0].name
        self.objection = ""
        self.take(Layer())

    def take(self, layer: Layer) -> None:
        """Start again from this layer."""
        self.values: dict[str, Any] = {field.name: getattr(layer, field.name) for field in fields(layer)}

    def as_layer(self) -> Layer:
        """The layer of these values; raises ParameterError where they make none."""
        return Layer(**self.values)

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return next(field for field in SHAPE_FIELDS if field.name == self.cursor)

    @property
    def followed(self) -> dict[str, Value]:
        """What the fields that may be left open follow, where there is such a number."""
        d_model, heads = self.values["d_model"], self.values["heads"]
        found: dict[str, Value] = {"kv_heads": heads}
        if d_model % heads == 0:
            found["d_k"] = d_model // heads
        return found

    def move(self, step: int) -> None:
        """Move the cursor, as far as there are fields."""
        names = [field.name for field in SHAPE_FIELDS]
        self.cursor = names[min(max(names.index(self.cursor) + step, 0), len(names) - 1)]

    def step(self, direction: Literal[-1, 1], fine: bool = False) -> None:
        """Step the field with the cursor as its declaration says, or, where that doubles, by one."""
        field = self.field
        value: Any = self.values[field.name]
        if value is None:  # from what it follows; without that, from the whole number below
            value = self.followed.get(field.name, max(self.values["d_model"] // self.values["heads"], 1))
        if fine and field.step == "double":
            value = int(min(max(value + direction, field.low), field.high))
        else:
            value = field.stepped(value, direction)
        self.values[field.name] = value

    def let_follow(self) -> None:
        """Leave the field with the cursor to follow from the others, if it can."""
        if self.cursor in FOLLOWING:
            self.values[self.cursor] = None

    def on_click(self, event: events.Click) -> None:
        rows = shape_rows()
        field = rows[event.y] if event.y < len(rows) else None
        if field is not None:
            self.cursor = field.name
            self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return shape_lines(self.values, self.followed, self.cursor, self.objection, width, height, self.glyphs)


class CostText(ScrolledLines):
    """Shows what a layer costs."""

    cost: Cost | None = None
    preset: Preset | None = None

    def show(self, cost: Cost, preset: Preset | None) -> None:
        """Show this cost, of a layer that this preset may have begun; another preset begins at its top."""
        if preset is not self.preset:
            self.top = 0
        self.cost, self.preset = cost, preset
        self.redraw()

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.cost is None:
            return ()
        lines = cost_lines(self.cost, width, self.glyphs, self.preset)
        # Headings set the tables apart too: where room is short, figures come before empty lines.
        return lines if len(lines) <= height else [line for line in lines if line]
