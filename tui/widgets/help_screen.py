"""The help screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ..views.lines import Line, fitted
from .lines import LinesWidget
from .modal import Modal


class HelpText(LinesWidget, can_focus=True):
    """A text that scrolls."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "up", show=False),
        Binding("down,j", "scroll(1)", "down", show=False),
        Binding("pageup", "scroll(-10)", "page up", show=False),
        Binding("pagedown,space", "scroll(10)", "page down", show=False),
    ]

    def __init__(self, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._write = write
        self._top = 0

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = self._write(width - 4)
        room = height - 2
        self._top = min(self._top, max(len(lines) - room, 0))
        shown = lines[self._top : self._top + room]
        below = len(lines) - self._top - len(shown)
        more = f"{below} more lines (down)" if below else "Esc closes"
        padded: list[Line] = [*shown, *[()] * (room - len(shown)), (), ((more, "dim"),)]
        return [fitted((("  ", "text"), *line), width) for line in padded]

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

    def __init__(self, write: Callable[[int], Sequence[Line]]) -> None:
        super().__init__()
        self._write = write

    def compose(self) -> ComposeResult:
        yield HelpText(self._write)
