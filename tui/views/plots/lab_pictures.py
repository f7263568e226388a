"""Pictures of the Lab's page: hills of logits, how a row shares its attention, saturation, and entropy over d_k."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ....core.message import joined, message
from ....core.statistics.measurement import NOTHING, Column, column_names
from ....core.statistics.status import SATURATED
from ....core.theory.prediction import ratio_given, status_given
from ...language.cells import to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, merged, wrapped
from ..numbers import percent, short
from ..page import PictureColumns, picture_line
from ..results.table import COLUMN_ROLES, TableContents
from .axes import Axis
from .dots import ENDS, dot_line, saturation_axis, zone_line
from .histograms import axis_growth, axis_line, axis_span, bars
from .plot import Cells, Drawing, Frame, Plot, Point, Series, cell_at, draw_curves, with_cursor

if TYPE_CHECKING:
    from ....core.parameters import Parameters
    from ....core.theory.prediction import PredictedColumn


LOGITS = "logits"
_SHOWN = 0.0005  # the least share beyond the axis that is said


def axis_note(reach: float | None) -> str:
    """Return what the axis is of, and whether it is longer than the first one."""
    growth = axis_growth(reach) if reach else 1.0
    what, how = message("what enters softmax"), message("one fixed axis")
    return joined([what, message("axis × {growth:g}", growth=growth) if growth != 1 else how], " · ")


def logit_lines(
    columns: Sequence[Column], at: PictureColumns, tall: int, glyphs: Glyphs, reach: float | None, axis: bool = True
) -> list[Line]:
    """Return hills of `each` lines with the spread of logits beside them, and what is beyond; then their axis."""
    histograms = [column.histograms["logits"] for column in columns]
    span = axis_span(histograms, "logits", glyphs, reach)
    edges = [span.low + (span.high - span.low) * cell / at.picture for cell in range(at.picture + 1)]
    lines: list[Line] = []
    for column, histogram, name, role in zip(columns, histograms, column_names(columns), COLUMN_ROLES, strict=True):
        below = histogram.below([span.low, span.high])
        total = max(histogram.total, 1)
        sides = below[0] / total, (histogram.total - below[1]) / total
        said = message("{share} beyond", share=percent(sum(sides)))
        beyond = "" if sum(sides) < _SHOWN else glyphs.fitting((said, ""), at.words - 2)  # else the arrows alone
        spread = _one_decimal(column.measured.get("logit_std", NOTHING).value, glyphs)
        words = [*[""] * (tall - 2), *([beyond] if tall > 1 else []), _spread(spread, at.words, glyphs)]
        for number, row in enumerate(bars(histogram.onto(edges), tall, glyphs)):
            last = number == tall - 1
            line = picture_line(
                glyphs.say(name) if last else "", role, ((row, role),), words[number], at, glyphs,
                role if last else "dim",
            )  # fmt: skip
            lines.append(_with_arrows(line, sides, at, glyphs) if last else line)
    if axis:
        rule = axis_line(span, at.picture, glyphs)
        lines.append(fitted(((" " * at.name, "text"), (rule, "dim")), sum(at)))
    return lines


def _one_decimal(value: float | None, glyphs: Glyphs) -> str:
    """Return a value with one decimal, so that it does not jitter; a very small or large one as `short` does."""
    return f"{value:.1f}" if value is not None and 0.95 <= value < 999.95 else short(value, glyphs)


def _spread(number: str, room: int, glyphs: Glyphs) -> str:
    """Return `spread  8.0`, with numbers at one place while they change."""
    return glyphs.say("spread {number}", number=to_right(number, 4)) if room > 12 else glyphs.say("σ {n}", n=number)


def _with_arrows(line: Line, sides: tuple[float, float], at: PictureColumns, glyphs: Glyphs) -> Line:
    """Return the line with arrows beside the picture, at the sides beyond which there are logits."""
    role = line[0][1]
    name: Span = (line[0][0][:-1] + (glyphs.left if sides[0] >= _SHOWN / 2 else " "), role)
    words = line[-1] if line[-1][0].strip() else line[-2]
    arrow = glyphs.right if sides[1] >= _SHOWN / 2 else " "
    spans: list[Span] = [name, *line[1:]]
    spans[spans.index(words)] = (arrow + words[0][1:], words[1])
    return tuple(spans)


def share_bar(
    weights: Sequence[float],
    room: int,
    role: Role,
    glyphs: Glyphs,
    first: float | None = None,
    label: bool = True,
) -> Line:
    """Return a bar of `room` cells, divided among the weights; those too small for a cell of their own are shaded.

    A piece ends in the cell at which its share ends, with a thin gap. With `label`, the largest one has its share
    written in it, if that fits: `first`, or its own.
    """
    full, gap = glyphs.shades[-1], glyphs.lengths[-2] if not glyphs.ascii else "|"
    pieces: list[str] = []
    start, total = 0, 0.0
    for weight in weights:
        total += weight
        end = round(min(total, 1.0) * room)
        if end <= start:
            break
        pieces.append(full * (end - start - 1) + (full if end == room else gap))
        start = end
    text = "".join(pieces)
    share = f" {percent(weights[0] if first is None else first)} " if weights else ""
    if label and pieces and len(pieces[0]) >= len(share) + 3:
        text = f"{full}{share}{text[len(share) + 1 :]}"
    spans: list[Span] = [(text, role), (glyphs.shades[1] * (room - start), "dim")]
    return tuple(span for span in spans if span[0])


SATURATION = "does softmax saturate?"


def gauge_lines(contents: TableContents, at: PictureColumns, glyphs: Glyphs, zones: bool = True) -> list[Line]:
    """Return an axis for each column with its name and status, then the names of the zones."""
    lines: list[Line] = []
    axis = saturation_axis(at.picture)
    for index, (column, name) in enumerate(zip(contents.columns, column_names(contents.columns), strict=True)):
        saturation = contents.theory[index].saturation if contents.theory else None
        role, ratio = COLUMN_ROLES[index], ratio_given(saturation, column.measured)
        word = status_given(saturation, column.measured) or "—"
        picture = dot_line(
            axis, ratio, SATURATED, role, glyphs, (ENDS[0], ratio) if ratio else None, rest=(glyphs.rule, "frame")
        )
        lines.append(picture_line(glyphs.say(name), role, picture, glyphs.say(word), at, glyphs))
    if zones:
        lines.append(fitted(((" " * at.name + zone_line(at.picture, glyphs), "dim"),), sum(at)))
    return lines


def gauge_note(contents: TableContents) -> str:
    """Return the d_k at which each column is saturated, `unscaled saturated from d_k 10 up`; empty if none is."""
    known = [
        (name, column.saturation)
        for name, column in zip(column_names(contents.columns), contents.theory, strict=False)
        if column.saturation and column.saturation.saturated_at
    ]
    return joined([joined([name, saturation.words()[0]]) for name, saturation in known], " · ")


ENTROPY = "entropy over d_k"
ENTROPY_NOTE = message("exact, no sampling")
Curve: TypeAlias = tuple[tuple[float, float], ...]  # d_k, entropy in nats; empty if no exact value is known

WIDTHS = tuple(sorted({round(2 ** (half / 2)) for half in range(25)}))  # d_k from 1 to 4096
_UNKNOWN = message("No exact value is known for these scores; Scales has measured curves.")


def curves_of(cells: Mapping[tuple[int, int], Sequence[PredictedColumn]]) -> tuple[Curve, ...]:
    """Return the curve of each column through the exact values at some d_k and a number of keys."""
    known = [
        (d_k, [column.values["entropy"] for column in columns]) for (d_k, _), columns in cells.items() if columns
    ]
    columns = range(len(COLUMN_ROLES))
    return tuple(tuple((d_k, h) for d_k, values in known if (h := values[at]) is not None) for at in columns)


def entropy_lines(
    curves: tuple[Curve, ...],
    columns: Sequence[Column],
    p: Parameters,
    at: PictureColumns,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Return the curves from d_k 1 to 4096, from 0 to ln n, with the measured entropies at d_k and an axis below."""
    if not any(curves):
        return [fitted(((" ", "dim"), *line), sum(at)) for line in wrapped(glyphs.say(_UNKNOWN), sum(at) - 2, "dim")]
    drawing = _drawing(curves, p.n_keys, at, height - 1, glyphs)
    here: list[tuple[Series, Point]] = []
    for curve, column in zip(drawing.at.plot.series, columns, strict=True):
        value = column.measured["entropy"].value if "entropy" in column.measured else None
        if value is not None:
            here.append((curve, Point(p.d_k, value)))
    ends = dict[int, tuple[str, Role]]()
    for curve, name in zip(drawing.at.plot.series, column_names(columns), strict=True):
        row = cell_at(drawing.at.down(curve.exact[-1][1]), drawing.at.rows) if curve.exact else None
        if row is not None:
            ends.setdefault(row, (name, curve.role))
    lines: list[Line] = []
    for row, line in enumerate(with_cursor(drawing, p.d_k, here, glyphs)):
        name = _EVEN if row == 0 else _ONE_KEY if row == drawing.at.rows - 1 else ""
        words, role = ends.get(row, ("", "dim"))
        lines.append(picture_line(glyphs.say(name), "dim", line, glyphs.say(words), at, glyphs, role))
    return [*lines, fitted(((" " * at.name, "text"), (_axis(drawing.at, p.d_k, glyphs), "dim")), sum(at))]


