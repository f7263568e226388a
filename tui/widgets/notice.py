"""A short message at the bottom of the screen, over its contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual.widget import Widget

from ..language.cells import cells
from ..views.lines import Line, fitted, unsplit
from .lines import LinesWidget


class Notice(LinesWidget):
    """Shows the lines that `write` returns for a width, until hidden."""

    def __init__(self) -> None:
        super().__init__()
        self._write: Callable[[int], Sequence[Line]] = lambda _: ()

    def show(self, write: Callable[[int], Sequence[Line]]) -> None:
        """Show a message in as many lines as it needs."""
        self._write = write
        self._arrange()
        self.display = True
        self.redraw()

    def hide(self) -> None:
        """Hide the message."""
        if self.display:
            self.display = False

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        edges = _edges([each for each in self._others() if each.region.overlaps(self.region)])
        return [fitted(unsplit(line, edges), width) for line in self._broken(width)]

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.styles.height = len(self._broken(self.screen.size.width))

    def _broken(self, width: int) -> Sequence[Line]:
        """Return the message, with room to move its wide characters away from the edges of other widgets."""
        lines = self._write(width)
        wide = any(cells(text) > len(text) for line in lines for text, _ in line)
        return self._write(width - len(_edges(self._others()))) if wide else lines

    def _others(self) -> list[Widget]:
        return [each for each in self.screen.query(Widget) if each is not self and each.region]


def _edges(widgets: Iterable[Widget]) -> set[int]:
    """Return the columns at which Textual splits the lines over these widgets, and wide characters in two."""
    edges = {edge for each in widgets for edge in (each.region.x, each.region.right)}
    return edges - {0, max(edges, default=0)}
