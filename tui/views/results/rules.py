"""The table of scale rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from math import log
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import set_cell_size

from ....core.lab.results import RULES, SORTABLE, Order, RuleRow
from ....core.message import counted, in_sense, joined, message
from ....core.scales import ScaleName, scale_rule
from ....core.statistics.catalogue import STATISTIC
from ....core.theory.prediction import status_given
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ..bars import span_at
from ..fields.choices import FAMILIES, family_of
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, middle_cut
from ..numbers import on_the_point

if TYPE_CHECKING:
    from ....core.lab.results import RuleCurves
    from ....core.theory.prediction import Saturation

HEAD = 2  # lines over the rows
_LEAST, _MOST = 5, 9  # lines of a rule's description
_LOW = 20  # lines of a pane below which the description has fewer
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


METER_CELLS = 11
_DOTS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))  # of a braille cell's columns, from below


def meter(ratio: float | None, glyphs: Glyphs) -> str:
    """Return a bar from 0 to 2 with a mark at 1, where softmax saturates, and an arrow if the value is larger."""
    bar, at = glyphs.bar(min(ratio or 0.0, 2.0) / 2, METER_CELLS - 1), (METER_CELLS - 1) // 2
    marked = bar if bar[at] != " " else f"{bar[:at]}{glyphs.uprights[0]}{bar[at + 1 :]}"
    return (marked + (glyphs.right if ratio is not None and ratio > 2 else "")).ljust(METER_CELLS)


def braille_line(values: Sequence[float | None], cells: int) -> str:
    """Return a line through values from 0 to 1, four dots high; cells without a value are blank."""
    levels: list[int | None] = []
    for column in range(2 * cells):
        at = column * (len(values) - 1) / max(2 * cells - 1, 1)
        low, high = values[int(at)], values[min(int(at) + 1, len(values) - 1)]
        levels.append(None if low is None or high is None else round(3 * (low + (high - low) * (at % 1))))
    text = ""
    for cell in range(cells):
        dots = 0x2800
        for half in (0, 1):
            level, before = levels[2 * cell + half], levels[max(2 * cell + half - 1, 0)]
            if level is not None:
                first = min(level, before + 1) if before is not None and before < level else level
                last = max(level, before - 1) if before is not None and before > level else level
                dots |= sum(_DOTS[half][dot] for dot in range(first, last + 1))
        text += chr(dots) if dots > 0x2800 else " "
    return text


def with_saturation(line: str, d_ks: Sequence[int], saturation: Saturation | None, glyphs: Glyphs) -> str:
    """Return the line with a mark at the first d_k at which softmax saturates, if after the first one shown."""
    first = saturation.saturated_at[0][0] if saturation and saturation.saturated_at else 0
    if not line or not d_ks[0] < first <= d_ks[-1]:
        return line
    at = min(int(len(line) * log(first / d_ks[0]) / log(d_ks[-1] / d_ks[0])), len(line) - 1)
    return f"{line[:at]}{glyphs.uprights[0]}{line[at + 1 :]}"


NAME = 16  # cells of the cursor, the mark of the Lab's rule, and the name
CURVE = "entropy over d_k"  # the last column, which rows cannot be sorted by
STATUS, SATURATED = "status", "saturated at d_k"  # in words, so rows cannot be sorted by them either
METER = (
    "meter of saturation"  # of the deviation of a row's logits over that at which softmax saturates, up to twice it
)
_WORDS = {  # titles, and cells
    STATUS: (("", "status"), 10),
    METER: (("", "0    1    2"), METER_CELLS),
    SATURATED: (("saturated", in_sense("at d_k", "saturated")), 9),
}
_MOST_CELLS = 8  # of a d_k in a sparkline
_PENDING = "…"


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
_AFTER = {"multiplier": (STATUS,), "saturation": (METER,), "score_overflow": (SATURATED, CURVE)}
COLUMNS = tuple(each for column in _FORMATS for each in (column, *_AFTER.get(column, ())))
assert ("rule", *_FORMATS) == SORTABLE


@dataclass(frozen=True)
class RuleTableContents:
    """The contents of the table."""

    names: Sequence[str]  # of rules, in order
    rows: Mapping[str, RuleRow]  # those measured so far
    saturation: Mapping[str, Saturation | None]  # of these rows
    curves: RuleCurves | None
    order: Order
    lab: str  # the Lab's rule
    cursor: str = ""
    stale: Collection[str] = ()  # rules whose rows are for earlier parameters
    first_column: int = 0  # index of the first column shown
    stale_curves: bool = False  # whether the curves are for earlier parameters


def words_of(column: str) -> str:
    """Return the name of a column in sentences."""
    statistic = STATISTIC.get(column)
    return column if statistic is None else statistic.short or statistic.label


def columns_in(width: int, first: int, by: str, curve: int) -> list[str]:
    """Return the columns that fit, from index `first` on, and the one that rows are sorted by; at least one.

    `curve` is the width of the sparkline.
    """
    cells = {column: 1 + form.width for column, form in _FORMATS.items()} | {CURVE: 1 + curve}
    cells |= {column: 1 + room for column, (_, room) in _WORDS.items()}
    shown = {by} & {*COLUMNS}
    left = width - NAME - sum(cells[column] for column in shown)
    for column in COLUMNS[first:]:
        if column in shown:
            continue
        left -= cells[column]
        if left < 0 and shown:
            break
        shown.add(column)
    return [column for column in COLUMNS if column in shown]


def curve_cells(curves: RuleCurves | None, width: int) -> int:
    """Return the width of a sparkline: for each d_k one cell, or as many as fit beside all columns."""
    points = len(curves.d_ks) if curves else 11
    title = len(_ends(curves))
    words = sum(1 + room for _, room in _WORDS.values())
    everything = NAME + sum(1 + form.width for form in _FORMATS.values()) + words + 2
    return max(points * min(max((width - everything) // points, 1), _MOST_CELLS), title)


def _ends(curves: RuleCurves | None) -> str:
    """Return the first and the last d_k of the sparklines."""
    return "" if curves is None else message("{low} to {high}", low=curves.d_ks[0], high=curves.d_ks[-1])


def of_note(shown: RuleTableContents) -> list[bool]:
    """Return for each rule, in the order shown, whether it is known not to be healthy."""
    rows = (shown.rows.get(name) for name in shown.names)
    words = [row and status_given(shown.saturation.get(row.rule), row.measured) for row in rows]
    return [word not in (None, "healthy") for word in words]


def table_lines(shown: RuleTableContents, width: int, top: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the heading and the lines from index `top` on; the last one counts the hidden rules."""
    cells = curve_cells(shown.curves, width)
    columns = columns_in(width, shown.first_column, shown.order.column, cells)
    rows = rows_of(shown.names, shown.order, height - HEAD)
    room = rows_in(len(rows), height)
    lines = _heading(shown, columns, cells, glyphs)
    for row in rows[top : top + room]:
        if row.rule:
            lines.append(_row(shown, row.rule, columns, cells, glyphs))
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
    cells = curve_cells(shown.curves, width)
    columns = columns_in(width, shown.first_column, shown.order.column, cells)
    found = span_at(_heading(shown, columns, cells, glyphs)[0], x)
    named = ["rule", *columns]
    column = named[found[0]] if found and found[0] < len(named) else None
    return column if column in SORTABLE else None


