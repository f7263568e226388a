"""Containers that say where their parts stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from textual.containers import Container
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget


@runtime_checkable
class Placing(Protocol):
    """A container whose `layout` is PLACED."""

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        """Return each part with its region, in a container of this size."""
        ...


class _Placed(Layout):
    """Places the parts of a container. To set sizes in their styles instead would take a second layout."""

    name = "placed"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> list[WidgetPlacement]:
        assert isinstance(parent, Placing)
        regions = parent.regions(size)
        return [
            WidgetPlacement(region, NULL_OFFSET, Spacing(), part, order)  # a later one is above the others
            for order, (part, region) in enumerate(regions)
            if part in children
        ]


PLACED = _Placed()


class Stack(Container):
    """Places its parts below each other."""

    BLANK = True  # its own lines

    @property
    def layout(self) -> Layout:
        return PLACED

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        """Return each part with its height, for a container of this size."""
        raise NotImplementedError

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        y = 0
        for part, lines in self.heights(size):
            yield part, Region(0, y, size.width, lines)
            y += lines
