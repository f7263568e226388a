"""The table of statistics: one declaration of its columns, words and widths, for the live panel and for print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from ...core.attention.scales import SCALE_RULES
from ...core.statistics.catalogue import STATISTICS, Statistic
from ...core.statistics.measurement import Column, Estimate
from .glyphs import Glyphs
from .lines import PRINTED, Line, Role, Span, fitted
from .numbers import STDERR, VALUE, aligned, error, short

LABEL = 16  # cells of a row's name
CELL = VALUE + 2 + STDERR + 2  # a value, ±, its standard error, the unit and a gap
WIDEST = 34  # a cell grows with the screen, but not so far that the eye loses its row

# What a small screen shows: the rows that tell a saturated head from a healthy one.
ESSENTIAL = (
    "logit_std",
    "logit_variance_within_row",
    "logit_max",
    "entropy",
    "effective_keys",
    "max_weight",
    "one_hot_rows",
    "first_key_weight",
    "jacobian_norm",
    "dead_rows",
)
COLUMN_ROLES: tuple[Role, Role] = ("unscaled", "scaled")


@dataclass(frozen=True)
class Row:
    """One line of the table: a group's heading, or a statistic with a cell for each column."""

    label: str
    statistic: Statistic | None = None
    cells: tuple[Estimate, ...] = ()


def table_rows(columns: Sequence[Column], shown: Sequence[str] | None = None) -> list[Row]:
    """All statistics under the headings of their groups, or only the named ones without headings."""
    rows: list[Row] = []
    group = ""
    for statistic in STATISTICS:
        if shown is not None and statistic.name not in shown:
            continue
        if shown is None and statistic.group != group:
            group = statistic.group
            rows.append(Row(group))
        rows.append(Row(statistic.label, statistic, tuple(c.measured[statistic.name] for c in columns)))
    return rows


def cell_width(width: int, columns: int) -> int:
    """How wide each column's cells are in a table this wide."""
    return min(max((width - LABEL) // columns, CELL), WIDEST)


def column_title(column: Column, glyphs: Glyphs, width: int = WIDEST) -> str:
    """`unscaled × 1`, `scaled × 0.125 (1/√d_k)`, `the file's × 0.177`: the longest form that fits."""
    number = short(column.multiplier, glyphs)
    if column.rule == "none":
        titles = ["unscaled × 1"]
    elif column.rule == "file":
        titles = [f"the file's × {number}"]
    elif column.rule == "custom":
        titles = [f"scaled × {number}"]
    else:
        formula = SCALE_RULES[column.rule].formula
        titles = [f"scaled × {number} ({formula})", f"× {number} ({formula})", f"scaled × {number}"]
    said = [glyphs.say(title) for title in titles]
    return next((title for title in said if len(title) <= width), said[-1][:width])


def head_line(columns: Sequence[Column], width: int, glyphs: Glyphs) -> Line:
    """The titles of the columns, over the cells they belong to."""
    each = cell_width(width, len(columns))
    titles: list[Span] = [
        (("  " + column_title(column, glyphs, each - 3)).ljust(each), role)
        for column, role in zip(columns, COLUMN_ROLES, strict=True)
    ]
    return fitted(((" " * LABEL, "label"), *titles), width)


def row_line(row: Row, width: int, glyphs: Glyphs, marked: bool = False) -> Line:
    """One row; `marked` sets off the row that has the cursor."""
    if row.statistic is None:
        return fitted(((glyphs.say(row.label), "heading"),), width)
    mark = glyphs.cursor if marked else " "
    name = (mark + glyphs.say(row.label)).ljust(LABEL)[:LABEL]
    role: Role = "accent" if marked else "label"
    line: list[Span] = [(name, role)]
    pad = " " * (cell_width(width, len(row.cells)) - CELL)
    for estimate, role in zip(row.cells, COLUMN_ROLES, strict=True):
        value, deviation = cell(estimate, row.statistic, glyphs)
        line.append((value, role))
        line.append((deviation + pad, "dim"))
    return fitted(tuple(line), width)


def cell(estimate: Estimate, statistic: Statistic, glyphs: Glyphs) -> tuple[str, str]:
    """The value, and the rest of the cell: ± standard error and unit. Together CELL cells."""
    factor = 100 if statistic.unit == "share" else 1
    value = None if estimate.value is None else factor * estimate.value
    unit = "%" if factor == 100 and value is not None else " "
    if estimate.stderr is None:
        return aligned(value, glyphs), f" {unit}".ljust(CELL - VALUE)
    return aligned(value, glyphs), f"{glyphs.say(' ±')[-2:]}{error(factor * estimate.stderr, glyphs)}{unit} "


def table_lines(
    columns: Sequence[Column], width: int, glyphs: Glyphs, shown: Sequence[str] | None = None
) -> list[Line]:
    """The table as lines of exactly this width."""
    rows = [row_line(row, width, glyphs) for row in table_rows(columns, shown)]
    return [head_line(columns, width, glyphs), *rows]


def rich_table(columns: Sequence[Column], glyphs: Glyphs) -> Table:
    """The whole table for print and for export."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for column, role in zip(columns, COLUMN_ROLES, strict=True):
        table.add_column(Text("  " + column_title(column, glyphs), PRINTED[role]), no_wrap=True)
    for row in table_rows(columns):
        if row.statistic is None:
            table.add_row(Text(glyphs.say(row.label), PRINTED["heading"]))
            continue
        texts = [Text(" " + glyphs.say(row.label))]
        for estimate, role in zip(row.cells, COLUMN_ROLES, strict=True):
            value, rest = cell(estimate, row.statistic, glyphs)
            texts.append(Text.assemble((value, PRINTED[role]), (rest.rstrip(), PRINTED["dim"])))
        table.add_row(*texts)
    return table
