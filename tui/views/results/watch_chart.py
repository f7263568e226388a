"""The largest |logit| of one head over the steps of a run, as a chart with the limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..glyphs import Glyphs
from ..lines import Line, Span, ends, fitted, line_width
from ..numbers import short
from ..plots.axes import Axis, nice_range
from ..plots.plot import Plot, Series, draw

if TYPE_CHECKING:
    from ....core.watching.snapshot import Snapshot

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
