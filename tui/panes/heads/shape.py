"""The shape of a layer as a line per field, with help or an error message below."""

from __future__ import annotations

from dataclasses import replace

from ....core.attention.cost import SHAPE_FIELDS
from ....core.attention.formats import FORMATS
from ....core.field import Field
from ....core.parameters import Value
from ...language.cells import cells
from ...views.fields.panel import field_list_lines
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role


def shape_rows() -> list[Field | None]:
    """Return the field of each line; None separates the layer from its use."""
    rows: list[Field | None] = []
    for before, field in zip((None, *SHAPE_FIELDS), SHAPE_FIELDS, strict=False):
        if before is not None and before.group != field.group:
            rows.append(None)
        rows.append(field)
    return rows


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
    rows: list[tuple[Field | None, str, Role]] = []
    for field in shape_rows():
        value = None if field is None else values[field.name]
        role: Role = "text" if value is not None else "dim"
        shown = followed.get(field.name) if field is not None and value is None else value
        text = "" if field is None else glyphs.say(_text(field, shown))
        rows.append((field and _named(field, width, glyphs), text, role))
    return field_list_lines(rows, cursor, typed, objection, (), width, height, glyphs)


def _text(field: Field, value: Value | None) -> str:
    if value is None:
        return "—"
    return FORMATS[str(value)].word if field.name == "cache_format" else field.format(value)


def _named(field: Field, width: int, glyphs: Glyphs) -> Field:
    """Return the field, with its symbol as label if its label leaves too little room for the longest format."""
    least = cells(glyphs.say(field.label)) + 1 + max(cells(glyphs.say(each.word)) for each in FORMATS.values())
    if field.name == "cache_format" and width < least:
        return replace(field, label=field.symbol)
    return field
