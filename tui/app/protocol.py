"""What the other modules in this folder need of the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from textual.screen import Screen

from ..panes.pane import Host, Pane
from ..settings.declared import Settings
from ..views.lines import Line


class App(Host, Protocol):
    """The app, as the modules that it imports use it."""

    active: str  # the name of the pane on screen
    panes: dict[str, Pane]  # those opened so far
    settings: Settings
    executor: str  # where long work is done
    theme: str
    usual_theme: str
    previewing: bool  # whether a list shows the effect of its rows, none of which is chosen yet

    @property
    def available_themes(self) -> Mapping[str, object]:
        """The themes by their names."""
        ...

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        ...

    @property
    def screen(self) -> Screen[Any]:
        """The screen on top."""
        ...

    def action_pane(self, name: str) -> None:
        """Show a pane."""
        ...

    def show_pane(self, name: str) -> None:
        """Show a pane, and leave the focus where it is."""
        ...

    def note(self, cause: str) -> None:
        """Note what is set now, for undo."""
        ...

    def note_mouse(self) -> None:
        """Note what the mouse has set since the last action."""
        ...

    def show_notice(self, write: Callable[[int], Sequence[Line]]) -> None:
        """Show the lines that `write` returns for a width, until the next key."""
        ...

    def push_screen(self, screen: Screen[Any], callback: Callable[[Any], None] | None = None) -> object:
        """Show a screen over the pane, and call a function with its result."""
        ...

    def use_executor(self, name: str) -> None:
        """Do long work there from now on."""
        ...

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard."""
        ...

    async def run_action(self, action: str, default_namespace: Any) -> bool:
        """Run an action of the app or of a pane."""
        ...

    def do_next(self, action: Callable[[], object]) -> None:
        """Call a function when what was typed last has had its effect, before what was typed ahead."""
        ...
