"""A run as lines: a map of its heads at one step, and the heads that come near the limit, worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import set_cell_size

from ....core.message import counted, joined, message
from ....core.statistics.catalogue import STATISTIC, STATISTICS
from ....core.tables.runs import change_words, offender_words
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, ends, fitted, line_width, window
from ..numbers import short, short_in_unit, signed
from ..plots.axes import Axis, nice_range
from ..plots.plot import Plot, Series, draw

if TYPE_CHECKING:
    from ....core.watching.limits import Offender
    from ....core.watching.snapshot import Snapshot


Size: TypeAlias = tuple[int, int]  # width and height in cells

LOGITS = "max_logit"
LABELS = {statistic.name: statistic.label for statistic in STATISTICS} | {LOGITS: "largest |logit|"}

_LEAST_TREND = 8  # cells of a trend
_HIGHEST = 8  # lines of the selected head's trend
_SPAN = 100.0  # the limit over the least value that the trends of the list show
_ROOMY, _ROOMY_BESIDE = 60, 90  # cells that long titles need; beside a baseline
_NARROW = 48  # cells below which the change since a baseline stands instead of the growth
_NUMBER, _NUMBERS = 6, 13  # cells for a number, and for its change, too
_CELL = 3  # cells of a head, if there is space
_MARGIN = 5  # cells for the name of a layer


def step_line(shown: Snapshot, width: int, glyphs: Glyphs) -> Line:
    """Return the step, its place among the others, and the baseline."""
    place = shown.steps.index(shown.step) + 1 if shown.step in shown.steps else len(shown.steps)
    where = glyphs.say("step {step}, {place} of {count}", step=shown.step, place=place, count=len(shown.steps))
    if shown.baseline is not None:
        since = glyphs.say(" since {baseline}", baseline=shown.baseline)
        fits = cells_of(where + since) <= width
        return (where if fits else glyphs.say("step {step}", step=shown.step), "text"), (since, "unscaled")
    hint = glyphs.say("   End: newest")
    return (where, "text"), (hint if place < len(shown.steps) and cells_of(where + hint) <= width else "", "dim")


def summary(shown: Snapshot, brief: bool = False) -> str:
    """Return what the step shows: the largest change, the heads over the limit, and which passes it next.

    In `brief`, return the change only, or without a baseline the heads over the limit.
    """
    said = _change_words(shown) if shown.baseline is not None else ""
    if brief:
        return said or message("{over}.", over=_over_words(shown))
    limit = _limit_words(shown)
    return joined([said, limit]) if said else limit


def _change_words(shown: Snapshot) -> str:
    """Say how the largest |logit| of heads changed since the baseline."""
    if shown.changes is None:
        return message(
            "Step {baseline} has other layers or heads, so there is no change to show.", baseline=shown.baseline
        )
    if shown.step == shown.baseline:
        return message("Step {step} is the baseline: other steps are compared with it.", step=shown.step)
    changes = [(change, each) for each in shown.ranked if (change := shown.change(each.layer, each.head)) is not None]
    if not changes:
        return message("Since step {baseline}, no largest |logit| is known to have changed.", baseline=shown.baseline)
    grew = sum(change > 0 for change, _ in changes)
    most, worst = changes[0]
    place = message("layer {layer} head {head}", layer=shown.layers[worst.layer], head=worst.head)
    if not grew:
        return message("Since step {baseline}, the largest |logit| of no head grew.", baseline=shown.baseline)
    return message(
        "Since step {baseline}, {grew} of {count} heads grew, most {place} ({most}).",
        baseline=shown.baseline,
        grew=grew,
        count=len(changes),
        place=place,
        most=change_words(most),
    )


def _over_words(shown: Snapshot) -> str:
    if not shown.over:
        return message("No head is over {limit:g}", limit=shown.limit)
    return counted(
        "{number} head is over {limit:g}", "{number} heads are over {limit:g}", shown.over, limit=shown.limit
    )


def _limit_words(shown: Snapshot) -> str:
    said = _over_words(shown)
    soon = next((each for each in shown.ranked if not each.over and each.passes_in is not None), None)
    if soon is None:
        return message("{over}.", over=said)
    _, growth, steps = offender_words(soon, shown.per)
    place = message("layer {layer} head {head}", layer=shown.layers[soon.layer], head=soon.head)
    return counted(
        "{over}; {place}, {growth} per step, passes it in about {steps} steps.",
        "{over}; {place}, {growth} per {number:,} steps, passes it in about {steps} steps.",
        shown.per,
        over=said,
        place=place,
        growth=growth,
        steps=steps,
    )


def ranked_lines(
    shown: Snapshot,
    width: int,
    glyphs: Glyphs,
    first: int = 0,
    count: int | None = None,
    chosen: tuple[int, int] | None = None,
) -> list[Line]:
    """Return a head line and lines for `count` heads from the `first` on, each with its trend over the steps."""
    roomy = width >= (_ROOMY if shown.changes is None else _ROOMY_BESIDE)
    if roomy:
        growth = counted("per step", "per {number:,} steps", shown.per)
        header = [message("largest |logit|"), growth, message("steps to {limit:g}", limit=shown.limit)]
    else:
        growth = message("per {steps:,}", steps=shown.per)
        header = ["|logit|", growth, message("to {limit:g}", limit=shown.limit)]
    header = [message("head"), *header]
    ranked = shown.ranked[first : None if count is None else first + count]
    rows = [[place_of(shown, each.layer, each.head), *offender_words(each, shown.per)] for each in ranked]
    if shown.changes is not None:
        for shown_cells, word in zip((header, *rows), _changes(shown, ranked, roomy), strict=True):
            shown_cells.insert(2, word)
            if width < _NARROW:
                del shown_cells[3]  # the growth
    if growth in header:
        _align(rows, header.index(growth))
    rows = [[place, *(signed(glyphs.say(cell), glyphs) for cell in others)] for place, *others in rows]
    wide = [max(cells_of(glyphs.say(cell)) for cell in column) for column in zip(header, *rows, strict=True)]
    cells = width - sum(wide) - 2 * len(wide)
    cells = cells if cells >= _LEAST_TREND and len(shown.steps) > 2 else 0
    title = _joined(header, wide, glyphs) + (glyphs.say("  trend") if cells else "")
    lines = [fitted(((title, "heading"),), width)]
    for row, each in zip(rows, ranked, strict=True):
        here = (each.layer, each.head)
        role: Role = "cursor" if here == chosen else "alert" if each.over else "text"
        line: Line = ((_joined(row, wide, glyphs), role),)
        if cells and here in shown.trends:
            trend = shown.trends[here]
            columns = max(cells, len(trend))
            wider = [trend[column * len(trend) // columns] for column in range(columns if trend else 0)]
            [bars] = chart(wider, (cells, 1), shown.limit / _SPAN, shown.limit, glyphs)
            line = (*line, ("  ", "text"), (bars, "scaled"))
        lines.append(fitted(line, width))
    return lines


def _align(rows: Sequence[list[str]], column: int) -> None:
    """Pad the factors of a column, so that their signs and their decimal points are in one line."""
    found = [row for row in rows if row[column].startswith("× ")]
    numbers = [row[column].removeprefix("× ") for row in found]
    decimals = max((len(number.partition(".")[2]) for number in numbers), default=0)
    padded = [number + " " * (decimals - len(number.partition(".")[2])) for number in numbers]
    for row, number in zip(found, padded, strict=True):
        row[column] = f"× {number.rjust(max(map(len, padded)))}"


def _changes(shown: Snapshot, ranked: Sequence[Offender], roomy: bool) -> list[str]:
    """Return a head and the changes of these heads."""
    title = message("since {baseline}", baseline=shown.baseline) if roomy else message("change")
    return [title, *(change_words(shown.change(each.layer, each.head)) for each in ranked)]


def place_of(shown: Snapshot, layer: int, head: int) -> str:
    """Return a head's layer and number, such as 7/3."""
    return f"{shown.layers[layer]}/{head}"


