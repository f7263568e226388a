"""A run as lines: a map of its heads at one step, and the heads that come near the limit, worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import set_cell_size

from ....core.message import counted, joined, message
from ....core.statistics.catalogue import STATISTIC, STATISTICS
from ....core.tables.runs import change_words, growth_words, logit_words, passes_words, trend_cells
from ...language.cells import cells as cells_of
from ...language.cells import to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, merged
from ..numbers import short, short_in_unit, signed
from ..plots.axes import Axis
from ..plots.head_map import WIDEST, MapWindow, Place, map_window, shade

if TYPE_CHECKING:
    from ....core.watching.limits import HeadTrend
    from ....core.watching.snapshot import RunSnapshot


Size: TypeAlias = tuple[int, int]  # width and height in cells

LOGITS = "max_logit"
LABELS = {statistic.name: statistic.label for statistic in STATISTICS} | {LOGITS: "largest |logit|"}

_LEAST_TREND = 8  # cells of a trend
_HIGHEST = 8  # lines of the selected head's trend
_UNDER = 5  # heights of a trend in the list up to the limit; higher ones are over it
_SINGLE = 2.0**-23  # relative rounding of single precision
_TIMES = 3**0.5  # from one height to the next: two are a factor of 3
_ROOMY, _ROOMY_BESIDE = 60, 90  # cells that long titles need; beside a baseline
_ROOMY_PASSED = 31  # cells more beside heads that were over the limit
_NARROW = 48  # cells below which the change since a baseline stands instead of the growth
_NUMBER, _NUMBERS = 6, 13  # cells for a number, and for its change, too
_MARGIN = 5  # cells for the name of a layer


def step_line(shown: RunSnapshot, width: int, glyphs: Glyphs) -> Line:
    """Return the step, its place among the others, and the baseline."""
    place = shown.steps.index(shown.step) + 1 if shown.step in shown.steps else len(shown.steps)
    where = glyphs.say("step {step}, {place} of {count}", step=shown.step, place=place, count=len(shown.steps))
    if shown.baseline is not None:
        since = glyphs.say(" since {baseline}", baseline=shown.baseline)
        fits = cells_of(where + since) <= width
        return (where if fits else glyphs.say("step {step}", step=shown.step), "text"), (since, "unscaled")
    hint = glyphs.say("   End: newest")
    return (where, "text"), (hint if place < len(shown.steps) and cells_of(where + hint) <= width else "", "dim")


def summary(shown: RunSnapshot, brief: bool = False) -> str:
    """Return what the step shows: the largest change, the heads over the limit, and which passes it next.

    Of heads that are or were over the limit, it says the first and the one with the largest logit. In `brief`, return
    the change only, or without a baseline the heads over the limit.
    """
    said = _change_words(shown) if shown.baseline is not None else ""
    if brief:
        return said or message("{over}.", over=_over_words(shown))
    return joined([part for part in (said, _limit_words(shown), *_past_words(shown)) if part])


def _change_words(shown: RunSnapshot) -> str:
    """Say how the largest |logit| of heads changed since the baseline."""
    if shown.changes is None:
        return message(
            "Step {baseline} has other layers or heads, so there is no change to show.", baseline=shown.baseline
        )
    if shown.step == shown.baseline:
        return message("Step {step} is the baseline: other steps are compared with it.", step=shown.step)
    changes = [(change, head) for head in shown.ranked if (change := shown.change(head.layer, head.head)) is not None]
    if not changes:
        return message("Since step {baseline}, no largest |logit| is known to have changed.", baseline=shown.baseline)
    grew = sum(change > 0 for change, _ in changes)
    most, worst = changes[0]
    place = _place_words(shown, worst)
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


def _over_words(shown: RunSnapshot) -> str:
    """Say how many heads are over the limit, and how many were at earlier steps only."""
    if all(math.isnan(head.value) for head in shown.ranked):
        said = message("No head has a largest |logit| at step {step}", step=shown.step)
    elif shown.over:
        said = counted(
            "{number} head is over {limit:g}", "{number} heads are over {limit:g}", shown.over, limit=shown.limit
        )
    elif shown.passed:
        said = message("No head is over {limit:g} at step {step}", limit=shown.limit, step=shown.step)
    else:
        said = message("No head is over {limit:g}", limit=shown.limit)
    if not shown.came_back:
        return said
    if shown.over:
        return counted(
            "{over}, {number} other was earlier", "{over}, {number} others were earlier", shown.came_back, over=said
        )
    return counted(
        "{over}, but {number} was earlier", "{over}, but {number} were earlier", shown.came_back, over=said
    )


def _past_words(shown: RunSnapshot) -> list[str]:
    """Say which head was over the limit first, which had the largest logit, and when."""
    said: list[str] = []
    passed = [head for head in shown.ranked if head.first_over is not None]
    if passed:
        first = min(passed, key=lambda head: (head.first_over or 0, -head.peak))
        worst = max(passed, key=lambda head: head.peak)
        said.append(
            message("First over it: {place} at step {step}.", place=_place_words(shown, first), step=first.first_over)
        )
        peak, place = logit_words(worst.peak), _place_words(shown, worst)
        if worst.peak_step == shown.step:
            said.append(message("Peak: {peak}, {place} at this step.", peak=peak, place=place))
        else:
            said.append(
                message(
                    "Peak: {peak}, {place} at step {step}; now {now}.",
                    peak=peak,
                    place=place,
                    step=worst.peak_step,
                    now=logit_words(worst.value),
                )
            )
    if shown.others_over is not None:
        said.append(
            message(
                "Heads that step {step} does not have were over {limit:g}, first at step {first}.",
                step=shown.step,
                limit=shown.limit,
                first=shown.others_over,
            )
        )
    return said


def _place_words(shown: RunSnapshot, head: HeadTrend) -> str:
    return message("layer {layer} head {head}", layer=shown.layers[head.layer], head=head.head)


def _limit_words(shown: RunSnapshot) -> str:
    said = _over_words(shown)
    soon = next((head for head in shown.ranked if not head.over and head.passes_in is not None), None)
    if soon is None:
        return message("{over}.", over=said)
    place = _place_words(shown, soon)
    return counted(
        "{over}; {place}, {growth} per step, passes it in about {steps} steps.",
        "{over}; {place}, {growth} per {number:,} steps, passes it in about {steps} steps.",
        shown.per,
        over=said,
        place=place,
        growth=growth_words(soon, shown.per),
        steps=passes_words(soon),
    )


def ranked_lines(
    shown: RunSnapshot,
    width: int,
    glyphs: Glyphs,
    first: int = 0,
    count: int | None = None,
    chosen: tuple[int, int] | None = None,
) -> list[Line]:
    """Return a head line and lines for `count` heads from the `first` on, each with its trend over the steps.

    If a head is or was over the limit, there are columns of when it first was, and of its largest logit. Where they
    leave no space for a trend, other columns are left out.
    """
    ranked = shown.ranked[first : None if count is None else first + count]
    columns = _columns(shown, ranked, width)
    _align(columns.get(_GROWTH, []))
    said = {
        name: [
            glyphs.say(title),
            *(glyphs.say(cell) if name == "head" else signed(glyphs.say(cell), glyphs) for cell in cells),
        ]
        for name, (title, *cells) in columns.items()
    }
    wide = {name: max(map(cells_of, column)) for name, column in said.items()}
    for name in _SPARED if shown.passed else ():
        if width - sum(wide.values()) - 2 * len(wide) < _LEAST_TREND:
            wide.pop(name, None)
    cells = width - sum(wide.values()) - 2 * len(wide)
    cells = cells if cells >= _LEAST_TREND and len(shown.steps) > 2 else 0
    header, *rows = (
        "  ".join(to_right(said[name][row], size) for name, size in wide.items()) for row in range(len(ranked) + 1)
    )
    lines = [fitted(((header + (_trend_title(shown, cells, glyphs) if cells else ""), "heading"),), width)]
    for row, head in zip(rows, ranked, strict=True):
        here = (head.layer, head.head)
        role: Role = "cursor" if here == chosen else "alert" if head.over else "text"
        line: Line = ((row, role),)
        if cells and here in shown.trends:
            line = (*line, ("  ", "text"), *trend(shown.trends[here], cells, shown.limit, glyphs))
        lines.append(fitted(line, width))
    return lines


_GROWTH = "growth_per_1000_steps"
# From the left, after the head.
_COLUMNS = ("max_logit", "change", "first_over", "peak", "peak_step", _GROWTH, "passes_limit_in")
_SPARED = (_GROWTH, "peak_step", "passes_limit_in")  # columns that are left out for a trend, the first one first


def _columns(shown: RunSnapshot, ranked: Sequence[HeadTrend], width: int) -> dict[str, list[str]]:
    """Return the columns of the list, from the left, each a title and a cell for each head."""
    roomy = width >= (_ROOMY if shown.changes is None else _ROOMY_BESIDE) + (_ROOMY_PASSED if shown.passed else 0)
    cells = {cell.name: cell for cell in trend_cells(shown) if cell.label}
    if shown.changes is not None and width < _NARROW:
        del cells[_GROWTH]
    columns = {"head": [message("head"), *(place_of(shown, head.layer, head.head) for head in ranked)]}
    for cell in (cells[name] for name in _COLUMNS if name in cells):
        columns[cell.name] = [cell.label if roomy else cell.short or cell.label, *map(cell.text, ranked)]
    return columns


def _trend_title(shown: RunSnapshot, cells: int, glyphs: Glyphs) -> str:
    """Return the title of the trends; if one of them is over the limit, also which bars are, if there is room."""
    title = glyphs.say("trend")
    bars = glyphs.bars[_UNDER + 1 :]
    legend = title + "  " + glyphs.say("{bars} over {limit:g}", bars=bars, limit=shown.limit)
    return "  " + (legend if shown.passed and cells_of(legend) <= cells else title)


def trend(values: Sequence[float], cells: int, limit: float, glyphs: Glyphs) -> Line:
    """Return numbers as a line of bars, whose height tells on which side of the limit they are.

    A bar is one higher for each factor of √3: up to `_UNDER` high from a ninth of the limit or less up to it, higher
    over it, and full over 3 times the limit. A number that is not finite is `!`, one that is missing blank.
    """

    def bar(value: float) -> Span:
        if math.isnan(value):
            return " ", "scaled"
        if math.isinf(value):
            return "!", "alert"
        steps = math.ceil(math.log(max(value, 1e-300) / limit) / math.log(_TIMES))
        over = is_over(value, limit)
        height = max(steps, 1) if over else min(steps, 0)
        return glyphs.bars[min(max(_UNDER + height, 1), len(glyphs.bars) - 1)], "alert" if over else "scaled"

    return merged(bar(value) for value in spread(values, cells))


def spread(values: Sequence[float], cells: int) -> list[float]:
    """Return a number for each cell: of more numbers the largest of each cell, of fewer each several times."""
    count = len(values)
    if count <= cells:
        return [values[cell * count // cells] for cell in range(cells if count else 0)]
    return [largest_of(values[cell * count // cells : (cell + 1) * count // cells]) for cell in range(cells)]


def largest_of(values: Sequence[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=math.nan)


def _align(column: list[str]) -> None:
    """Pad the factors of a column, so that their signs and their decimal points are in one line."""
    found = [at for at, cell in enumerate(column) if cell.startswith("× ")]
    numbers = [column[at].removeprefix("× ") for at in found]
    decimals = max((len(number.partition(".")[2]) for number in numbers), default=0)
    padded = [number + " " * (decimals - len(number.partition(".")[2])) for number in numbers]
    for at, number in zip(found, padded, strict=True):
        column[at] = f"× {number.rjust(max(map(len, padded)))}"


def place_of(shown: RunSnapshot, layer: int, head: int) -> str:
    """Return a head's layer and number, such as 7/3."""
    return f"{shown.layers[layer]}/{head}"


