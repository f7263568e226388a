"""Containers that say where their parts stand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.containers import Container
from textual.geometry import NULL_OFFSET, Region, Size, Spacing
from textual.layout import Layout, WidgetPlacement
from textual.strip import Strip
from textual.widget import Widget

AnyWidget = Widget if TYPE_CHECKING else object  # else parts would inherit only its CSS


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


class Blank(AnyWidget):
    """Paints nothing but its background, without Textual's work for each line; its parts cover it."""

    _strip: Strip | None = None  # the last one painted

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._strip is None or self._strip.cell_length != crop.width:
            self._strip, background = Strip.blank(crop.width, self.visual_style.rich_style), self.background_colors[1]
            for line_filter in self.get_line_filters():
                self._strip = self._strip.apply_filter(line_filter, background)
        return [self._strip] * crop.height

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strip = None


class Stack(Blank, Container):
    """Places its parts below each other."""

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
