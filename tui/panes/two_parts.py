"""A pane of two parts."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.widget import Widget

from ..views.bars import NARROW
from .pane import Pane

_WIDE = 100  # columns from which the left part has more of them


class TwoParts(Pane):
    """A narrow part at the left of a wide one; where both have no room, the one `in_front` stands alone.

    A part that gets the focus comes to the front.
    """

    LEFT: ClassVar[tuple[int, int]]  # columns of the left part, and as many on a wide screen

    left: Widget
    right: Widget
    in_front: Widget  # that of the two which stands alone

    @property
    def layout(self) -> Layout:
        return _BESIDE

    def compose(self) -> ComposeResult:
        yield self.left
        yield self.right

    @property
    def one_at_a_time(self) -> bool:
        """Whether both parts have no room side by side."""
        return self.size.width < NARROW

    def bring(self, part: Widget) -> None:
        """Bring this part to the front."""
        if part is not self.in_front:
            self.in_front = part
            if self.one_at_a_time:
                part.refresh(layout=True)  # one of the parts: only that makes their parent arrange them again

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.bring(self.left if self.left in event.widget.ancestors_with_self else self.right)

    def columns(self, size: Size) -> tuple[int, int]:
        """Of the left and of the right part."""
        if size.width < NARROW:
            return (size.width, 0) if self.in_front is self.left else (0, size.width)
        left = self.LEFT[size.width >= _WIDE]
        return left, size.width - left


class _Beside(Layout):
    """Places the two parts. Styles that follow the screen's classes and the front would take a second layout."""

    name = "beside"

    def arrange(
        self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True
    ) -> list[WidgetPlacement]:
        assert isinstance(parent, TwoParts)
        left, right = parent.columns(size)
        regions = Region(0, 0, left, size.height), Region(left, 0, right, size.height)
        parts = zip((parent.left, parent.right), regions, strict=True)
        return [WidgetPlacement(region, NULL_OFFSET, Spacing(), part) for part, region in parts if part in children]


_BESIDE = _Beside()
