"""The table of scale rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import set_cell_size

from ....core.lab.results import RULES, SORTABLE, Order, RuleRow
from ....core.message import counted, in_sense, joined, message
from ....core.parameters import Parameters
from ....core.scales import ScaleName, scale_rule
from ....core.statistics.catalogue import STATISTIC
from ....core.statistics.status import SATURATED
from ....core.theory.prediction import WAY, ratio_given, status_given
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ..bars import span_at
from ..fields.choices import FAMILIES, family_of
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, middle_cut
from ..numbers import on_the_point
from ..plots.dots import dot_line, saturation_axis, zone_line

if TYPE_CHECKING:
    from ....core.theory.prediction import Saturation

HEAD = 2  # lines over the rows
_LEAST, _MOST = 5, 9  # lines of a rule's description
_LOW = 17  # lines of a pane below which the description has fewer
_TITLED = 12  # lines of a table from which families have titles


class Row(NamedTuple):
    """A line of the table: a rule, or the title of a family, or a blank line above one."""

    rule: ScaleName = ""
    title: str = ""


def by_family(names: Iterable[ScaleName], reverse: bool = False) -> list[ScaleName]:
    """Return rules by family, each in catalogue order, with formulas last; or all in reverse."""
    return sorted(names, key=_place, reverse=reverse)


def _place(name: ScaleName) -> tuple[int, int]:
    family = FAMILIES.index(family_of(scale_rule(name)))
    return family, RULES.index(name) if name in RULES else len(RULES)


def rows_of(names: Sequence[ScaleName], order: Order, room: int) -> list[Row]:
    """Return the lines of these rules: if they are sorted by rule, families have titles, and gaps if all fits."""
    if order.column != "rule" or room < _TITLED:
        return [Row(name) for name in names]
    titled: list[Row] = []
    for place, family in groupby(names, key=lambda name: _place(name)[0]):
        titled += [Row(), Row(title=FAMILIES[place]), *map(Row, family)]
    return titled[1:] if len(titled) - 1 <= room else [row for row in titled if row != Row()]


def words_height(names: Sequence[ScaleName], order: Order, height: int, border: int) -> int:
    """Return the lines for the description of a rule, below the table of a pane of this height."""
    few = _LEAST if height >= _LOW else min(max(height - 9, 0), 3)
    room = height - HEAD - border
    return min(max(room - len(rows_of(names, order, room - _MOST)), few), _MOST)


NAME = 16  # cells of the cursor, the mark of the Lab's rule, and the name
WAY_OF = "way over d_k"  # the first column: a dot at how near softmax is to saturation, and the way of it over d_k
STATUS, SATURATED_AT = "status", "saturated at d_k"  # in words, so rows cannot be sorted by them
_WORDS = {  # titles, and cells
    STATUS: (("", "status"), 10),
    SATURATED_AT: (("saturated", in_sense("at d_k", "saturated")), 9),
}
_WAY_SHARE, _WAY_LEAVES = 0.48, 13  # of the width, the least cells of the first column; what it leaves for another
_PENDING = "…"
_STEADY = 0.02  # the relative change of a ratio from the first to the second d_k of WAY that is none


@dataclass(frozen=True)
class _ColumnFormat:
    """The format of a column."""

    titles: tuple[str, str]
    whole: int  # cells before the point
    decimals: int

    @property
    def width(self) -> int:
        return max(self.whole + 1 + self.decimals, *map(len, self.titles))


_FORMATS = {
    "multiplier": _ColumnFormat(("", "multiplier"), 4, 5),
    "logit_std": _ColumnFormat(("logit", "std"), 3, 3),
    "entropy_fraction": _ColumnFormat(("entropy", "/ ln n %"), 4, 2),
    "max_weight": _ColumnFormat(("max", "weight %"), 4, 2),
    "grad_q_median": _ColumnFormat(("median", "∂L/∂q"), 2, 4),
    "dead_rows": _ColumnFormat(("dead", "rows %"), 3, 2),
    "saturation": _ColumnFormat(("", "saturation"), 3, 3),
    "score_overflow": _ColumnFormat(("over-", "flow %"), 3, 2),
}
COLUMNS = (
    WAY_OF, "multiplier", "max_weight", "entropy_fraction", STATUS, "logit_std", "grad_q_median", "dead_rows",
    "saturation", SATURATED_AT, "score_overflow",
)  # fmt: skip
assert {"rule", *_FORMATS} == {*SORTABLE}


@dataclass(frozen=True)
class RuleTableContents:
    """The contents of the table."""

    names: Sequence[str]  # of rules, in order
    rows: Mapping[str, RuleRow]  # those measured so far
    saturation: Mapping[str, Saturation | None]  # of these rows
    order: Order
    lab: str  # the Lab's rule
    cursor: str = ""
    stale: Collection[str] = ()  # rules whose rows are for earlier parameters
    first_column: int = 0  # index of the first column shown
    d_k: int = Parameters.d_k


def words_of(column: str) -> str:
    """Return the name of a column in sentences."""
    statistic = STATISTIC.get(column)
    return column if statistic is None else statistic.short or statistic.label


def columns_in(width: int, first: int, by: str) -> dict[str, int]:
    """Return the columns that fit, from index `first` on, and the one that rows are sorted by, with their cells.

    The first column has what the others leave.
    """
    least = min(round(_WAY_SHARE * width), max(width - NAME - _WAY_LEAVES, 1))
    cells = {column: 1 + form.width for column, form in _FORMATS.items()} | {WAY_OF: 1 + least}
    cells |= {column: 1 + room for column, (_, room) in _WORDS.items()}
    shown = {by} & {*COLUMNS}
    left = width - NAME - sum(cells[column] for column in shown)
    for column in COLUMNS[first:]:
        if column in shown:
            continue
        if left < cells[column] and shown:
            break
        left -= cells[column]
        shown.add(column)
    cells[WAY_OF] += left
    return {column: cells[column] for column in COLUMNS if column in shown}


def of_note(shown: RuleTableContents) -> list[bool]:
    """Return for each rule, in the order shown, whether it is known not to be healthy."""
    rows = (shown.rows.get(name) for name in shown.names)
    words = [row and status_given(shown.saturation.get(row.rule), row.measured) for row in rows]
    return [word not in (None, "healthy") for word in words]


def table_lines(shown: RuleTableContents, width: int, top: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the heading and the lines from index `top` on; the last one counts the hidden rules."""
    columns = columns_in(width, shown.first_column, shown.order.column)
    rows = rows_of(shown.names, shown.order, height - HEAD)
    room = rows_in(len(rows), height)
    lines = _heading(shown, columns, glyphs)
    for row in rows[top : top + room]:
        if row.rule:
            lines.append(_row(shown, row.rule, columns, glyphs))
        else:
            lines.append(((f"  {glyphs.say(row.title)}", "dim"),))
    if room < len(rows):
        above, below = (sum(row.rule != "" for row in hidden) for hidden in (rows[:top], rows[top + room :]))
        parts = [message("{count} more above", count=above)] if above else []
        parts += [message("{count} more below", count=below)] if below else []
        lines.append(((f"  {glyphs.say(joined(parts, ', '))}", "dim"),))
    return [fitted(line, width) for line in lines[:height]]


