"""The table of statistics: its columns, texts and widths, for the live panel and for print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rich.cells import set_cell_size
from rich.table import Table
from rich.text import Text

from ....core.against import settings, words
from ....core.message import joined, message
from ....core.parameters import ROUNDED
from ....core.scales import scale_rule
from ....core.statistics.catalogue import FAR, MUCH_LOST, OF_FIRST_VIEW, STATISTICS, Statistic
from ....core.statistics.measurement import NOTHING, Column, Measurement, is_unscaled
from ....core.theory.prediction import status_given
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import PRINTED, Line, Name, Role, Span, fitted, printed_style
from ..numbers import POINT, STDERR, VALUE, aligned, aligned_share, short, spread

if TYPE_CHECKING:  # the first frame is painted before NumPy is loaded
    from ....core.theory.prediction import PredictedColumn, Saturation, Theory


LABEL = 16  # cells of a row's name
_GAP = 2  # cells after a column; the last one may do without
CELL = VALUE + 2 + STDERR + _GAP  # a value, ±, its standard error and a gap
THEORY = VALUE + 1  # an exact value, after a sign if the measured one is far from it
WIDEST = 34  # the widest cell: wider ones make rows hard to follow

# The rows that even a small screen shows: they tell a saturated head from a healthy one.
ESSENTIAL = tuple(statistic.name for statistic in STATISTICS if statistic.rank == 0)
FIRST_GROUP: Span = (f" {STATISTICS[0].group}", "heading")  # shown over the labels
_LEAST_MEANING = 40  # cells beside the columns from which statistics are explained there
COLUMN_ROLES: tuple[Name, Name] = ("unscaled", "scaled")


class TableContents(NamedTuple):
    """What a table shows: measured columns and their theory, if available."""

    columns: Sequence[Column]
    theory: Sequence[PredictedColumn] = ()
    deviations: Sequence[Mapping[str, float | None]] = ()  # of each column from its theory, in standard errors
    rounded: bool = False  # whether numbers were rounded to a format, which theory ignores
    full: bool = True  # whether all statistics are measured, or OF_FIRST_VIEW only


def with_theory(measurement: Measurement[Any], theory: Theory, full: bool = True) -> TableContents:
    """Return a measurement with its theory."""
    rounded = any(setting.precision in ROUNDED for setting in settings(theory.prediction.parameters))
    return TableContents(measurement.columns, theory.prediction.columns, theory.deviations, rounded, full)


class TableRow(NamedTuple):
    """One line of the table: a group's heading, the status, the saturation gauge, or a statistic."""

    label: str
    statistic: Statistic | None = None
    saturation: Sequence[Saturation | None] = ()
    words: Sequence[str] = ()  # of each column

    @property
    def is_heading(self) -> bool:
        """Whether it is a group's heading."""
        return self.statistic is None and not self.saturation and not self.words


Alone: TypeAlias = Literal["", "value", "±", "exact"]


