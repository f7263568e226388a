"""A run as lines: a map of its heads at one step, and the heads that come near the limit, worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ....core.export.watching import offender_words
from ....core.statistics.catalogue import STATISTICS
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted
from ..numbers import short

if TYPE_CHECKING:
    from ....core.watching.snapshot import Snapshot

Size: TypeAlias = tuple[int, int]  # width and height in cells

LOGITS = "max_logit"
LABELS = {statistic.name: statistic.label for statistic in STATISTICS} | {LOGITS: "largest |logit|"}

_TREND, _LEAST_TREND = 24, 8  # cells of a trend
_ROOMY = 60  # cells that long titles need
_MARGIN = 5  # cells for the name of a layer


def summary(shown: Snapshot) -> str:
    """Return a sentence on the step: how many heads are over the limit, and which passes it next."""
    said = f"{_heads(shown.over)} over {shown.limit:g}" if shown.over else f"No head is over {shown.limit:g}"
    soon = next((each for each in shown.ranked if not each.over and each.passes_in is not None), None)
    if soon is None:
        return f"{said}."
    _, growth, steps = offender_words(soon)
    place = f"layer {shown.layers[soon.layer]} head {soon.head}"
    return f"{said}; {place}, {growth} per 1,000 steps, passes it in about {steps} steps."


def _heads(count: int) -> str:
    return "1 head is" if count == 1 else f"{count} heads are"


def ranked_lines(
    shown: Snapshot,
    width: int,
    glyphs: Glyphs,
    first: int = 0,
    count: int | None = None,
    chosen: tuple[int, int] | None = None,
) -> list[Line]:
    """Return a head line and lines for `count` heads from the `first` on, each with its trend over the steps."""
    header = ("head", "largest |logit|", "per 1,000 steps", f"steps to {shown.limit:g}")
    header = header if width >= _ROOMY else ("head", "|logit|", "per 1,000", f"to {shown.limit:g}")
    ranked = shown.ranked[first : None if count is None else first + count]
    rows = [(place_of(shown, each.layer, each.head), *offender_words(each)) for each in ranked]
    wide = [max(len(glyphs.say(cell)) for cell in column) for column in zip(header, *rows, strict=True)]
    cells = min(width - sum(wide) - 2 * len(wide), _TREND)
    cells = cells if cells >= _LEAST_TREND and len(shown.steps) > 1 else 0
    title = _joined(header, wide, glyphs) + ("  trend" if cells else "")
    lines = [fitted(((title, "heading"),), width)]
    for row, each in zip(rows, ranked, strict=True):
        here = (each.layer, each.head)
        role: Role = "cursor" if here == chosen else "alert" if each.over else "text"
        line: Line = ((_joined(row, wide, glyphs), role),)
        if cells and here in shown.trends:
            line = (*line, ("  ", "text"), (trend(shown.trends[here], cells, shown.limit, glyphs), "scaled"))
        lines.append(fitted(line, width))
    return lines


def place_of(shown: Snapshot, layer: int, head: int) -> str:
    """Return a head's layer and number, such as 7/3."""
    return f"{shown.layers[layer]}/{head}"


def head_lines(shown: Snapshot, chosen: tuple[int, int], width: int, glyphs: Glyphs) -> list[Line]:
    """Return all statistics of a head, and its largest |logit| over the steps."""
    layer, head = chosen
    lines: list[Line] = [((f"layer {shown.layers[layer]} head {head}", "heading"),)]
    for name, table in shown.values.items():
        value = table[layer][head]
        number = "not finite" if math.isinf(value) else short(None if math.isnan(value) else value, glyphs)
        lines.append((((f"{glyphs.say(LABELS.get(name, name))}  ").ljust(24), "label"), (number, "text")))
    if len(shown.trends.get(chosen, ())) > 1:
        lines.append(())
        lines.append(((trend(shown.trends[chosen], width - 1, shown.limit, glyphs), "scaled"),))
        lines.append(((f"its steps; a full bar is {shown.limit:g}", "dim"),))
    return [fitted(line, width) for line in lines]


