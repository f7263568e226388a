"""The help screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ..views.border import Thumb
from ..views.lines import Line, fitted
from .lines import LinesWidget
from .modal import Modal


class HelpText(LinesWidget, can_focus=True):
    """A text that scrolls, in a border with a title."""

    HEADED = True
    DEFAULT_CLASSES = "modal"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("pageup", "scroll(-10)", "page up", show=False),
        Binding("pagedown,space", "scroll(10)", "page down", show=False),
        Binding("home", "scroll(-100000)", "first line", show=False),
        Binding("end", "scroll(100000)", "last line", show=False),
    ]

    def __init__(self, title: str, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title = title
        self._write = write
        self._top = self._total = 0

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say(self._title), "heading"),)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = self._write(width)
        self._total = len(lines)
        self._top = min(self._top, max(len(lines) - height, 0))
        return [fitted(line, width) for line in lines[self._top : self._top + height]]

    def thumb(self) -> Thumb:
        return Thumb(self._top, self.size.height, self._total)

    def foot(self) -> Line:
        below = self._total - self._top - self.size.height
        if below > 0:
            return ((self.glyphs.say("{below} more lines (down)", below=below), "dim"),)
        return ((self.glyphs.say("Esc closes"), "dim"),)

    def retitle(self, title: str) -> None:
        """Show another text, from its beginning, under this title."""
        self._title, self._top = title, 0
        self.redraw()

    def action_scroll(self, lines: int) -> None:
        self._top = max(self._top + lines, 0)
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self.action_scroll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self.action_scroll(-3)


class HelpScreen(Modal, ModalScreen[None]):
    """Shows the help until one of several keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,K,enter", "dismiss", "close", show=False),
    ]

    def __init__(self, title: str, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title, self._write = title, write

    def compose(self) -> ComposeResult:
        yield HelpText(self._title, self._write)