def head_lines(shown: RunSnapshot, chosen: tuple[int, int], size: Size, glyphs: Glyphs) -> list[Line]:
    """Return all statistics of a head, and, unless the height is 0, its largest |logit| over the steps."""
    width, height = size
    layer, head = chosen
    title = glyphs.say("layer {layer} head {head}", layer=shown.layers[layer], head=head)
    lines: list[Line] = [((title, "heading"),)]
    labels = {name: f"{glyphs.say(LABELS.get(name, name))}  " for name in shown.values}
    past = _past_figures(shown, chosen, glyphs)
    labels |= {name: f"{name}  " for name in past}
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
    for name, words in past.items():
        lines.append(((set_cell_size(labels[name], wide - 1) + " ", "label"), (words, "text")))
    known = [value for value in shown.trends.get(chosen, ()) if math.isfinite(value) and value > 0]
    if len(known) > 2 and height:
        low, high = min(known), max(known)
        rows = min(max(height - len(lines) - 2, 1), _HIGHEST)
        bars = chart(shown.trends[chosen], (width - 1, rows), (low, high), shown.limit, glyphs)
        ends = message("{low} to {high}", low=short(low, glyphs), high=short(high, glyphs))
        words = message("steps {first} to {last}: {ends}", first=shown.steps[0], last=shown.step, ends=ends)
        said = glyphs.say(words)
        said = said if cells_of(said) <= width else glyphs.say(ends)
        lines = [*lines, (), *bars, ((said, "dim"),)]
    return [fitted(line, width) for line in lines]


