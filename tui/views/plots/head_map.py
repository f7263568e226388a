"""A map of layers × heads: which of them are shown, the cells of each, and the head at a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ..glyphs import Glyphs
from ..lines import Line, Span, window

Place: TypeAlias = tuple[int, int]  # position of the layer, head
WIDEST = 3  # cells of one head


class MapWindow(NamedTuple):
    """The part of a map that is shown; a line for each layer."""

    layers: range
    heads: range  # of the layers that have them
    counts: Sequence[int]  # the heads of each layer of the whole map
    margin: int  # cells for the name of a layer
    cell: int  # cells of a head

    def place_at(self, x: int, y: int) -> Place | None:
        """Return the head at a cell, if there is one; `y` is counted from the first layer shown."""
        layer, head = self.layers.start + y, self.heads.start + (x - self.margin) // self.cell
        return (layer, head) if layer in self.layers and head in self.heads and head < self.counts[layer] else None

    def lines(self, names: Sequence[str], head: Callable[[Place], Span]) -> list[Line]:
        """Return a line for each layer, of its name and its heads."""
        return [
            (
                (names[layer], "label"),
                *(head((layer, number)) for number in self.heads if number < self.counts[layer]),
            )
            for layer in self.layers
        ]


def map_window(counts: Sequence[int], cursor: Place, margin: int, width: int, height: int) -> MapWindow:
    """Return the part of a map that fits: all of it, or what is around the cursor."""
    most = max(counts)
    cell = min(max((width - margin) // most, 1), WIDEST)
    across = max((width - margin) // cell, 1)
    layer, head = window(cursor[0], len(counts), height), window(cursor[1], most, across)
    layers = range(layer, min(layer + height, len(counts)))
    return MapWindow(layers, range(head, min(head + across, most)), counts, margin, cell)


def shade(part: float, chosen: bool, glyphs: Glyphs) -> str:
    """Return the two cells of a head that is this `part` of the way from the lightest shade to the darkest.

    The chosen head has a digit from 0 to 9, because a reversed full block would be blank.
    """
    steps = len(glyphs.shades) - 1
    return f"{min(int(part * 10), 9)} " if chosen else glyphs.shades[1 + min(int(part * steps), steps - 1)] * 2