class TableLayout(NamedTuple):
    """The width of a table, and whether it shows exact values beside measured ones or instead of their ±.

    If not even a value with its ± fits, one of them is shown `alone`.
    """

    width: int
    beside: bool
    instead: bool
    alone: Alone = ""

    @property
    def cell(self) -> int:
        """The cells of one column."""
        least = CELL + THEORY if self.beside else THEORY if self.alone else CELL
        return min(max((self.width - LABEL) // 2, least), WIDEST + (THEORY if self.beside else 0))


def layout(contents: TableContents, width: int, turn: int = 0) -> TableLayout:
    """Return the layout for a width: theory beside measured values if it fits, otherwise by `turn`."""
    if width < LABEL + 2 * CELL - _GAP:
        parts: list[Alone] = ["value", "±", *(["exact"] if contents.theory else [])]
        return TableLayout(width, False, False, parts[turn % len(parts)])
    beside = bool(contents.theory) and width >= LABEL + 2 * (CELL + THEORY)
    return TableLayout(width, beside, bool(contents.theory) and turn % 2 == 1 and not beside)


def table_rows(contents: TableContents, shown: Sequence[str] | None = None) -> list[TableRow]:
    """Return the statistics under the headings of their groups, or only those named in `shown`, without headings.

    The heading of the first group is part of the head line.
    """
    rows: list[TableRow] = []
    group = STATISTICS[0].group
    for statistic in STATISTICS:
        if shown is not None and statistic.name not in shown:
            continue
        if not has_row(statistic, contents):
            continue
        if shown is None and statistic.group != group:
            group = statistic.group
            rows.append(TableRow(group))
        rows.append(TableRow(statistic.short_label, statistic))
        if statistic.name == "logit_std":
            rows += _status_rows(contents)
    return rows


def has_row(statistic: Statistic, contents: TableContents) -> bool:
    """Return whether a statistic has a row: it is not only exported, and it has a value or may get one."""
    if statistic.exported_only:
        return False
    if not statistic.omissible or (statistic.optional and not contents.full):
        return True
    return any(column.measured[statistic.name].value is not None for column in contents.columns)


def _status_rows(contents: TableContents) -> list[TableRow]:
    """Return the rows of each column's status and of where softmax saturates, if they are known."""
    saturation = [column.saturation for column in contents.theory] or [None] * len(contents.columns)
    words = [
        status_given(known, column.measured) or "" for known, column in zip(saturation, contents.columns, strict=True)
    ]
    rows = [TableRow(message("status"), words=words)] if any(words) else []
    return [*rows, TableRow(message("saturation"), None, saturation)] if any(saturation) else rows


def rows_for(contents: TableContents, room: int) -> list[TableRow]:
    """Return all rows with headings if they fit in `room` lines, else the most telling, at least the essential."""
    everything = table_rows(contents)
    if len(everything) <= room:
        return everything
    failed = failures(contents.columns)
    known = [row.statistic for row in everything if row.statistic]
    known.sort(key=lambda statistic: 0 if statistic.name in failed else statistic.rank)
    others = sum(row.statistic is None and not row.is_heading for row in everything)
    least = len(ESSENTIAL) + len(failed)
    return table_rows(contents, [statistic.name for statistic in known[: max(room - others, least)]])


def failures(columns: Sequence[Column]) -> list[str]:
    """Return the statistics of NaN rows and lost weight that matter in any of the columns."""
    least = {"nan_rows": 0.0, "weight_lost": MUCH_LOST}
    values = {name: [column.measured.get(name, NOTHING).value for column in columns] for name in least}
    return [name for name, numbers in values.items() if any(v is not None and abs(v) > least[name] for v in numbers)]


def column_title(column: Column, glyphs: Glyphs, width: int = WIDEST) -> str:
    """Return `unscaled × 1`, `scaled × 0.125 (1/√d_k), bfloat16`, …, in the longest form that fits."""
    number, other = multiplier_text(column, glyphs), words(column.apart)
    rule = "" if column.rule == "file" else scale_rule(column.rule).label
    if column.rule == "none":
        titles = [message("unscaled × 1"), message("unscaled")]
    elif is_unscaled(column):
        titles = [
            message("unscaled × 1 ({rule})", rule=rule),
            message("unscaled, {rule}", rule=rule),
            message("unscaled"),
        ]
    elif column.rule == "file":
        titles = [message("from the file, × {number}", number=number)]
        titles += [message("from the file"), message("from file")]
    elif column.rule == "custom":
        titles = [message("scaled × {number}", number=number), message("× {number}", number=number)]
    else:
        titles = [
            message("scaled × {number} ({rule})", number=number, rule=rule),
            message("× {number} ({rule})", number=number, rule=rule),
            message("scaled × {number}", number=number),
            message("× {number}", number=number),
        ]
    if other:
        titles = [*(joined([title, other], ", ") for title in titles), other]
    return _longest([glyphs.say(title) for title in titles], width)


def multiplier_text(column: Column, glyphs: Glyphs) -> str:
    """Return the multiplier, or `0.1 to 0.25` if rows differ."""
    if column.multipliers is None:
        return short(column.multiplier, glyphs)
    low, high = (short(multiplier, glyphs) for multiplier in column.multipliers)
    return message("{low} to {high}", low=low, high=high)


def head_line(contents: TableContents, shape: TableLayout, glyphs: Glyphs, first: Span) -> Line:
    """Return the titles of the columns; `first` stands over the labels."""
    alone = {"value": message("value"), "exact": message("exact")}.get(shape.alone, shape.alone)
    text, role = (f" {glyphs.say(alone)}", "heading") if alone else first
    titles: list[Span] = [(set_cell_size(glyphs.say(text), LABEL), role)]
    for column, role in zip(contents.columns, COLUMN_ROLES, strict=True):
        room = CELL if shape.beside else shape.cell
        titles.append((set_cell_size("  " + column_title(column, glyphs, room - 2 - _GAP), room), role))
        if shape.beside:
            titles.append((_theory_title(contents, shape.cell - room, 6, glyphs), "theory"))
        elif shape.instead:
            titles[-1] = (to_left(f"  {column_title(column, glyphs, VALUE - 3)}", VALUE), role)
            titles.append((_theory_title(contents, shape.cell - VALUE, 4, glyphs), "theory"))
    return fitted(tuple(titles), shape.width)


def _theory_title(contents: TableContents, width: int, indent: int, glyphs: Glyphs) -> str:
    """Return the title of exact values in `width` cells: beside rounded numbers it names the arithmetic."""
    if not contents.rounded:
        return to_left(" " * indent + glyphs.say("theory"), width)
    return to_left(_longest([glyphs.say("exact arithmetic"), " " * indent + glyphs.say("exact")], width), width)


def row_line(
    row: TableRow, contents: TableContents, shape: TableLayout, glyphs: Glyphs, marked: bool = False
) -> Line:
    """Return a row as a line; `marked` highlights the row with the cursor."""
    if row.is_heading:
        return fitted(((glyphs.say(f" {row.label}"), "heading"),), shape.width)
    mark = glyphs.cursor if marked else " "
    name: Role = "accent" if marked else "label"
    line: list[Span] = [(set_cell_size(mark + glyphs.say(row.label), LABEL), name)]
    for index, role in enumerate(COLUMN_ROLES[: len(contents.columns)]):
        if row.words:
            line.append(_word(row.words[index], shape.cell, role, glyphs))
        elif row.statistic is None:
            known, exact = row.saturation[index], THEORY if shape.beside else 0
            line += _gauge(known, shape.cell - exact, role, glyphs)
            if exact:
                line.extend([(" ", "text"), (_ratio(known, glyphs), "theory")])
        else:
            line += _cell(row.statistic, contents, index, shape, glyphs)
    if row.statistic is not None:
        left = shape.width - LABEL - len(contents.columns) * shape.cell
        line.append((f"  {meaning(row.statistic, left - 2, glyphs)}" if left >= _LEAST_MEANING else "", "dim"))
    return fitted(tuple(line), shape.width)


def _cell(
    statistic: Statistic, contents: TableContents, index: int, shape: TableLayout, glyphs: Glyphs
) -> list[Span]:
    """Return one column of a row: the measured value, ± its standard error, and the exact value."""
    if shape.alone:
        spans = _part(statistic, contents, index, shape.alone, glyphs)
    else:
        value, deviation = measured_text(contents, index, statistic, glyphs)
        spans: list[Span] = [(value, COLUMN_ROLES[index])]
        if not shape.instead:
            spans.append((deviation, "dim"))
        if shape.beside or shape.instead:
            sign, exact = theory_text(contents, index, statistic, glyphs)
            spans.append((sign, "alert"))
            spans.append((exact if shape.beside else to_right(exact.strip(), CELL - VALUE - 1), "theory"))
    return _filled(spans, shape.cell)


def _filled(spans: list[Span], width: int) -> list[Span]:
    """Return spans padded to `width` cells, with blank spans merged into the one before: fewer spans paint faster."""
    found: list[Span] = []
    left = width
    for text, role in spans:
        left -= cells(text)
        if found and not text.strip():
            before, role_before = found.pop()
            text, role = before + text, role_before
        found.append((text, role))
    if left > 0:
        text, role = found.pop()
        found.append((text + " " * left, role))
    return found


def _part(statistic: Statistic, contents: TableContents, index: int, alone: Alone, glyphs: Glyphs) -> list[Span]:
    """Return one column of a narrow row: the value, its ± or the exact value, in THEORY cells."""
    if alone == "exact":
        sign, exact = theory_text(contents, index, statistic, glyphs)
        return [(sign, "alert"), (exact, "theory")]
    value, rest = measured_text(contents, index, statistic, glyphs)
    if alone == "±":
        return [(to_right(rest.strip(), VALUE), "dim"), (" ", "text")]
    return [(value, COLUMN_ROLES[index]), (" ", "text")]


def measured_text(contents: TableContents, index: int, statistic: Statistic, glyphs: Glyphs) -> tuple[str, str]:
    """Return the value, with the sign of a percentage, and ± its standard error; together CELL cells.

    A value that is not measured yet is `…`.
    """
    if not contents.full and statistic.name not in OF_FIRST_VIEW:
        return glyphs.say("…").rjust(POINT).ljust(VALUE), " " * (CELL - VALUE)
    estimate = contents.columns[index].measured[statistic.name]
    share = statistic.unit == "share"
    value = (aligned_share if share else aligned)(estimate.value, glyphs)
    if estimate.stderr is None or (share and estimate.value == 0 and estimate.stderr == 0):
        return value, " " * (CELL - VALUE)
    return value, to_left(spread(estimate, 100 if share else 1, glyphs), CELL - VALUE)


def theory_text(contents: TableContents, index: int, statistic: Statistic, glyphs: Glyphs) -> tuple[str, str]:
    """Return `!` or a blank, for whether the measured value is far off, and the exact one; together THEORY cells."""
    if not contents.theory:
        return " ", " " * (THEORY - 1)
    exact = contents.theory[index].values[statistic.name]
    text = (aligned_share if statistic.unit == "share" else aligned)(exact, glyphs)
    return ("!" if is_far(contents.deviations[index].get(statistic.name)) else " "), text


def is_far(deviation: float | None) -> bool:
    """Return whether a measured value is too far from the exact one for a random error."""
    return deviation is not None and abs(deviation) > FAR


def _word(word: str, width: int, role: Role, glyphs: Glyphs) -> Span:
    """Return a column's status."""
    return (set_cell_size(f"  {glyphs.say(word or '—')}", width), role)


def _ratio(saturation: Saturation | None, glyphs: Glyphs) -> str:
    """Return the exact ratio of the logits' deviation to the one at which softmax saturates."""
    return aligned(None if saturation is None else saturation.ratio, glyphs)


def _gauge(saturation: Saturation | None, width: int, role: Role, glyphs: Glyphs) -> list[Span]:
    """Return how close softmax is to saturation, a bar up to twice the threshold, and where it is saturated."""
    if saturation is None:
        return [_word("", width, role, glyphs)]
    forms = [glyphs.say(words) for words in saturation.words()]
    length = min(width - 24, 12)
    if length < 6:
        return [("  " + to_left(_longest(forms, width - 2), width - 2), role)]
    half, room = length // 2, width - 3 - length
    filled = min(round(saturation.ratio * half), length)
    bar = "".join(glyphs.bars[-1] if at < filled else glyphs.rule for at in range(length))
    return [("  " + bar[:filled], role), (bar[filled:], "dim"), (" " + to_left(_longest(forms, room), room), role)]


def _longest(forms: Sequence[str], room: int) -> str:
    """Return the first form, from long to short, that fits; the last one is cut if necessary."""
    return next((form for form in forms if cells(form) <= room), set_cell_size(forms[-1], room))


def table_lines(
    rows: Sequence[TableRow],
    contents: TableContents,
    shape: TableLayout,
    glyphs: Glyphs,
    first: Span = FIRST_GROUP,
    marked: Statistic | None = None,
) -> list[Line]:
    """Return the head line, with `first` over the labels, and these rows; that of the marked statistic stands out."""
    lines = [row_line(row, contents, shape, glyphs, row.statistic is marked is not None) for row in rows]
    return [head_line(contents, shape, glyphs, first), *lines]


def rich_table(contents: TableContents, glyphs: Glyphs) -> Table:
    """Return the whole table as a Rich table, for print."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(Text(glyphs.say(STATISTICS[0].group), PRINTED["heading"]), no_wrap=True)
    for column, role in zip(contents.columns, COLUMN_ROLES, strict=True):
        table.add_column(Text("  " + column_title(column, glyphs), PRINTED[role]), no_wrap=True)
        if contents.theory:
            word = glyphs.say("exact arithmetic") if contents.rounded else f"      {glyphs.say('theory')}"
            table.add_column(Text(word, PRINTED["theory"]), no_wrap=True)
    for row in table_rows(contents):
        if row.is_heading:
            table.add_row(Text(glyphs.say(row.label), PRINTED["heading"]))
            continue
        if row.statistic is None:
            texts: list[Text] = []
            for index, role in enumerate(COLUMN_ROLES[: len(contents.columns)]):
                spans = (
                    [_word(row.words[index], CELL, role, glyphs)]
                    if row.words
                    else _gauge(row.saturation[index], CELL, role, glyphs)
                )
                texts.append(Text.assemble(*((text, printed_style(role)) for text, role in spans)))
                if contents.theory:
                    exact = f" {_ratio(row.saturation[index], glyphs).rstrip()}" if row.saturation else ""
                    texts.append(Text(exact, PRINTED["theory"]))
            table.add_row(Text(" " + glyphs.say(row.label)), *texts)
            continue
        texts = [Text(" " + glyphs.say(row.label))]
        for index in range(len(contents.columns)):
            value, rest = measured_text(contents, index, row.statistic, glyphs)
            texts.append(Text.assemble((value, PRINTED[COLUMN_ROLES[index]]), (rest.rstrip(), PRINTED["dim"])))
            if contents.theory:
                sign, exact = theory_text(contents, index, row.statistic, glyphs)
                texts.append(Text.assemble((sign, PRINTED["alert"]), (exact.rstrip(), PRINTED["theory"])))
        table.add_row(*texts)
    return table


def meaning(statistic: Statistic, room: int, glyphs: Glyphs) -> str:
    """Return the beginning of the definition, if one that is complete fits in `room` cells; otherwise the formula."""
    forms = (*_beginnings(glyphs.say(statistic.definition)), glyphs.say(statistic.formula))
    return next((text for text in forms if cells(text) <= room), "")


@lru_cache
def _beginnings(definition: str) -> tuple[str, ...]:
    """Return the first sentence, its part up to a colon or a semicolon, and that up to each comma, longest first."""
    sentence = re.split(r"\. |。", definition)[0].removesuffix(".")
    head = re.split("[:;] |[：；]", sentence)[0]
    commas = [comma.start() for comma in re.finditer(", |，", head)]
    return sentence, head, *(head[:at] for at in reversed(commas))
