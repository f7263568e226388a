"""What the app copies to the clipboard: the command of the pane, and selected text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from textual.screen import Screen

from ..core.errors import InputError
from .panes.pane import Pane
from .views.glyphs import Glyphs
from .views.lines import Line
from .views.notice import copied_lines, selected_line

if TYPE_CHECKING:
    from ..core.export.code.program import Dialect


class CopyingApp(Protocol):
    """What copying needs of the app."""

    glyphs: Glyphs

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        ...

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""
        ...

    def push_screen(self, screen: Screen[Any]) -> object:
        """Show a screen over the pane."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard."""
        ...

    def say(self, text: str) -> None:
        """Show a message."""
        ...

    def show_notice(self, write: Callable[[int], Sequence[Line]]) -> None:
        """Show the lines that `write` returns for a width."""
        ...


def copy_command(app: CopyingApp) -> None:
    """Copy the command for what is on screen, and show it, because a terminal may not permit the copy."""
    try:
        command = app.pane.command()
    except InputError as error:
        app.say(str(error))
    else:
        app.copy_to_clipboard(command)
        app.show_notice(lambda width: copied_lines(command, width, app.glyphs))


def show_code(app: CopyingApp) -> None:
    """Copy the code for what is on screen, and show it; its screen turns from NumPy to PyTorch and back."""
    from .widgets.code_screen import CodeScreen

    def copied(dialect: Dialect) -> str:
        code = app.pane.code(dialect)
        app.copy_to_clipboard(code)
        return code

    try:
        first = copied("python")
    except InputError as error:
        app.say(str(error))
    else:
        app.push_screen(CodeScreen(first, copied))


def copy_selection(app: CopyingApp) -> None:
    """Copy the text that is selected with the mouse, if any."""
    text = app.screen.get_selected_text() or ""
    if text.strip():
        app.copy_to_clipboard(text)
        app.show_notice(lambda width: [selected_line(text, width, app.glyphs)])
