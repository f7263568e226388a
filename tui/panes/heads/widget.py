"""The shape of a layer with a cursor, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from ....core.attention.cost import SHAPE_FIELDS, Cost, LayerShape
from ....core.attention.formats import FORMATS
from ....core.attention.presets import Preset
from ....core.field import Field
from ....core.message import message
from ....core.parameters import Value
from ....core.tables.cost import cost_blocks, variants
from ...language.cells import cells
from ...views.fields.panel import field_list_lines
from ...views.glyphs import Glyphs
from ...views.grid import block_lines
from ...views.lines import Line, Role
from ...widgets.field_list import FieldList
from ...widgets.lines import Content, ScrolledLines

_USE = next(at for at, field in enumerate(SHAPE_FIELDS) if field.group == "use")
ROWS: Sequence[Field | None] = (*SHAPE_FIELDS[:_USE], None, *SHAPE_FIELDS[_USE:])  # None: a blank line


def shape_lines(
    values: dict[str, Value | None],
    followed: dict[str, Value],
    cursor: str,
    objection: str,
    width: int,
    height: int,
    glyphs: Glyphs,
    typed: str | None = None,
) -> list[Line]:
    """Return exactly `height` lines of `width`; a field whose value is None shows the one in `followed`, if any."""
    longest = max(cells(glyphs.say(each.word)) for each in FORMATS.values())
    rows: list[tuple[Field | None, str, Role]] = []
    for row in ROWS:
        if row is None:
            rows.append((None, "", "text"))
            continue
        value = values[row.name]
        shown = followed.get(row.name) if value is None else value
        text = "—" if shown is None else row.format(shown)
        field = row
        if row.name == "cache_format":
            text = FORMATS[str(shown)].word
            if cells(glyphs.say(row.label)) + 1 + longest > width:
                field = replace(row, label=row.symbol)
        rows.append((field, glyphs.say(text), "dim" if value is None else "text"))
    return field_list_lines(rows, cursor, typed, objection, (), width, height, glyphs)


FOLLOWING = {"kv_heads", "d_k", "d_v"}  # fields that follow from others if they are not set


class ShapePanel(FieldList):
    """Shows and steps the fields of a layer; while they are stepped, the shape may be impossible."""

    TITLE = message("layer")

    objection: Content[str] = Content("")

    def __init__(self, leave: Callable[[], object], changed: Callable[[bool], object]) -> None:
        super().__init__(ROWS, leave, changed)
        self.take(LayerShape())

    def take(self, layer: LayerShape) -> None:
        """Take all values from this layer."""
        self.finish()
        self.values: dict[str, Any] = {field.name: getattr(layer, field.name) for field in fields(layer)}

    @property
    def value(self) -> Any:
        return self.values[self.cursor]

    @value.setter
    def value(self, value: Any) -> None:
        self.values[self.cursor] = value

    def as_layer(self) -> LayerShape:
        """Return the layer with these values; raises ParameterError if they are not valid together."""
        return LayerShape(**self.values)

    @property
    def followed(self) -> dict[str, Value]:
        """The values of the fields in FOLLOWING if they are not set; without d_k if it would not be an integer."""
        d_model, heads = self.values["d_model"], self.values["heads"]
        found: dict[str, Value] = {"kv_heads": heads}
        if d_model % heads == 0:
            found["d_k"] = d_model // heads
        d_k = self.values["d_k"] or found.get("d_k")
        return found if d_k is None else found | {"d_v": d_k}

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

    def erase(self) -> None:
        """Erase a typed character; otherwise unset the field with the cursor, if it can follow from others."""
        if self.text is None and self.cursor in FOLLOWING:
            self.value = None
        super().erase()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return shape_lines(
            self.values, self.followed, self.cursor, self.objection, width, height, self.glyphs, self.text
        )


class CostText(ScrolledLines):
    """Shows the cost of a layer."""

    TITLE = message("cost")
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
        blocks = [*cost_blocks(self.cost, self.preset), variants(self.cost, self.preset)]
        return block_lines(blocks, width, self.glyphs)
