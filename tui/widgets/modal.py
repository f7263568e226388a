"""Screens over a pane: what they have in common, the help, and the code of what a pane shows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ...core.errors import InputError
from ...core.message import joined, message
from ..terminal.paced_app import SizedScreen
from ..views.glyphs import Glyphs
from ..views.lines import Line, Role
from .lines import ScrolledLines

if TYPE_CHECKING:
    from ...core.program.text import Dialect


class Modal(SizedScreen):
    """Makes a screen over the pane close once, however often it is dismissed."""

    @property
    def on_top(self) -> bool:
        """Whether this screen takes keys: it is open, and no other screen is over it."""
        return self.app.screen is self  # pyright: ignore[reportUnknownMemberType]

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Close the screen, unless it is already closed: Textual would close the screen below."""
        return super().dismiss(result) if self.on_top else AwaitComplete.nothing()


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

    def __init__(self, title: str, write: Callable[[int], Sequence[Line]], keys: str = message("Esc closes")) -> None:
        super().__init__()
        self._title, self._write, self._keys = title, write, keys

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say(self._title), "heading"),)

    def write(self, width: int, height: int) -> Sequence[Line]:
        return self._write(width)

    def foot(self) -> Line:
        more = [message("{below} more lines (down)", below=self.below)] if self.below else []
        return ((self.glyphs.say(joined([*more, self._keys], " · ")), "dim"),)

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


class PaneHelpScreen(HelpScreen):
    """Shows the help on a pane; K leads to all keys, from which Esc comes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("K", "app.all_keys", "all keys")]

    def compose(self) -> ComposeResult:
        yield HelpText(self._title, self._write, message("K all keys · Esc closes"))


_DEEPER = 4  # cells by which the rest of a long line is indented further
_TITLES: dict[Dialect, str] = {"python": "code: NumPy", "torch": "code: PyTorch"}


class CodeText(HelpText):
    """A program, in a border with a title."""

    def foot(self) -> Line:
        return ((self.glyphs.say("copied · Tab NumPy/PyTorch · Esc closes"), "dim"),)


class CodeScreen(HelpScreen):
    """Shows a program until a key closes it; Tab turns to the other library, whose program is copied too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("Y", "dismiss", "close"),
        Binding("tab,shift+tab", "turn", "the other library"),
    ]

    def __init__(self, code: str, copied: Callable[[Dialect], str]) -> None:
        super().__init__(_TITLES["python"], self._write_code)
        self._code, self._copied = code, copied
        self._dialect: Dialect = "python"

    def compose(self) -> ComposeResult:
        self._text = CodeText(_TITLES["python"], self._write_code)
        yield self._text

    def _write_code(self, width: int) -> Sequence[Line]:
        return code_lines(self._code, width, self._text.glyphs)

    def action_turn(self) -> None:
        """Show and copy the program for the other library."""
        self._dialect = "torch" if self._dialect == "python" else "python"
        try:
            self._code = self._copied(self._dialect)
        except InputError as error:
            self._code = f"# {error}\n"
        self._text.retitle(_TITLES[self._dialect])


def code_lines(code: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a program as lines of at most `width` cells."""
    lines: list[Line] = []
    for text in glyphs.say(code.rstrip("\n")).split("\n"):
        body = text.lstrip(" ")
        role: Role = "dim" if body.startswith("#") else "text"
        deeper = " " * min(len(text) - len(body) + _DEEPER, width // 2)
        parts = [text]
        if len(text) > width:
            parts = textwrap.wrap(text, max(width, 8), subsequent_indent=deeper, break_on_hyphens=False)
        lines.extend(((part, role),) for part in parts)
    return lines