def rows_in(rows: int, height: int) -> int:
    """Return how many rows a table of this height shows."""
    room = max(height - HEAD, 1)
    return rows if rows <= room else max(room - 1, 1)


def _heading(shown: RuleTableContents, columns: Sequence[str], cells: int, glyphs: Glyphs) -> list[Line]:
    up, down = ("^", "v") if glyphs.ascii else ("▲", "▼")
    mark = up if shown.order.reverse else down
    sorted_by: Role = "accent"
    lines: list[Line] = []
    for number in range(HEAD):
        here = number == HEAD - 1 and shown.order.column == "rule"
        title = f"  {glyphs.say('rule')}{' ' + mark if here else ''}" if number == HEAD - 1 else ""
        spans: list[Span] = [(to_left(title, NAME), sorted_by if here else "heading")]
        for column in columns:
            if column == CURVE:
                forms = glyphs.say("entropy at d_k"), glyphs.say("at d_k")
                title = forms[0] if cells_of(forms[0]) <= cells else forms[1]
                text = title if number == 0 else glyphs.say(_ends(shown.curves))
                spans.append((to_left(f" {text}", cells + 1), "heading" if number == 0 else "dim"))
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


def _row(shown: RuleTableContents, name: str, columns: Sequence[str], cells: int, glyphs: Glyphs) -> Line:
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
    for column in columns:
        if column == CURVE:
            spans.extend(
                [(" ", "text"), (_curve(shown, name, cells, glyphs), "dim" if shown.stale_curves else named)]
            )
        elif column == METER:
            spans.append((f" {meter(row.value('saturation'), glyphs)}", "dim" if stale else named))
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


def _curve(shown: RuleTableContents, name: str, cells: int, glyphs: Glyphs) -> str:
    """Return values from 0 to 1 over d_k as a line with a mark where softmax saturates; in ASCII as bars."""
    if shown.curves is None or name not in shown.curves.values:  # those of another formula
        return to_left(glyphs.say(_PENDING), cells)
    values = shown.curves.values[name]
    if not glyphs.ascii:
        line = braille_line(values, cells // len(values) * len(values))
        return to_left(with_saturation(line, shown.curves.d_ks, shown.saturation.get(name), glyphs), cells)
    steps = len(glyphs.bars) - 2  # so that a bar does not touch the line above
    bars = ["?" if value is None else glyphs.bars[max(round(value * steps), value > 0)] for value in values]
    return to_left("".join(bar * (cells // len(values)) for bar in bars), cells)


def left_out(width: int, first: int, by: str, curves: RuleCurves | None) -> list[str]:
    """Return the columns that do not fit."""
    shown = columns_in(width, first, by, curve_cells(curves, width))
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
    missing = left_out(table, shown.first_column, order.column, shown.curves)
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


def next_columns(width: int, first: int, by: str, curves: RuleCurves | None) -> int:
    """Return the first column to show next, to show hidden ones at the right; 0 after the last one."""
    cells = curve_cells(curves, width)
    seen = {*columns_in(width, first, by, cells)}
    return next((at for at in range(first + 1, len(COLUMNS)) if {*columns_in(width, at, by, cells)} - seen), 0)
