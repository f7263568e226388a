"""Parts below each other, as high as their container says."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Container
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget


class Stack(Container):
    """Places its parts below each other."""

    @property
    def layout(self) -> Layout:
        return _STACK

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        """Return each part with its height, for a container of this size."""
        raise NotImplementedError


class _Stack(Layout):
    """Places the parts of a stack. To set heights in their styles instead would take a second layout."""

    name = "stack"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> list[WidgetPlacement]:
        assert isinstance(parent, Stack)
        placements: list[WidgetPlacement] = []
        y = 0
        for part, lines in parent.heights(size):
            if part in children:
                placements.append(WidgetPlacement(Region(0, y, size.width, lines), NULL_OFFSET, Spacing(), part))
                y += lines
        return placements


_STACK = _Stack()
