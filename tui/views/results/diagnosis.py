"""Verdicts on heads: a line for layers that agree, on one axis, and a block for each fault."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ....core.diagnosis.groups import FaultGroup, HeadVerdict, faults_of, groups
from ....core.message import message
from ....core.tables.diagnosis import fault_statements
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, wrapped
from ..plots.dots import axis_labels, dot_line, multiplier_axis

if TYPE_CHECKING:
    from ....core.diagnosis.groups import HeadVerdict
    from ....core.tables.table import Statement


_LABEL = 15  # cells of the longest label, with a space before and after it
_IS = 15  # cells for what it is, before what it should be


def statement_lines(statements: Iterable[Statement], glyphs: Glyphs, width: int) -> list[Line]:
    """Return each statement as a label, what stands beside it, and more lines below that; and a blank line."""
    return [line for statement in statements for line in _block(statement, glyphs, width)]


def _block(statement: Statement, glyphs: Glyphs, width: int) -> list[Line]:
    word = f" {glyphs.say(statement.label)} "
    role: Role = statement.tone if statement.tone in ("right", "wrong") else "heading"
    numbers = ""
    if statement.used:
        numbers = f"{to_left(glyphs.say(statement.used), _IS)}  {glyphs.say(statement.expected)}"
    indent = max(_LABEL, cells(word) + 1)
    lines: list[Line] = []
    for number, text in enumerate((statement.where, numbers, *statement.sentences)):
        room, shade = max(width - indent, 20), "text" if number else "heading"
        said = glyphs.say(text)
        fits: list[Line] = [((said, shade),)] if said and cells(said) <= room else []
        for line in fits or wrapped(said, room, shade):
            first: tuple[Span, ...] = ((" " * indent, "text"),)
            if not lines:
                first = ((word, role), (" " * (indent - cells(word)), "text"))
            lines.append((*first, *line))
    return [*lines, ()]


_GAP = "  "
_AXIS = (16, 60)  # cells of the axis, the least and the most
# Causes of a multiplier in a word or two, in the app; printed, a cause has the name that options and docs know.
_SHORT: Mapping[str, str] = {
    "healthy": message("right"), "scale-missing": message("not scaled"), "scale-twice": message("twice"),
    "scale-1-over-d": "1/d_k", "scale-inverted": message("inverted"), "scale-d-model": "√d_model",
    "scale-n-heads": message("√heads"), "scale-n-keys": message("√keys"), "scale-quarter": "d_k^−¼",
    "no-evidence": message("no evidence"),
}  # fmt: skip
_MOST_LINES = 64  # of layers; a file with more kinds of lines tells its faults alone


def diagnosis_lines(heads: Sequence[HeadVerdict], glyphs: Glyphs, width: int) -> list[Line]:
    """Return the table of layers, then the block of each fault."""
    fault_groups = groups(fault for head in heads for fault in faults_of(head))
    lines: list[Line] = []
    rows = verdict_rows(fault_groups)
    if any(row.used is not None for row in rows) and len(rows) <= _MOST_LINES:
        lines += [*multiplier_lines(rows, heads, glyphs, width), ()]
    told = fault_statements(heads, (group for group in fault_groups if group.rule != "healthy"))
    return [*lines, *statement_lines(told, glyphs, width)]


def verdict_rows(fault_groups: Sequence[FaultGroup]) -> list[FaultGroup]:
    """Return layers that agree, in order: of each group, those that follow each other and have the same heads."""
    runs = (run for group in fault_groups if group.heads for run in group.runs)
    return sorted(runs, key=lambda run: (run.heads[0][0].position, run.heads[0][1]))


def _word(row: FaultGroup, short: bool) -> str:
    """Return what is said beside the multiplier of a row."""
    if not short:
        return message("right") if row.rule == "healthy" else row.rule
    return _SHORT.get(row.rule, message("wrong") if row.fault.severe else message("unusual"))


def multiplier_lines(
    rows: Sequence[FaultGroup], heads: Iterable[HeadVerdict], glyphs: Glyphs, width: int, chosen: int | None = None
) -> list[Line]:
    """Return a header and what q·k was multiplied by, a line a row: its number, where it should be, and a word.

    `chosen` is the row with the cursor.
    """
    expected = {(head.layer, head.head): head.verdict.expected for head in heads}
    wanted = [expected[row.heads[0]] for row in rows]
    amounts = [row.amounts or "—" for row in rows]
    words = [glyphs.say(_word(row, chosen is not None)) for row in rows]
    titles = [glyphs.say(text) for text in (message("layer"), message("heads"), message("q·k was multiplied by"))]
    numbers = [glyphs.say(row.layer_numbers) for row in rows]
    places = [glyphs.say(row.head_numbers) for row in rows]
    wide = [
        max(map(cells, [title, *column]))
        for title, column in zip(titles, (numbers, places, map(glyphs.say, amounts)), strict=True)
    ]
    room = width - (chosen is not None) - sum(wide) - max(map(cells, words)) - 4 * len(_GAP)
    if room < -len(_GAP):  # the title is what is too long
        titles[2], wide[2] = "q·k ×", max(map(cells, [*amounts, "q·k ×"]))
    used = [number for row in rows if row.used is not None for number in row.used]
    used += [one.multiplier for one in wanted if one.multiplier]
    axis = multiplier_axis(used, min(max(room, 0), _AXIS[1]))
    shown = room >= _AXIS[0]
    formulas = {(one.multiplier, one.formula) for one in wanted if one.multiplier and one.formula}
    labels = axis_labels(*(next(iter(formulas)) if len(formulas) == 1 else (None, "")), axis, glyphs) if shown else ""
    header = [to_right(titles[0], wide[0]), to_left(titles[1], wide[1]), to_left(titles[2], wide[2]), labels]
    margin = "" if chosen is None else " "
    lines: list[Line] = [((margin + _GAP.join(header).rstrip(), "dim"),)]
    table = zip(rows, wanted, numbers, places, amounts, words, strict=True)
    for at, (row, want, number, place, amount, word) in enumerate(table):
        healthy = row.rule == "healthy"
        role: Role = "scaled" if healthy else "alert" if row.fault.severe else "unscaled"
        start = f"{to_right(number, wide[0])}{_GAP}{to_left(place, wide[1])}{_GAP}"
        middle = row.used[0] if row.used is not None else None
        used_words = to_left(glyphs.say(amount), wide[2]) + _GAP
        way = (middle, want.multiplier) if middle and want.multiplier else None
        here: Span = (glyphs.uprights[0], "text")
        dots: Line = dot_line(axis, middle, want.multiplier, role, glyphs, way, upright=here) if shown else ()
        gap: Line = ((_GAP, "text"),) if shown else ()
        mark: Line = () if chosen is None else ((glyphs.cursor if at == chosen else " ", "accent"),)
        lines.append((*mark, (start, "text"), (used_words, role), *dots, *gap, (word, "text" if healthy else role)))
    return lines