def figures(shown: RunSnapshot) -> int:
    """Return how many figures `head_lines` has of a head that was over the limit, if there is any."""
    return len(shown.values) + (3 if shown.passed else 0)


def _past_figures(shown: RunSnapshot, chosen: tuple[int, int], glyphs: Glyphs) -> dict[str, str]:
    """Return when a head was over the limit first, and its largest logit; empty if it never was."""
    head = next((head for head in shown.ranked if (head.layer, head.head) == chosen), None)
    if head is None or head.first_over is None:
        return {}
    return {
        glyphs.say("first over {limit:g}", limit=shown.limit): glyphs.say("step {step}", step=head.first_over),
        glyphs.say("peak"): glyphs.say(logit_words(head.peak)),
        glyphs.say("at step"): f"{head.peak_step}",
    }


def _change(value: float, unit: str, glyphs: Glyphs) -> str:
    """Return a change with its sign."""
    sign = "+" if value > 0 else signed("-", glyphs) if value < 0 else ""
    return sign + short_in_unit(abs(value), unit, glyphs)


def _unit(name: str) -> str:
    return STATISTIC[name].unit if name in STATISTIC else "number"


def chart(values: Sequence[float], size: Size, axis: tuple[float, float], limit: float, glyphs: Glyphs) -> list[Line]:
    """Return numbers as bars on a logarithmic axis, from the top row down; bars over the limit are of another role.

    A number that is not finite is a full bar with `!` on top; one that is missing is blank. A bar of one row leaves a
    gap to the row above.
    """
    (cells, rows), (low, high) = size, axis
    full = len(glyphs.bars) - (1 if rows > 1 else 2)

    def bar(value: float) -> list[Span]:
        """Return a bar, from the bottom up."""
        role: Role = "alert" if is_over(value, limit) else "scaled"
        if math.isnan(value):
            return [(" ", role)] * rows
        if math.isinf(value):
            signs = glyphs.bars[-1] * (rows - 1) + "!"
            return [(sign, role) for sign in signs]
        part = (Axis(low, high, 10).place(max(value, low)) or 0.0) if high > low else 0.0
        height = 1 + min(int(part * full * rows), full * rows - 1)
        return [(glyphs.bars[min(max(height - full * row, 0), full)], role) for row in range(rows)]

    bars = [bar(value) for value in spread(values, min(cells, len(values)))]
    return [merged(bar[row] for bar in bars) for row in reversed(range(rows))]


