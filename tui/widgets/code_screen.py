"""The screen that shows the code of what a pane shows."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.errors import InputError
from ..views.glyphs import Glyphs
from ..views.lines import Line, Role
from .help_screen import HelpScreen, HelpText

if TYPE_CHECKING:
    from ...core.program.text import Dialect


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
