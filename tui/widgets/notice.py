"""A short message at the bottom of the screen, over its contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..views.lines import Line, fitted
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
        return [fitted(line, width) for line in self._write(width)]

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.styles.height = len(self._write(self.screen.size.width))