def first_line(shown: RuleTableContents, top: int, height: int) -> int:
    """Return the line nearest to index `top` from which a table of this height shows the cursor and its family."""
    rows = rows_of(shown.names, shown.order, height - HEAD)
    room, at = rows_in(len(rows), height), rows.index(Row(shown.cursor))
    titled = at > 0 and not rows[at - 1].rule
    return min(max(top, at - room + 1), at - titled, len(rows) - room)


def rule_at(shown: RuleTableContents, top: int, y: int, height: int) -> str | None:
    """Return the rule in line `y` of the table."""
    rows = rows_of(shown.names, shown.order, height - HEAD)
    shown_rows = rows[top : top + rows_in(len(rows), height)]
    return shown_rows[y - HEAD].rule or None if HEAD <= y < HEAD + len(shown_rows) else None


def column_at(shown: RuleTableContents, width: int, x: int, glyphs: Glyphs) -> str | None:
    """Return the column whose heading is at cell `x`, if rows can be sorted by it."""
    columns = columns_in(width, shown.first_column, shown.order.column)
    found = span_at(_heading(shown, columns, glyphs)[0], x)
    named = ["rule", *columns]
    column = named[found[0]] if found and found[0] < len(named) else None
    return column if column in SORTABLE else None


def rows_in(rows: int, height: int) -> int:
    """Return how many rows a table of this height shows."""
    room = max(height - HEAD, 1)
    return rows if rows <= room else max(room - 1, 1)


