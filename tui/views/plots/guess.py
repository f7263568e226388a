"""A guess and the answer, as points on one axis."""

from __future__ import annotations

import math

from ....core.learning.step import Compare, Unit, number_text
from ...language.cells import cells as cells_of
from ..glyphs import Glyphs
from ..lines import Line, Role, merged
from .axes import Axis, nice_range, tick_labels

_DECADES = -1, 3  # powers of ten that the axis of a number reaches at least, so that it tells no answer
_LEAST = 10.0  # that the axis of a difference reaches at least


def guess_lines(
    guess: float | None,
    answer: float | None,
    unit: Unit,
    compare: Compare,
    width: int,
    glyphs: Glyphs,
    role: Role = "unscaled",
) -> list[Line]:
    """Return an axis with the guess, and once it is known the answer with the distance in a role; then its ticks.

    Above it, both are said in words, unless there is no answer yet. A guess without a place is at an end.
    """
    axis = _axis(guess, answer, unit, compare)
    factor = 100.0 if unit == "share" else 1.0
    line: list[tuple[str, Role]] = [(glyphs.rule, "dim")] * width
    places: dict[int, str] = {}
    ticks = axis.ticks(round(math.log10(axis.high / axis.low)) + 1 if axis.base else 6)
    for tick, text in zip(ticks, tick_labels(ticks, axis, glyphs), strict=True):
        at = _cell(tick, axis, width)
        line[at] = (glyphs.tick, "dim")
        places[at] = f"{text} %" if unit == "share" else text
    to = None if answer is None else _cell(factor * answer, axis, width)
    at = None if guess is None else _cell(factor * guess, axis, width)
    if at is not None and to is not None:
        for cell in range(min(at, to), max(at, to)):
            line[cell] = (glyphs.axis[0], role)
    said: dict[int, str] = {}
    if to is not None:
        line[to] = (glyphs.marks[1], "heading")
        said[to] = glyphs.say("it is {answer}", answer=number_text(answer, unit))
    if at is not None:
        beyond = guess is not None and guess <= 0 and bool(axis.base)
        line[at] = (glyphs.left if beyond else glyphs.marks[2 if at == to else 0], "accent")
        if to not in (None, at):
            said[at] = glyphs.say("you said {guess}", guess=number_text(guess, unit))
    below: Line = ((_written(places, width), "dim"),)
    above: list[Line] = [((_written(said, width, 2), "text"),)] if said else []
    return [*above, merged(line), below]


def _axis(guess: float | None, answer: float | None, unit: Unit, compare: Compare) -> Axis:
    """Return an axis over both: of shares in per cent, of numbers that are compared as a ratio logarithmic."""
    values = [value for value in (guess, answer) if value is not None]
    if unit == "share":
        return Axis(min(0.0, *values, 0.0) * 100, max(1.0, *values, 1.0) * 100)
    if compare == "difference":
        return Axis(*nice_range(min(0.0, *values, 0.0), max(_LEAST, *values, _LEAST)))
    powers = [math.log10(value) for value in values if value > 0]
    low, high = min(_DECADES[0], *map(math.floor, powers), 0), max(_DECADES[1], *map(math.ceil, powers), 0)
    return Axis(10.0**low, 10.0**high, 10)


def _cell(value: float, axis: Axis, width: int) -> int:
    """Return the cell of a value, the first or the last if it is beyond the ends."""
    place = axis.place(value)
    return 0 if place is None else min(max(round(place * (width - 1)), 0), width - 1)


def _written(texts: dict[int, str], width: int, apart: int = 1) -> str:
    """Return texts centred at their cells, moved to keep inside the width; those that would still touch move on."""
    line, end = "", 0
    left = sum(cells_of(text) + apart for text in texts.values()) - apart  # what is still to be written
    for at, text in sorted(texts.items()):
        size = cells_of(text)
        start = max(min(at - (size - 1) // 2, width - left), end)
        line += " " * (start - end) + text + " " * apart
        end, left = start + size + apart, left - size - apart
    return line.rstrip()
