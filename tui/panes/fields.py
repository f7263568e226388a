"""A pane with a list of fields at the left, into which keys type, and what follows from them at the right."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.layout import Layout
from textual.widget import Widget

from ...core.field import Field
from ..views.bars import NARROW
from ..views.fields.entry import FieldEntry
from ..widgets.field_list import FieldList
from ..widgets.placed import PLACED
from .lists import choose_in
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


class FieldsPane(TwoParts):
    """A pane whose arrows go through fields and step them; subclasses show what follows from their values."""

    fields: FieldList

    def show(self) -> None:
        """Show the fields, and what follows from them."""
        raise NotImplementedError

    def follow(self) -> None:
        self.show()

    @property
    def topic(self) -> Field:
        return self.fields.field

    def go_to_field(self, name: str) -> None:
        """Put the cursor on the field with this name."""
        self.bring(self.fields)
        self.fields.go_to(name)
        self.show()

    def action_move(self, step: int) -> None:
        self.leave_field()
        self.fields.move(step)
        self.show()

    def action_step(self, direction: Literal[-1, 1]) -> None:
        self.leave_field()
        self.fields.step(direction)
        self.show()

    def changed(self, again: bool) -> None:
        """Show what the mouse changed; a second click on a field shows the list of its values."""
        self.show()
        if again:
            self._choose()

    def _choose(self) -> bool:
        """Show the list of the field with the cursor; return whether it has one."""
        has_list = self.fields.field.kind == "choice"
        if has_list:
            choose_in(self.host, self.fields, self.show)
        return has_list

    def accept(self) -> bool:
        """Accept what is typed, or show the list of the field with the cursor; return whether there was either."""
        if not self.is_typing:
            return self._choose()
        self.leave_field()
        return True

    def action_type(self, character: str) -> None:
        self.fields.type(character)
        self.show()

    def action_erase(self) -> None:
        self.fields.erase()
        self.show()

    def action_cancel(self) -> None:
        self.fields.cancel()
        self.show()

    @property
    def entry(self) -> FieldEntry[Any] | None:
        return self.fields.editing

    def end_typing(self) -> None:
        self.fields.finish()
        self.show()