def is_over(value: float, limit: float) -> bool:
    """Return whether a number of a trend, which is of single precision, is over the limit."""
    return value > limit * (1 + _SINGLE)


def wanted_width(shown: RunSnapshot) -> int:
    """Return the width of a map with whole cells."""
    return _MARGIN + WIDEST * max(shown.heads)


def shown_part(shown: RunSnapshot, chosen: Place, size: Size) -> MapWindow:
    """Return the part of a map that its lines show in this size."""
    width, height = size
    return map_window(shown.heads, chosen, _MARGIN, width, height - 2)


def map_lines(shown: RunSnapshot, statistic: str, chosen: Place, size: Size, glyphs: Glyphs) -> list[Line]:
    """Return a line for each layer, a cell for each head: darker is larger, `!` is over the limit, `^` was over it.

    Logits are shaded by their logarithm, other statistics linearly. Beside a baseline, a cell is the change since it.
    Of a map that does not fit, return the part around the chosen head.
    """
    width, _ = size
    part = shown_part(shown, chosen, size)
    table = _mapped(shown, statistic)
    numbers = [value for row in table for value in row if math.isfinite(value)]
    low, high = min(numbers, default=0.0), max(numbers, default=0.0)
    axis = Axis(low, high, 10 if statistic == LOGITS and shown.baseline is None and low > 0 else 0)
    unit = _unit(statistic)
    flat = short_in_unit(low, unit, glyphs) == short_in_unit(high, unit, glyphs)  # the rest is noise
    over = {(one.layer, one.head) for one in shown.ranked if one.over}
    marks = {(one.layer, one.head): "!" if one.over else "^" for one in shown.ranked if one.first_over is not None}

    def cell(place: Place) -> Span:
        layer, head = place
        value, mark = table[layer][head], marks.get(place, "")
        level = 1.0 if math.isinf(value) else 0.0 if flat or math.isnan(value) else axis.place(value) or 0.0
        text = " " if math.isnan(value) else shade(level, place == chosen, glyphs)
        text = set_cell_size(mark if mark and part.cell == 1 else text + mark, part.cell)
        return text, "cursor" if place == chosen else "alert" if place in over else "scaled"

    legend = _legend(low, high, unit, glyphs, shown.baseline is not None) if numbers else ""
    legend = legend or glyphs.say("no numbers to show")
    legend += _legend_of_marks([*marks.values()], width - cells_of(legend), glyphs)
    most = max(shown.heads)
    if len(part.layers) < len(table) or len(part.heads) < most:
        legend += glyphs.say("  part of {layers} x {heads}", layers=len(table), heads=most)
    names = [f"{name[: _MARGIN - 1]:>{_MARGIN - 1}} " for name in shown.layers]
    lines = [fitted(line, width) for line in part.lines(names, cell)]
    return [*lines, (), fitted(((legend, "dim"),), width)]