def head_lines(shown: Snapshot, chosen: tuple[int, int], size: Size, glyphs: Glyphs) -> list[Line]:
    """Return all statistics of a head, and, unless the height is 0, its largest |logit| over the steps."""
    width, height = size
    layer, head = chosen
    title = glyphs.say("layer {layer} head {head}", layer=shown.layers[layer], head=head)
    lines: list[Line] = [((title, "heading"),)]
    labels = {name: f"{glyphs.say(LABELS.get(name, name))}  " for name in shown.values}
    wide = min(max(map(cells_of, labels.values())), max(width - (_NUMBER if shown.changes is None else _NUMBERS), 1))
    for name, table in shown.values.items():
        value, unit = table[layer][head], _unit(name)
        number = (
            glyphs.say("not finite")
            if math.isinf(value)
            else glyphs.say("—")
            if math.isnan(value)
            else short_in_unit(value, unit, glyphs)
        )
        line: Line = ((set_cell_size(labels[name], wide - 1) + " ", "label"), (number, "text"))
        if shown.changes is not None and name in shown.changes:
            change = shown.changes[name][layer][head]
            words = f" {_change(change, unit, glyphs)}" if math.isfinite(change) else ""
            line = (*line, (words, "unscaled"))
        lines.append(line)
    known = [value for value in shown.trends.get(chosen, ()) if math.isfinite(value) and value > 0]
    if len(known) > 2 and height:
        low, high = min(known), max(known)
        rows = min(max(height - len(lines) - 2, 1), _HIGHEST)
        bars = chart(shown.trends[chosen], (width - 1, rows), low, high, glyphs)
        ends = message("{low} to {high}", low=short(low, glyphs), high=short(high, glyphs))
        words = message("steps {first} to {last}: {ends}", first=shown.steps[0], last=shown.step, ends=ends)
        said = glyphs.say(words)
        said = said if cells_of(said) <= width else glyphs.say(ends)
        drawn: list[Line] = [((row, "scaled"),) for row in bars]
        lines = [*lines, (), *drawn, ((said, "dim"),)]
    return [fitted(line, width) for line in lines]