def _heading(shown: RuleTableContents, columns: Mapping[str, int], glyphs: Glyphs) -> list[Line]:
    up, down = ("^", "v") if glyphs.ascii else ("▲", "▼")
    mark = up if shown.order.reverse else down
    sorted_by: Role = "accent"
    lines: list[Line] = []
    for number in range(HEAD):
        here = number == HEAD - 1 and shown.order.column == "rule"
        title = f"  {glyphs.say('rule')}{' ' + mark if here else ''}" if number == HEAD - 1 else ""
        spans: list[Span] = [(to_left(title, NAME), sorted_by if here else "heading")]
        for column, cells in columns.items():
            if column == WAY_OF:
                text = (
                    zone_line(cells - 1, glyphs)
                    if number
                    else glyphs.fitting(_way_titles(shown.d_k, glyphs), cells - 1)
                )
                spans.append((to_left(f" {text}", cells), "dim"))
                continue
            if column in _WORDS:
                titles, room = _WORDS[column]
                spans.append((" " + set_cell_size(glyphs.say(titles[number]), room), "heading"))
                continue
            form = _FORMATS[column]
            here = shown.order.column == column
            title = (mark if here and number == 0 else "") + glyphs.say(form.titles[number])
            spans.append((to_right(title, 1 + form.width), sorted_by if here else "heading"))
        lines.append(tuple(spans))
    return lines


@lru_cache(maxsize=4096)
def _text(value: float | None, column: str, glyphs: Glyphs) -> str:
    """Return a value in the cells of its column, with aligned decimal points; cached, as a key changes few."""
    share = column in STATISTIC and STATISTIC[column].unit == "share"
    form, factor = _FORMATS[column], 100 if share else 1
    if share and value == 0:
        return to_right(glyphs.say("none"), form.width)
    (text,) = on_the_point([None if value is None else factor * value], form.decimals, glyphs)
    whole, point, rest = text.partition(".")
    if "e" in text or len(whole) > form.whole:  # a power of ten
        return to_right(text, form.width)[: form.width]
    return to_right(to_right(whole, form.whole) + to_left(point + rest, 1 + form.decimals), form.width)[: form.width]


def rule_sentences(
    names: Iterable[ScaleName], known: Mapping[str, Saturation | None], width: int, glyphs: Glyphs
) -> list[Line]:
    """Return a line for each rule: where softmax saturates under it, or how that changes with d_k."""
    lines: list[Line] = []
    labels = {name: glyphs.say(scale_rule(name).label) for name in names}
    wide = max(map(cells_of, labels.values()), default=0)
    for name, label in labels.items():
        saturation = known.get(name)
        forms = saturation.words()[:3] if saturation else (_PENDING,)
        if saturation and not saturation.saturated_at and all(map(isfinite, saturation.way)):
            low, high = saturation.way
            if abs(high - low) < _STEADY * low:
                forms = message("spreads logits alike at every d_k"), message("alike at every d_k")
            elif high < low * (1 - _STEADY):
                forms = message("averages all keys as d_k grows"), message("goes flat")
        role: Role = "unscaled" if name == "none" else "text"
        lines.append(((to_left(label, wide + 2), role), (glyphs.fitting(forms, width - wide - 2), role)))
    return lines


def _way_titles(d_k: int, glyphs: Glyphs) -> tuple[str, ...]:
    """Return what the dots and the lines of the first column are, in forms from long to short."""
    dot, (low, high) = joined([glyphs.marks[0], message("at d_k {d_k}", d_k=d_k)]), WAY
    way = glyphs.rule * 2 + glyphs.right
    return (
        message("{dot}   {way} from d_k {low} to {high}", dot=dot, way=way, low=low, high=high),
        message("{dot}   {way} from {low} to {high}", dot=dot, way=way, low=low, high=high),
        dot,
    )


