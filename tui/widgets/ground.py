"""What lies behind everything else: containers paint their background and nothing more."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget


class Ground(Widget):
    """A widget without content of its own.

    A frame asks every widget it touches for all its lines, those too that others lie over.
    """

    _style: Style | None = None

    def render_lines(self, crop: Region) -> list[Strip]:
        if self._style is None:  # looked up once, because that walks all ancestors
            color = self.background_colors[1]
            self._style = filtered(self, Style(bgcolor=color.rich_color), color)
        return [Strip.blank(crop.width, self._style)] * crop.height

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._style = None


def filtered(widget: Widget, style: Style, ground: Color) -> Style:
    """The style in the colours that the terminal is to have: none, for one, where NO_COLOR asks for that."""
    segments = [Segment(" ", style)]
    for each in widget.get_line_filters():
        segments = each.apply(segments, ground)
    return segments[0].style or style
