"""Bars of one whole, a piece for each part, the largest first: how a row divides its attention among the keys."""

from __future__ import annotations

from collections.abc import Sequence

from ..glyphs import Glyphs
from ..lines import Line, Role, Span
from ..numbers import percent


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