def _row(shown: RuleTableContents, name: str, columns: Mapping[str, int], glyphs: Glyphs) -> Line:
    row, chosen, stale = shown.rows.get(name), name == shown.cursor, name in shown.stale
    named: Role = "scaled" if name == shown.lab else "unscaled" if name == "none" else "label"
    mark = glyphs.marks[1] if name == shown.lab else " "
    label = to_left(middle_cut(glyphs.say(scale_rule(name).label), NAME - 2, glyphs.say("…")), NAME - 2)
    sign: Line = ((glyphs.cursor if chosen else " ", "accent"), (mark, "scaled"))
    head: Line = (*sign, (label, "accent" if chosen else named))
    if row is None:
        return (*head, (" " + glyphs.say(_PENDING), "dim"))
    if row.multiplier is None:
        fault = row.fault.removeprefix(scale_rule(name).formula).strip()
        return (*head, (" " + glyphs.say(fault), "dim" if stale else "alert"))
    value: Role = "dim" if stale else "accent" if chosen else "text"
    spans: list[Span] = []
    for column, cells in columns.items():
        if column == WAY_OF:
            known = shown.saturation.get(name)
            way = known.way if known and all(map(isfinite, known.way)) else None
            role: Role = "dim" if stale else "accent" if chosen else "text" if named == "label" else named
            dot, axis = ratio_given(known, row.measured), saturation_axis(cells - 1)
            spans.append((" ", "text"))
            spans += dot_line(axis, dot, SATURATED, role, glyphs, way, arrow=True)
        elif column in _WORDS:
            _, room = _WORDS[column]
            spans.append(
                (" " + set_cell_size(glyphs.say(_word(column, shown.saturation.get(name), row)), room), value)
            )
        else:
            spans.append((" " + _text(row.value(column), column, glyphs), value))
    return (*head, *spans)


def _word(column: str, saturation: Saturation | None, row: RuleRow) -> str:
    """Return a rule's status, or where softmax is saturated under it."""
    word = status_given(saturation, row.measured) if column == STATUS else saturation and saturation.words()[-1]
    return word or "—"


def left_out(width: int, first: int, by: str) -> list[str]:
    """Return the columns that do not fit."""
    shown = columns_in(width, first, by)
    return [column for column in COLUMNS if column not in shown]


def title_line(shown: RuleTableContents, width: int, table: int, glyphs: Glyphs) -> Line:
    """Return how rows are sorted, the mark of the Lab's rule, and which columns a table hides, as far as it fits.

    `width` is that of the title, `table` that of the table.
    """
    order, count, lab = shown.order, len(shown.names), message("{mark} the Lab's", mark=glyphs.marks[1])
    if order.column == "rule":
        how = message("by family, in reverse order") if order.reverse else message("by family")
    elif order.reverse:
        how = message("by {column}, smallest first", column=words_of(order.column))
    else:
        how = message("by {column}, largest first", column=words_of(order.column))
    missing = left_out(table, shown.first_column, order.column)
    more = counted("i: {number} more column", "i: {number} more columns", len(missing))
    columns = [message("i: {names}", names=joined(map(words_of, missing), ", ")), more] if missing else []
    forms = [
        [message("{count} scale rules {how}", count=count, how=how), lab, *columns[:1]],
        [message("{count} scale rules {how}", count=count, how=how), lab, *columns[1:]],
    ]
    forms += [[how, lab, *columns[1:]], [how, *columns[1:]], [how]]
    parts = next((form for form in forms if cells_of(glyphs.say(joined(form, " · "))) <= width), forms[-1])
    rest: list[Span] = [(f" {glyphs.say('·')} {glyphs.say(part)}", "dim") for part in parts[1:]]
    return ((glyphs.say(parts[0]), "heading"), *rest)


def next_columns(width: int, first: int, by: str) -> int:
    """Return the first column to show next, to show hidden ones at the right; 0 after the last one."""
    seen = {*columns_in(width, first, by)}
    return next((at for at in range(first + 1, len(COLUMNS)) if {*columns_in(width, at, by)} - seen), 0)
