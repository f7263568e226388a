"""The help screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ..views.lines import Line
from .modal import Modal
from .scrolled import ScrolledLines


class HelpText(ScrolledLines, can_focus=True):
    """A text that scrolls, in a border with a title."""

    HEADED = True
    DEFAULT_CLASSES = "modal"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "up"),
        Binding("down,j", "scroll(1)", "down"),
        Binding("pageup", "scroll(-10)", "page up"),
        Binding("pagedown,space", "scroll(10)", "page down"),
        Binding("home", "scroll(-100000)", "first line"),
        Binding("end", "scroll(100000)", "last line"),
    ]

    def __init__(self, title: str, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title, self._write = title, write

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say(self._title), "heading"),)

    def write(self, width: int, height: int) -> Sequence[Line]:
        return self._write(width)

    def foot(self) -> Line:
        if self.below:
            return ((self.glyphs.say("{below} more lines (down)", below=self.below), "dim"),)
        return ((self.glyphs.say("Esc closes"), "dim"),)

    def retitle(self, title: str) -> None:
        """Show another text, from its beginning, under this title."""
        self._title, self.top = title, 0
        self.redraw()

    def action_scroll(self, lines: int) -> None:
        self.scroll_by(lines)


class HelpScreen(Modal, ModalScreen[None]):
    """Shows the help until one of several keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,K,enter", "dismiss", "close")]

    def __init__(self, title: str, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._title, self._write = title, write

    def compose(self) -> ComposeResult:
        yield HelpText(self._title, self._write)
