"""Weightings on the same logits: a line for each, with its weights and its Jacobian; their formulas and sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.lab.weighting.results import WEIGHTINGS
from ....core.message import joined
from ....core.parameters import Parameters
from ....core.tables.rules import weightings_remarks
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted, wrapped
from ...views.numbers import on_the_point

if TYPE_CHECKING:
    from ....core.lab.weighting.results import WeightingRow

_NAME = 18
_CELL = 9  # cells of a value
# Headings of columns of values, and the factor that shows them.
_COLUMNS = {
    "weight_sum": ("Σp", 1),
    "entropy": ("entropy", 1),
    "max_weight": ("max p, %", 100),
    "zero_weights": ("zeros, %", 100),
    "one_hot_rows": ("1-hot, %", 100),
    "jacobian_norm": ("‖J‖_F", 1),
}


def weighting_text(parameters: Parameters, rows: Sequence[WeightingRow], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of `weighting_lines`, sentences on them, and the formula and source of each weighting."""
    if not rows:
        return [((glyphs.say("Measuring weightings…"), "dim"),)]
    lines = [*weighting_lines(rows, width, glyphs), ()]
    for sentence in weightings_remarks(parameters, rows):
        lines += wrapped(glyphs.say(sentence), width)
    lines.append(())
    wide = max(len(WEIGHTINGS[row.name].formula) for row in rows) + 2
    for row in rows:
        weighting = WEIGHTINGS[row.name]
        name: Span = (to_left(glyphs.say(weighting.label), _NAME), "label")
        formula: Span = (to_left(glyphs.say(weighting.formula), wide), "text")
        source: Span = (glyphs.say(weighting.source), "dim")
        if _NAME + wide + cells_of(source[0]) <= width:
            lines.append((name, formula, source))
        else:
            indent: Span = (" " * _NAME, "text")
            lines.append(fitted((name, formula), width))
            lines += [(indent, *line) for line in wrapped(source[0], width - _NAME, "dim")]
    return lines


def weighting_lines(rows: Sequence[WeightingRow], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a heading and a line for each weighting; columns that do not fit are named below."""
    shown = [*_COLUMNS][: max((width - _NAME) // _CELL, 1)]
    head: list[Span] = [(to_left(glyphs.say("weighting"), _NAME), "heading")]
    cells: list[list[Span]] = [[] for _ in rows]
    for name in shown:
        title, factor = _COLUMNS[name]
        head.append((to_right(glyphs.say(title), _CELL), "dim"))
        values = [row.estimate(name).value for row in rows]
        texts = on_the_point([None if value is None else factor * value for value in values], 3, glyphs)
        for spans, text in zip(cells, texts, strict=True):
            spans.append((to_right(text, _CELL), "text"))
    lines: list[Line] = [tuple(head)]
    for row, spans in zip(rows, cells, strict=True):
        role: Role = "scaled" if row.name == "softmax" else "label"
        lines.append(((to_left(glyphs.say(WEIGHTINGS[row.name].label), _NAME), role), *spans))
    if left_out := [_COLUMNS[name][0] for name in _COLUMNS if name not in shown]:
        lines += wrapped(
            glyphs.say("Not shown at this width: {left_out}.", left_out=joined(left_out, "; ")), width, "dim"
        )
    return lines
