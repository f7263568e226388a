"""Pairs of histograms on a shared axis, as bars of block characters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ....core.message import message
from ....core.statistics.measurement import Column, HistogramName, column_names
from ....core.theory.prediction import REACH
from ...language.cells import cells as cells_of
from ...language.cells import to_left
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, ends, fitted, line_width
from ..numbers import percent, power, short
from ..results.table import COLUMN_ROLES
from .axes import nice_range

if TYPE_CHECKING:  # the first frame is painted before NumPy is loaded
    from ....core.statistics.histogram import Histogram

_WIDE = 44  # cells per pair from which three or more stand side by side
_LEAST = 27  # cells per pair from which two stand side by side
_TALLEST = 16  # lines of bars: higher ones tell no more
_ROOMY = 8  # lines per group of pairs from which all groups are shown
LOWEST = 4  # lines of the lowest pair: its title, bars for two columns, its axis
# Half of the axis of logits, and the largest standard deviation at which it is not four times as long: that of
# unscaled logits at d_k 512. It stays while d_k grows to 512, so that a hill only widens, and says what is beyond it.
FIRST_AXIS, ON_FIRST_AXIS = 40.0, math.sqrt(REACH)
NAME = 9  # cells before the bars, for the name of the column

# In the order shown. The gradient comes before the Jacobian, whose norm is in the table too.
TITLES: dict[HistogramName, str] = {
    "logits": "logits",
    "weights": "attention weights",
    "entropy": "row entropy",
    "gradient": "‖∂L/∂q‖ of rows",
    "jacobian_norm": "‖J‖_F of rows",
}


class AxisSpan(NamedTuple):
    """The shared axis of a pair of histograms."""

    low: float
    high: float
    labels: tuple[str, str, str]  # at the left end, the middle and the right end


def pair_names(columns: Sequence[Column]) -> list[HistogramName]:
    """Return the histograms that all columns have."""
    return [name for name in TITLES if all(name in column.histograms for column in columns)]


def pairs_at_once(pairs: int, width: int, height: int, least: int = LOWEST) -> int:
    """Return how many of `pairs` fit, each at least `least` lines high if one is.

    An incomplete last group is left out if it would make the others lower.
    """
    across = _across(pairs, width)
    groups = height // least
    if height < _ROOMY * math.ceil(pairs / across):
        groups = min(groups, pairs // across)
    return max(groups, 1) * across


def grid_lines(
    columns: Sequence[Column],
    width: int,
    height: int,
    glyphs: Glyphs,
    curves: Sequence[Histogram | None] = (),
    first: int = 0,
    least: int = LOWEST,
    reach: float | None = None,
    most: int | None = None,
    earlier: Sequence[Column] = (),
) -> list[Line]:
    """Return the pairs side by side, from `first` on, as many as fit in `height` lines, and `most` at most.

    One to five stand in a row, with bars as high as the lines allow. `reach` fixes the axis of logits. Dots show
    where the bars of `earlier` columns ended.
    """
    names = pair_names(columns)[:most]
    across, gap = _across(len(names), width), 2
    wide = (width - gap * (across - 1)) // across
    names = names[first : first + pairs_at_once(len(names), width, height, least)]
    groups = [names[start : start + across] for start in range(0, len(names), across)]
    room = height // len(groups)
    spaced = room >= 7 and len(groups) > 1  # a blank line after groups, once bars have two lines
    tall = min(max((room - 2 - spaced) // len(columns), 1), _TALLEST)
    between: Span = (" " * gap, "text")
    lines: list[Line] = []
    for group in groups:
        if len(groups) > 1:  # a group of fewer pairs has wider ones
            wide = (width - gap * (len(group) - 1)) // len(group)
        pairs = [pair_lines(columns, name, wide, tall, glyphs, curves, reach, earlier) for name in group]
        rest: Span = (" " * (width - len(group) * (wide + gap) + gap), "text")
        for first_part, *parts in zip(*pairs, strict=True):
            line = [*first_part]
            for part in parts:
                line += between, *part
            lines.append((*line, rest))
        if spaced:
            lines.append(fitted((), width))
    return lines[:height]


def _across(pairs: int, width: int) -> int:
    """Return how many pairs stand side by side."""
    return next((count for count in (pairs, 4, 3) if width >= count * _WIDE), 2 if width >= 2 * _LEAST else 1)


def pair_lines(
    columns: Sequence[Column],
    name: HistogramName,
    width: int,
    height: int,
    glyphs: Glyphs,
    curves: Sequence[Histogram | None] = (),
    reach: float | None = None,
    earlier: Sequence[Column] = (),
) -> list[Line]:
    """Return a title, bars of `height` lines for each column, and their shared axis: 2·height + 2 lines.

    The exact law of a score is drawn as a line over the bars of logits, if the bars are high enough to compare; and
    dots where the bars of `earlier` columns ended.
    """
    histograms = [column.histograms[name] for column in columns]
    span = axis_span(histograms, name, glyphs, reach)
    cells = max(width - NAME, 4)
    edges = [span.low + (span.high - span.low) * cell / cells for cell in range(cells + 1)]
    drawn = [*curves] if name == "logits" and height > 1 else []
    drawn += [None] * (len(columns) - len(drawn))
    words, lines = short_names(columns, NAME - 1, glyphs), list[Line]()
    dot, traced = "." if glyphs.ascii else "·", False
    for index, (column, histogram, role) in enumerate(zip(columns, histograms, COLUMN_ROLES, strict=True)):
        counts = histogram.onto(edges)
        curve = drawn[index]
        exact = curve.scaled(column.multiplier).onto(halves(edges)) if curve else ()
        rows = bars(counts, height, glyphs)
        twice = 2 * histogram.total
        expected = [twice * share for share in exact]
        law = curve_rows(expected, counts, height, glyphs)
        trace = trace_rows(earlier[index].histograms[name].onto(edges), counts, height) if curve and earlier else {}
        traced |= bool(trace)
        names = [*[""] * (height - 1), words[index]]
        for number, (label, row) in enumerate(zip(names, rows, strict=True)):
            signs = dict.fromkeys(trace.get(number, ()), dot) | law.get(number, {})
            lines.append(_crossed(to_left(label, NAME), row, signs, role, glyphs))
    title: list[Span] = [(glyphs.say(TITLES[name]), "heading")]
    if any(drawn):
        title.append((glyphs.say("  {line} exact", line=glyphs.line[:1] or "⠤"), "theory"))
    if traced:
        title.append((glyphs.say("  {dot} before", dot=dot), "theory"))
    beyond = outside(histograms, span, width - line_width(tuple(title)) - 1, glyphs)
    lines.insert(0, ends(tuple(title), beyond, width))
    marks = axis_marks(columns, name, glyphs)
    lines.append(((" " * NAME + axis_line(span, cells, glyphs, marks), "dim"),))
    return lines if width == NAME + cells else [fitted(line, width) for line in lines]


def trace_rows(before: Sequence[float], counts: Sequence[float], height: int) -> dict[int, list[int]]:
    """Return the cells in which earlier bars ended, for each line; none unless some bar changed by a line.

    The highest bar of both fills all lines.
    """
    tall, now = height / (max(before) or 1), height / (max(counts) or 1)
    levels = [each * tall for each in before]
    moved = [level - count * now for level, count in zip(levels, counts, strict=True)]
    if -1 < min(moved) <= max(moved) < 1:
        return {}
    ends = [math.ceil(level) - 1 if level >= 0.1 else -1 for level in levels]
    rows: dict[int, list[int]] = {}
    for cell, (left, end, right) in enumerate(zip([-1, *ends[:-1]], ends, [*ends[1:], -1], strict=True)):
        for each in range(max(min(min(left, right) + 1, end), 0), end + 1):  # down to its lower neighbour
            rows.setdefault(height - 1 - each, []).append(cell)
    return rows


def short_names(columns: Sequence[Column], room: int, glyphs: Glyphs) -> list[str]:
    """Return the names of columns, or A and B if one does not fit."""
    names = [glyphs.say(name) for name in column_names(columns)]
    return names if all(cells_of(name) <= room for name in names) else ["A", "B"]


def halves(edges: Sequence[float]) -> list[float]:
    """Return the edges, and the middle of each pair."""
    return [x for low, high in pairwise(edges) for x in (low, (low + high) / 2)] + [*edges[-1:]]


_DOTS = (
    (0x40, 0x04, 0x02, 0x01),
    (0x80, 0x20, 0x10, 0x08),
)  # of braille, from below, in a cell's left and right half


def curve_rows(
    exact: Sequence[float], counts: Sequence[float], height: int, glyphs: Glyphs
) -> dict[int, dict[int, str]]:
    """Return the line of the exact counts on the bars' scale: the signs by cell, for each line that it crosses.

    `exact` has two values a cell, one for each half. Where the line is steep, its dots reach from value to value.
    """
    peak, rows = max(counts, default=0), dict[int, dict[int, str]]()
    if peak <= 0:
        return rows
    bits: dict[tuple[int, int], int] = {}
    before, least, most = None, 0.5 / (len(glyphs.bars) - 1), height - 1e-9
    for at, count in enumerate(exact):
        level = count / peak * height
        if level < least:
            before = None
            continue
        if level > most:
            level = most
        if glyphs.line:
            if at % 2 == 0:
                sign = glyphs.line[int(level % 1 * len(glyphs.line))]
                rows.setdefault(height - 1 - int(level), {})[at // 2] = sign
            continue
        dot = int(level * 4)
        start = dot if before is None else before + (dot > before) - (dot < before)
        for each in range(start, dot + 1) if start <= dot else range(dot, start + 1):
            place = height - 1 - each // 4, at // 2
            bits[place] = bits.get(place, 0) | _DOTS[at % 2][each % 4]
        before = dot
    for (row, cell), dots in bits.items():
        rows.setdefault(row, {})[cell] = chr(0x2800 + dots)
    return rows


def _crossed(label: str, row: str, signs: Mapping[int, str], role: Role, glyphs: Glyphs) -> Line:
    """Return a label and bars with signs in some cells; one over a bar has the bar's colour as background."""
    if not signs:
        return ((label + row, role),)
    on_bar: Role = "over_unscaled" if role == "unscaled" else "over_scaled"
    high = glyphs.bars[len(glyphs.bars) // 2 + 1 :]
    spans: list[Span] = [(label, role)]
    done = 0
    for cell in (*sorted(signs), len(row)):
        pieces: list[Span] = [(row[done:cell], role)]
        if cell in signs:
            pieces.append((signs[cell], on_bar if row[cell] in high else "theory"))
        for text, of in pieces:
            if spans[-1][1] == of:
                spans[-1] = (spans[-1][0] + text, of)
            elif text:
                spans.append((text, of))
        done = cell + 1
    return tuple(spans)


def bars(counts: Sequence[float], height: int, glyphs: Glyphs) -> list[str]:
    """Return the lines of a bar chart, top line first; the largest count fills all lines.

    A count that is not zero always has at least the smallest bar.
    """
    steps = len(glyphs.bars) - 1
    peak = max(counts, default=0)
    if peak <= 0:
        return [" " * len(counts)] * height
    unit = steps * height / peak
    levels = [round(count * unit) or int(count >= 0.5) for count in counts]
    above = steps * (height - 1)
    ramp = glyphs.bars[0] * above + glyphs.bars + glyphs.bars[-1] * above  # a line shows only its own steps
    return ["".join(map(ramp[row * steps :].__getitem__, levels)) for row in range(height)]


def sparkline(histogram: Histogram, low: float, high: float, cells: int, glyphs: Glyphs) -> str:
    """Return a histogram from `low` to `high` as one line of `cells`; its bars do not touch the line above."""
    edges = [low + (high - low) * cell / cells for cell in range(cells + 1)]
    return bars(histogram.onto(edges), 1, glyphs._replace(bars=glyphs.bars[:-1]))[0]


def axis_span(
    histograms: Sequence[Histogram], name: HistogramName, glyphs: Glyphs, reach: float | None = None
) -> AxisSpan:
    """Return the axis of a pair: fixed if the quantity has natural bounds, with round ends for logits.

    With `reach`, the largest standard deviation of centred logits at the widths of interest, the axis of logits has a
    length for it, in steps of four, and does not depend on what was drawn.
    """
    axis = max((histogram.axis for histogram in histograms), key=lambda axis: axis.high)
    if axis.log10:
        low, middle, high = (power(at, glyphs) for at in (axis.low, (axis.low + axis.high) / 2, axis.high))
        return AxisSpan(axis.low, axis.high, (low, middle, high))
    if name != "logits":
        words = [short(value, glyphs) for value in (axis.low, (axis.low + axis.high) / 2, axis.high)]
        last = message("ln n {words}", words=words[2]) if name == "entropy" else words[2]
        return AxisSpan(axis.low, axis.high, (words[0], words[1], last))
    low, high = _extent(histograms)
    half = FIRST_AXIS * axis_growth(reach) if reach else 0.0
    if abs(low + high) < half / 2:
        ends = [short(value, glyphs) for value in (-half, 0, half)]
        return AxisSpan(-half, half, (ends[0], ends[1], ends[2]))
    if low < 0 < high and min(-low, high) > max(-low, high) / 2:
        low, high = -max(-low, high), max(-low, high)  # nearly symmetric about 0: make it exactly so
    low, high = nice_range(low, high)
    words = [short(value, glyphs) for value in (low, (low + high) / 2, high)]
    return AxisSpan(low, high, (words[0], words[1], words[2]))


def axis_growth(reach: float) -> float:
    """Return how many times the first one the axis of logits is long: a power of four, small for small logits."""
    beyond = math.ceil(math.log(reach / ON_FIRST_AXIS, 4) - 1e-9)
    whole = math.ceil(math.log(3 * reach / FIRST_AXIS, 4) - 1e-9)  # three standard deviations
    return 4.0 ** (whole if whole < 0 else max(beyond, 0))


def axis_marks(columns: Sequence[Column], name: HistogramName, glyphs: Glyphs) -> list[tuple[float, str]]:
    """Return the places on an axis that have a meaning: ±3σ of the wider column's logits, 1/n."""
    if name == "weights":
        keys = {column.keys for column in columns}
        return [(-math.log10(n), "1/n") for n in keys if n] if len(keys) == 1 else []
    if name != "logits":
        return []
    known = [(column.measured.get("logit_mean"), column.measured.get("logit_std")) for column in columns]
    laws = [(mean.value, std.value) for mean, std in known if mean and std]
    widest = max(((std, mean) for mean, std in laws if mean is not None and std), default=None)
    if widest is None:
        return []
    std, mean = widest
    return [(mean + side * 3 * std, glyphs.say(f"{sign}3σ")) for side, sign in ((-1, "−"), (1, "+"))]


def axis_line(span: AxisSpan, cells: int, glyphs: Glyphs, marks: Sequence[tuple[float, str]] = ()) -> str:
    """Return the axis: a rule with the labels of its ends, its middle and, if all fit, the marks written over it."""
    left, middle, right = span.labels
    line = list(glyphs.rule * cells)

    def write(text: str, at: int) -> None:
        at = min(max(at, 0), cells - len(text))
        line[at : at + len(text)] = text

    if len(left) + len(middle) + len(right) + 6 <= cells:
        write(f" {middle} ", (cells - len(middle)) // 2 - 1)
    write(f"{left} ", 0)
    write(f" {right}", cells - len(right) - 1)
    unmarked = [*line]
    for value, label in marks:
        cell = math.floor((value - span.low) / (span.high - span.low) * cells)
        if not 0 <= cell < cells:
            continue
        tick = glyphs.uprights[0]
        for text, at in ((f"{tick}{label}", cell), (f"{label}{tick}", cell - len(label))):
            before, after = line[max(at - 1, 0) : at], line[at + len(text) : at + len(text) + 1]
            beside = before if text.startswith(label) else after  # the tick may touch the number of an end
            if at >= 0 and {*line[at : at + len(text)], *beside} <= {glyphs.rule, " "}:
                write(text, at)
                break
        else:
            return "".join(unmarked)[:cells]  # one of a pair would mislead
    return "".join(line)[:cells]


def outside(histograms: Sequence[Histogram], span: AxisSpan, room: int, glyphs: Glyphs) -> Line:
    """Return the shares below and above the axis, such as `21 % below the axis`; empty below 0.1 %.

    A share has its histogram's role; the last two words are left out if `room` is too small for them.
    """
    shares: dict[str, list[Span]] = {message("below"): [], message("above"): []}
    for histogram, role in zip(histograms, COLUMN_ROLES, strict=True):
        below, through = histogram.below([span.low, span.high])
        for side, beyond in (("below", below), ("above", histogram.total - through)):
            share = beyond / max(histogram.total, 1)
            if share >= 0.001:
                shares[side].append((percent(share), role))
    parts: list[Span] = []
    for side, spans in shares.items():
        for number, (text, role) in enumerate(spans):
            parts.append((" / " if number else ", " if parts else "", "dim"))
            parts.append((text, role))
        if spans:
            parts.append((f" {glyphs.say(side)}", "dim"))
    if not parts:
        return ()
    line = tuple(part for part in parts if part[0])
    last = message("below the axis") if line[-1][0] == f" {glyphs.say('below')}" else message("above the axis")
    full: Line = (*line[:-1], (f" {glyphs.say(last)}", "dim"))
    return full if line_width(full) <= room else line


def _extent(histograms: Sequence[Histogram]) -> tuple[float, float]:
    """Return the lowest 0.05 % quantile and the highest 99.95 % quantile of the histograms that are not empty."""
    points = [histogram.quantiles((0.0005, 0.9995)) for histogram in histograms if histogram.total]
    points = points or [[histogram.axis.low, histogram.axis.high] for histogram in histograms]
    return min(low for low, _ in points), max(high for _, high in points)