def _joined(cells: Sequence[str], wide: Sequence[int], glyphs: Glyphs) -> str:
    said = [glyphs.say(cell) for cell in cells]
    return "  ".join(cell.rjust(size) for cell, size in zip(said, wide, strict=True))


def trend(values: Sequence[float], cells: int, limit: float, glyphs: Glyphs) -> str:
    """Return numbers as bars, a full one at the limit; `!` is one that is not finite, a space none."""
    picked = list(values)
    if len(picked) > cells:
        picked = [values[number * (len(values) - 1) // (cells - 1)] for number in range(cells)]
    full = len(glyphs.bars) - 1

    def bar(value: float) -> str:
        if not math.isfinite(value):
            return " " if math.isnan(value) else "!"
        return glyphs.bars[1 + min(int(value / limit * full), full - 1)]

    return "".join(map(bar, picked))


def map_lines(shown: Snapshot, statistic: str, chosen: tuple[int, int], size: Size, glyphs: Glyphs) -> list[Line]:
    """Return a line for each layer, a cell for each head: darker is larger, `!` is over the limit.

    Of a map that does not fit, return the part around the chosen head.
    """
    width, height = size
    table = shown.values[statistic]
    numbers = [value for row in table for value in row if math.isfinite(value)]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    most = max(shown.heads)
    each = min(max((width - _MARGIN) // most, 1), 3)
    first_layer = _window(chosen[0], len(table), height - 2)
    first_head = _window(chosen[1], most, (width - _MARGIN) // each)
    over = {(one.layer, one.head) for one in shown.ranked if one.over}
    lines: list[Line] = []
    for layer in range(first_layer, min(first_layer + height - 2, len(table))):
        spans: list[Span] = [(f"{shown.layers[layer][: _MARGIN - 1]:>{_MARGIN - 1}} ", "label")]
        for head in range(first_head, min(first_head + (width - _MARGIN) // each, len(table[layer]))):
            here, value = (layer, head), table[layer][head]
            text = _shade(value, low, high, glyphs)
            text = "!" + text[1:] if here in over and each == 1 else text
            text = (text + ("!" if here in over else "")).ljust(each)[:each]
            spans.append((text, "cursor" if here == chosen else "alert" if here in over else "scaled"))
        lines.append(fitted(tuple(spans), width))
    least, greatest = short(low, glyphs), short(high, glyphs)
    legend = f"{glyphs.shades[1]} {least} to {glyphs.shades[-1]} {greatest}" + ("  ! over the limit" if over else "")
    return [*lines, (), fitted(((legend, "dim"),), width)]


def head_at(shown: Snapshot, chosen: tuple[int, int], size: Size, x: int, y: int) -> tuple[int, int] | None:
    """Return the head at a cell of the lines that `map_lines` returns for the same size, if there is one."""
    width, height = size
    most = max(shown.heads)
    each = min(max((width - _MARGIN) // most, 1), 3)
    layer = _window(chosen[0], len(shown.layers), height - 2) + y
    head = _window(chosen[1], most, (width - _MARGIN) // each) + (x - _MARGIN) // each
    inside = x >= _MARGIN and 0 <= y < height - 2 and layer < len(shown.layers)
    return (layer, head) if inside and head < shown.heads[layer] else None


def _window(cursor: int, count: int, room: int) -> int:
    return min(max(cursor - room // 2, 0), max(count - room, 0))


def _shade(value: float, low: float, high: float, glyphs: Glyphs) -> str:
    if math.isnan(value):
        return " "
    steps = len(glyphs.shades) - 1
    part = 1.0 if math.isinf(value) else (value - low) / (high - low) if high > low else 0.5
    shade = glyphs.shades[1 + min(int(part * steps), steps - 1)]
    return shade * 2