_EVEN, _ONE_KEY = message("even"), message("one key")


@lru_cache(maxsize=4)
def _drawing(curves: tuple[Curve, ...], n_keys: int, at: PictureColumns, rows: int, glyphs: Glyphs) -> Drawing:
    """Return the curves without the cursor, which are the same at every d_k."""
    thin: tuple[Role, Role] = ("thin_unscaled", "thin_scaled")
    series = [Series(role, thin[n], glyphs.marks[n], exact=curves[n]) for n, role in enumerate(COLUMN_ROLES)]
    plot = Plot(Axis(WIDTHS[0], WIDTHS[-1], 2), Axis(0.0, max(math.log(n_keys), 1e-9)), series)
    frame = Frame(plot, 0, at.picture, rows)
    cells: Cells = [[(" ", "text")] * at.picture for _ in range(rows)]
    draw_curves(cells, frame, glyphs)
    return Drawing(frame, [merged(row) for row in cells])


def _axis(at: Frame, d_k: int, glyphs: Glyphs) -> str:
    """Return the axis of d_k with the value of the cursor and, where they do not touch it, those of its ticks."""
    line = [glyphs.rule] * at.columns
    taken: set[int] = set()
    for value in (d_k, *(4**power for power in range(7))):
        text, cell = f"{value}", cell_at(at.across(value), at.columns)
        if value == d_k:
            text = f" {text} "
        if cell is None:
            continue
        start = min(max(cell - (len(text) - 1) // 2, 0), at.columns - len(text))
        if taken.isdisjoint(range(start - 1, start + len(text) + 1)):
            line[start : start + len(text)] = text
            taken |= {*range(start, start + len(text))}
    return "".join(line)
