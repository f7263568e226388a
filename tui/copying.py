"""What the app copies to the clipboard: the command of the pane, and selected text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import InputError
from .app_protocol import App
from .views.notice import copied_lines, selected_line

if TYPE_CHECKING:
    from ..core.export.code.program import Dialect


def copy_command(app: App) -> None:
    """Copy the command for what is on screen, and show it, because a terminal may not permit the copy."""
    try:
        command = app.pane.command()
    except InputError as error:
        app.say(str(error))
    else:
        app.copy_to_clipboard(command)
        app.show_notice(lambda width: copied_lines(command, width, app.glyphs))


def show_code(app: App) -> None:
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


def copy_selection(app: App) -> None:
    """Copy the text that is selected with the mouse, if any."""
    text = app.screen.get_selected_text() or ""
    if text.strip():
        app.copy_to_clipboard(text)
        app.show_notice(lambda width: [selected_line(text, width, app.glyphs)])
