"""A pane of two parts, side by side or one at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.layout import Layout
from textual.widget import Widget

from ..views.bars import NARROW
from ..widgets.placed import PLACED
from .pane import Pane

_WIDE = 100  # screens from this width have a wider left part


class TwoParts(Pane):
    """A narrow part at the left of a wide one; if both do not fit, only the part `in_front` is shown.

    A part that gets the focus comes to the front.
    """

    SIDE_BY_SIDE: ClassVar[int] = NARROW  # columns from which both parts are shown
    LEFT: ClassVar[tuple[int, int]]  # columns of the left part: usual, and on a wide screen, with a border

    left: Widget
    right: Widget
    in_front: Widget  # the part shown alone

    @property
    def layout(self) -> Layout:
        return PLACED

    def compose(self) -> ComposeResult:
        yield self.left
        yield self.right

    @property
    def one_at_a_time(self) -> bool:
        """Whether the screen is too narrow for both parts."""
        return self.screen.size.width < self.SIDE_BY_SIDE  # its own size is none while it is shown again

    def bring(self, part: Widget) -> None:
        """Bring a part to the front."""
        if part is not self.in_front:
            self.in_front = part
            if self.one_at_a_time:
                part.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again

    def action_view(self) -> None:
        """Bring the other part to the front; where both are shown, turn to the next view of the tab."""
        if self.one_at_a_time:
            self.bring(self.right if self.in_front is self.left else self.left)
        else:
            self.host.next_view()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.bring(self.left if self.left in event.widget.ancestors_with_self else self.right)

    def columns(self, size: Size) -> tuple[int, int]:
        """Return the columns of the left and of the right part."""
        if size.width < self.SIDE_BY_SIDE:
            return (size.width, 0) if self.in_front is self.left else (0, size.width)
        left = self.LEFT[size.width >= _WIDE]
        return left, size.width - left

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        """Return where the parts stand in this size."""
        left, right = self.columns(size)
        return (self.left, Region(0, 0, left, size.height)), (self.right, Region(left, 0, right, size.height))
