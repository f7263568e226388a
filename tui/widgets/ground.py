"""What lies behind everything else: containers paint their background and nothing more."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Ground(Widget):
    """A widget without content of its own.

    A frame asks every widget it touches for all its lines, those too that others lie over.
    """

    def render_lines(self, crop: Region) -> list[Strip]:
        style = filtered(self, Style(bgcolor=self.background_colors[1].rich_color))
        return [Strip.blank(crop.width, style)] * crop.height


def filtered(widget: Widget, style: Style) -> Style:
    """The style in the colours that the terminal is to have: none, for one, where NO_COLOR asks for that."""
    segments = [Segment(" ", style)]
    for each in widget.get_line_filters():
        segments = each.apply(segments, widget.background_colors[1])
    return segments[0].style or style