def _legend_of_marks(marks: Sequence[str], width: int, glyphs: Glyphs) -> str:
    """Return what these marks of heads mean, in short words where long ones do not fit."""
    long = {"!": glyphs.say("! over the limit"), "^": glyphs.say("^ was over")}
    shorter = {"!": glyphs.say("! over"), "^": glyphs.say("^ was")}
    said = ["".join(f"  {words[mark]}" for mark in words if mark in marks) for words in (long, shorter)]
    last = "  " + glyphs.say("! ^ over") if {*long} <= {*marks} else ""
    return next((words for words in said if cells_of(words) <= width), last)


def _legend(low: float, high: float, unit: str, glyphs: Glyphs, changes: bool) -> str:
    """Return the values of the lightest and the darkest shade; a single one if they do not differ."""
    least, most = (
        _change(value, unit, glyphs) if changes else short_in_unit(value, unit, glyphs) for value in (low, high)
    )
    if least == most:
        return glyphs.say("all {value}", value=least)
    return glyphs.say("{low} to {high}", low=f"{glyphs.shades[1]} {least}", high=f"{glyphs.shades[-1]} {most}")


def _mapped(shown: RunSnapshot, statistic: str) -> Sequence[Sequence[float]]:
    """Return what the map shows of every head: a statistic, or its change since the baseline; NaN if it has none."""
    table = shown.values[statistic]
    if shown.baseline is None:
        return table
    return (shown.changes or {}).get(statistic) or [[math.nan] * len(row) for row in table]