def _change(value: float, unit: str, glyphs: Glyphs) -> str:
    """Return a change with its sign."""
    sign = "+" if value > 0 else signed("-", glyphs) if value < 0 else ""
    return sign + short_in_unit(abs(value), unit, glyphs)


def _unit(name: str) -> str:
    return STATISTIC[name].unit if name in STATISTIC else "number"


def _joined(cells: Sequence[str], wide: Sequence[int], glyphs: Glyphs) -> str:
    said = [glyphs.say(cell) for cell in cells]
    return "  ".join(to_right(cell, size) for cell, size in zip(said, wide, strict=True))


def chart(values: Sequence[float], size: Size, low: float, high: float, glyphs: Glyphs) -> list[str]:
    """Return numbers as bars, from the top row down, on a logarithmic axis from `low` to `high`.

    A number that is not finite is a full bar with `!` on top; one that is missing is blank. A bar of one row leaves a
    gap to the row above.
    """
    cells, rows = size
    picked = list(values)
    if len(picked) > cells:
        picked = [values[number * (len(values) - 1) // (cells - 1)] for number in range(cells)]
    full = len(glyphs.bars) - (1 if rows > 1 else 2)

    def bar(value: float) -> str:
        """Return a bar, from the bottom up."""
        if math.isnan(value):
            return " " * rows
        if math.isinf(value):
            return glyphs.bars[-1] * (rows - 1) + "!"
        part = _logarithmic(max(value, low), low, high) if high > low else 0.0
        height = 1 + min(int(part * full * rows), full * rows - 1)
        return "".join(glyphs.bars[min(max(height - full * row, 0), full)] for row in range(rows))

    bars = [bar(value) for value in picked]
    return ["".join(each[row] for each in bars) for row in reversed(range(rows))]


def _logarithmic(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _linear(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low)


def wanted_width(shown: Snapshot) -> int:
    """Return the width of a map with whole cells."""
    return _MARGIN + _CELL * max(shown.heads)


def map_lines(shown: Snapshot, statistic: str, chosen: tuple[int, int], size: Size, glyphs: Glyphs) -> list[Line]:
    """Return a line for each layer, a cell for each head: darker is larger, `!` is over the limit.

    Logits are shaded by their logarithm, other statistics linearly. Beside a baseline, a cell is the change since it.
    Of a map that does not fit, return the part around the chosen head.
    """
    width, height = size
    table = _mapped(shown, statistic)
    numbers = [value for row in table for value in row if math.isfinite(value)]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    by_logarithm = statistic == LOGITS and shown.baseline is None and low > 0
    part_of = _logarithmic if by_logarithm else _linear
    unit = _unit(statistic)
    flat = short_in_unit(low, unit, glyphs) == short_in_unit(high, unit, glyphs)  # the rest is noise
    most = max(shown.heads)
    each = min(max((width - _MARGIN) // most, 1), _CELL)
    down, across = height - 2, (width - _MARGIN) // each
    first_layer, first_head = window(chosen[0], len(table), down), window(chosen[1], most, across)
    over = {(one.layer, one.head) for one in shown.ranked if one.over}
    lines: list[Line] = []
    for layer in range(first_layer, min(first_layer + down, len(table))):
        spans: list[Span] = [(f"{shown.layers[layer][: _MARGIN - 1]:>{_MARGIN - 1}} ", "label")]
        for head in range(first_head, min(first_head + across, len(table[layer]))):
            here, value = (layer, head), table[layer][head]
            part = 0.0 if flat or math.isinf(value) else part_of(value, low, high)
            text = _shade(value, part, here == chosen, glyphs)
            text = "!" + text[1:] if here in over and each == 1 else text
            text = set_cell_size(text + ("!" if here in over else ""), each)
            spans.append((text, "cursor" if here == chosen else "alert" if here in over else "scaled"))
        lines.append(fitted(tuple(spans), width))
    legend = _legend(low, high, unit, glyphs, shown.baseline is not None) if numbers else ""
    legend = legend or glyphs.say("no numbers to show")
    if over:
        words = glyphs.say("! over the limit")
        legend += f"  {words if line_width(((legend + words, 'dim'),)) + 2 <= width else glyphs.say('! over')}"
    if down < len(table) or across < most:
        legend += glyphs.say("  part of {layers} x {heads}", layers=len(table), heads=most)
    return [*lines, (), fitted(((legend, "dim"),), width)]


def _legend(low: float, high: float, unit: str, glyphs: Glyphs, changes: bool) -> str:
    """Return the values of the lightest and the darkest shade; a single one if they do not differ."""
    least, most = (
        _change(each, unit, glyphs) if changes else short_in_unit(each, unit, glyphs) for each in (low, high)
    )
    if least == most:
        return glyphs.say("all {value}", value=least)
    return glyphs.say("{low} to {high}", low=f"{glyphs.shades[1]} {least}", high=f"{glyphs.shades[-1]} {most}")


def _mapped(shown: Snapshot, statistic: str) -> Sequence[Sequence[float]]:
    """Return what the map shows of every head: a statistic, or its change since the baseline; NaN if it has none."""
    table = shown.values[statistic]
    if shown.baseline is None:
        return table
    return (shown.changes or {}).get(statistic) or [[math.nan] * len(row) for row in table]


def head_at(shown: Snapshot, chosen: tuple[int, int], size: Size, x: int, y: int) -> tuple[int, int] | None:
    """Return the head at a cell of the lines that `map_lines` returns for the same size, if there is one."""
    width, height = size
    most = max(shown.heads)
    each = min(max((width - _MARGIN) // most, 1), _CELL)
    layer = window(chosen[0], len(shown.layers), height - 2) + y
    head = window(chosen[1], most, (width - _MARGIN) // each) + (x - _MARGIN) // each
    inside = x >= _MARGIN and 0 <= y < height - 2 and layer < len(shown.layers)
    return (layer, head) if inside and head < shown.heads[layer] else None


def _shade(value: float, part: float, chosen: bool, glyphs: Glyphs) -> str:
    """Return the two cells of a value, which is this `part` of the way from the lightest shade to the darkest.

    The chosen head has a digit from 0 to 9, because a reversed block would be blank.
    """
    if math.isnan(value):
        return " "
    steps = len(glyphs.shades) - 1
    part = 1.0 if math.isinf(value) else part
    if chosen:
        return to_left(str(min(int(part * 10), 9)), 2)
    return glyphs.shades[1 + min(int(part * steps), steps - 1)] * 2


LEAST = 8  # lines of a chart, with its title and its axis


def chart_lines(shown: Snapshot, chosen: tuple[int, int], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return exactly `height` lines; empty for a head with fewer than three finite values.

    Where its title does not fit, the limit and the largest value stand alone.
    """
    values = shown.trends.get(chosen, ())
    until = [step for step in shown.steps if step <= shown.step]
    picked = [until[number * (len(until) - 1) // max(len(values) - 1, 1)] for number in range(len(values))]
    points = [(float(step), value) for step, value in zip(picked, values, strict=True) if math.isfinite(value)]
    steps = sorted({step for step, _ in points})
    if len(steps) < 3 or height < LEAST:
        return []
    layer, head = chosen
    largest = max(value for _, value in points)
    _, top = nice_range(0, max(largest, shown.limit))
    limit = [(steps[0], shown.limit), (steps[-1], shown.limit)]
    plot = Plot(
        Axis(steps[0], steps[-1]),
        Axis(0, top),
        (
            Series("alert", "alert", glyphs.marks[0], exact=limit),
            Series("scaled", "scaled", glyphs.marks[1], exact=points),
        ),
    )
    title: Span = (
        glyphs.say("layer {layer} head {head}: largest |logit| over the steps", layer=shown.layers[layer], head=head),
        "heading",
    )
    note: Span = (
        glyphs.say("limit {limit:g} · largest {largest}", limit=shown.limit, largest=short(largest, glyphs)),
        "dim",
    )
    fits = line_width((title, note)) < width
    head = ends((title,), (note,), width) if fits else fitted((note,), width)
    return [fitted((), width), head, *draw(plot, width, height - 2, glyphs).lines]
