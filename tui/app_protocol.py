"""What the modules beside the app need of it: those for lists, undo, copying and the command palette."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from textual.screen import Screen

from ..core.parameters import Parameters
from .history import History
from .panes.pane import Host, Pane
from .settings.declared import Settings
from .views.lines import Line


@dataclass(frozen=True)
class AppState:
    """What undo restores: the parameters, the pane on screen, the theme, the executor, and what each pane keeps."""

    parameters: Parameters
    active: str
    theme: str
    executor: str
    panes: Mapping[str, object]  # of those opened so far


class App(Host, Protocol):
    """The app, as the modules beside it use it; they do not import it, because it imports them."""

    active: str  # the name of the pane on screen
    panes: dict[str, Pane]  # those opened so far
    settings: Settings
    executor: str  # where long work is done
    theme: str
    history: History[AppState]

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

    def copy_to_clipboard(self, text: str) -> None:
        """Send a text to the terminal's clipboard."""
        ...

    async def run_action(self, action: str, default_namespace: Any) -> bool:
        """Run an action of the app or of a pane."""
        ...

    def do_next(self, action: Callable[[], object]) -> None:
        """Call a function when what was typed last has had its effect, before what was typed ahead."""
        ...
