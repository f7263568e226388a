"""Pairs of histograms on one axis, as bars of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ...core.statistics.measurement import Column, HistogramName
from .axes import nice_range
from .glyphs import Glyphs
from .lines import Line, Role, Span, ends, fitted
from .numbers import percent, power, short
from .table import COLUMN_ROLES, column_word

if TYPE_CHECKING:  # a first frame is painted before NumPy is loaded
    from ...core.lab.prediction import ScoreCurve
    from ...core.statistics.histogram import Histogram

_WIDE = 44  # cells from which a pair reads well, so that four may stand side by side
_LEAST = 27  # cells of the narrowest pair beside another
_TALLEST = 6
_ROOMY = 8  # lines from which on one more group of pairs does not take them from the others
LOWEST = 4  # lines of the lowest pair: its title, bars for two columns, its axis
NAME = 9  # cells before the bars, for the word that says whose they are

TITLES: dict[HistogramName, str] = {
    "logits": "logits",
    "weights": "attention weights",
    "entropy": "row entropy",
    "gradient": "‖∂L/∂q‖ of rows",
    "jacobian_norm": "‖J‖_F of rows",
}


class AxisSpan(NamedTuple):
    """The axis that both histograms of a pair are drawn on, with the words under it."""

    low: float
    high: float
    labels: tuple[str, str, str]  # at its left end, its middle and its right end


def pair_names(columns: Sequence[Column]) -> list[HistogramName]:
    """The histograms that all columns have."""
    return [name for name in TITLES if all(name in column.histograms for column in columns)]


def pairs_at_once(pairs: int, width: int, height: int) -> int:
    """How many of so many pairs have place; a last group that is not full has to leave the others their height."""
    across = _across(pairs, width)
    groups = height // LOWEST
    if height < _ROOMY * math.ceil(pairs / across):
        groups = min(groups, pairs // across)
    return max(groups, 1) * across


def grid_lines(
    columns: Sequence[Column],
    width: int,
    height: int,
    glyphs: Glyphs,
    curve: ScoreCurve | None = None,
    first: int = 0,
) -> list[Line]:
    """The pairs side by side, from the `first` on, as many as there is place for; at most `height` lines.

    One to five stand in a row, with bars as high as the room allows. Where there are gradients and no room for all,
    they come before what the table says of the Jacobian.
    """
    names = pair_names(columns)
    across, gap = _across(len(names), width), 2
    each = (width - gap * (across - 1)) // across
    names = names[first : first + pairs_at_once(len(names), width, height)]
    groups = [names[start : start + across] for start in range(0, len(names), across)]
    room = height // len(groups)
    spaced = room >= 7  # a blank line between groups, once bars have two lines
    tall = min(max((room - 2 - spaced) // len(columns), 1), _TALLEST)
    between: Span = (" " * gap, "text")
    lines: list[Line] = []
    for group in groups:
        pairs = [pair_lines(columns, name, each, tall, glyphs, curve) for name in group]
        rest: Span = (" " * (width - len(group) * (each + gap) + gap), "text")
        for first_part, *parts in zip(*pairs, strict=True):
            line = [*first_part]
            for part in parts:
                line += between, *part
            lines.append((*line, rest))
        if spaced:
            lines.append(fitted((), width))
    return lines[:height]


def _across(pairs: int, width: int) -> int:
    """How many pairs stand side by side."""
    return next((many for many in (pairs, 4) if width >= many * _WIDE), 2 if width >= 2 * _LEAST else 1)


def pair_lines(
    columns: Sequence[Column],
    name: HistogramName,
    width: int,
    height: int,
    glyphs: Glyphs,
    curve: ScoreCurve | None = None,
) -> list[Line]:
    """A title, bars of `height` lines for each column, and their one axis; 2·height + 2 lines.

    The exact law of a score is drawn as dots over the bars of logits, where bars are high enough to compare.
    """
    histograms = [column.histograms[name] for column in columns]
    span = axis_span(histograms, name, glyphs)
    cells = max(width - NAME, 4)
    edges = [span.low + (span.high - span.low) * cell / cells for cell in range(cells + 1)]
    drawn = curve if name == "logits" and height > 1 else None
    title: list[Span] = [(glyphs.say(TITLES[name]), "heading")]
    if drawn is not None:
        title.append((f"  {glyphs.dot} exact", "theory"))
    lines: list[Line] = [ends(tuple(title), outside(histograms, span), width)]
    for column, histogram, role in zip(columns, histograms, COLUMN_ROLES, strict=True):
        counts = histogram.onto(edges)
        exact = drawn.onto([edge / column.multiplier for edge in edges]) if drawn else None
        rows = bars(counts, height, glyphs)
        dots = curve_rows([share * histogram.total for share in exact], counts, height, glyphs) if exact else {}
        names = [*[""] * (height - 1), column_word(column.rule)]
        for number, (label, row) in enumerate(zip(names, rows, strict=True)):
            lines.append(
                _dotted(label.ljust(NAME) + row, [NAME + cell for cell in dots.get(number, ())], role, glyphs)
            )
    lines.append(((" " * NAME + axis_line(span, cells, glyphs), "dim"),))
    return lines if width == NAME + cells else [fitted(line, width) for line in lines]


def curve_rows(exact: Sequence[float], counts: Sequence[float], height: int, glyphs: Glyphs) -> dict[int, list[int]]:
    """Which cells of which line the exact counts pass through, every other one; they share the bars' scale."""
    peak, steps = max(counts, default=0), len(glyphs.bars) - 1
    rows: dict[int, list[int]] = {}
    for cell in range(0, len(exact), 2):
        level = round(exact[cell] / peak * steps * height) if peak > 0 else 0
        if level >= 1:
            rows.setdefault(height - 1 - min((level - 1) // steps, height - 1), []).append(cell)
    return rows


def _dotted(row: str, cells: Sequence[int], role: Role, glyphs: Glyphs) -> Line:
    """A line of bars with dots in some cells; a dot over a bar takes the bar's colour as its ground."""
    over: Role = "over_unscaled" if role == "unscaled" else "over_scaled"
    spans: list[Span] = []
    start = 0
    for cell in cells:
        spans.append((row[start:cell], role))
        covered = glyphs.bars.index(row[cell]) > len(glyphs.bars) // 2
        spans.append((glyphs.dot, over if covered else "theory"))
        start = cell + 1
    return (*spans, (row[start:], role))


def bars(counts: Sequence[float], height: int, glyphs: Glyphs) -> list[str]:
    """Columns as high as their counts, the largest filling all lines; from the top line down.

    What is not zero always shows: at least the smallest bar.
    """
    steps = len(glyphs.bars) - 1
    peak = max(counts, default=0)
    if peak <= 0:
        return [" " * len(counts)] * height
    unit = steps * height / peak
    levels = [round(count * unit) or int(count >= 0.5) for count in counts]
    above = steps * (height - 1)
    ramp = glyphs.bars[0] * above + glyphs.bars + glyphs.bars[-1] * above  # a line shows what lies in its own steps
    return ["".join([ramp[level + row * steps] for level in levels]) for row in range(height)]


def sparkline(histogram: Histogram, low: float, high: float, cells: int, glyphs: Glyphs) -> str:
    """A histogram from low to high in a line of so many cells; its bars do not touch the line above."""
    edges = [low + (high - low) * cell / cells for cell in range(cells + 1)]
    return bars(histogram.onto(edges), 1, replace(glyphs, bars=glyphs.bars[:-1]))[0]


def axis_span(histograms: Sequence[Histogram], name: HistogramName, glyphs: Glyphs) -> AxisSpan:
    """One axis for a pair: fixed where the quantity has natural bounds, round numbers for logits."""
    axis = histograms[0].axis
    if axis.log10:
        low, middle, high = (power(at, glyphs) for at in (axis.low, (axis.low + axis.high) / 2, axis.high))
        return AxisSpan(axis.low, axis.high, (low, middle, high))
    if name != "logits":
        words = [short(value, glyphs) for value in (axis.low, (axis.low + axis.high) / 2, axis.high)]
        return AxisSpan(axis.low, axis.high, (words[0], words[1], words[2]))
    low, high = _extent(histograms)
    if low < 0 < high and min(-low, high) > max(-low, high) / 2:
        low, high = -max(-low, high), max(-low, high)  # what is centred on 0 is drawn about it
    low, high = nice_range(low, high)
    words = [short(value, glyphs) for value in (low, (low + high) / 2, high)]
    return AxisSpan(low, high, (words[0], words[1], words[2]))


def axis_line(span: AxisSpan, cells: int, glyphs: Glyphs) -> str:
    """The axis: a rule with its ends and its middle written into it."""
    left, middle, right = span.labels
    line = list(glyphs.rule * cells)

    def write(text: str, at: int) -> None:
        at = min(max(at, 0), cells - len(text))
        line[at : at + len(text)] = text

    if len(left) + len(middle) + len(right) + 6 <= cells:
        write(f" {middle} ", (cells - len(middle)) // 2 - 1)
    write(f"{left} ", 0)
    write(f" {right}", cells - len(right) - 1)
    return "".join(line)[:cells]


def outside(histograms: Sequence[Histogram], span: AxisSpan) -> Line:
    """How much of each histogram lies below or above the axis, where that is worth saying."""
    parts: list[Span] = []
    for histogram, role in zip(histograms, COLUMN_ROLES, strict=True):
        below, through = histogram.below([span.low, span.high])
        for sign, beyond in (("<", below), (">", histogram.total - through)):
            share = beyond / max(histogram.total, 1)
            if share >= 0.001:
                parts.append((f" {sign} {percent(share)}", role))
    return (("off", "dim"), *parts) if parts else ()


def _extent(histograms: Sequence[Histogram]) -> tuple[float, float]:
    """From the 0.05 % to the 99.95 % point of whichever histogram reaches further."""
    points = [histogram.quantiles((0.0005, 0.9995)) for histogram in histograms]
    return min(low for low, _ in points), max(high for _, high in points)
