"""Choosing from a list over the pane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from textual.screen import Screen

from ..core.message import message
from .views.fields.choice_list import ChoiceList
from .widgets.picker import ChoiceScreen


class ChoosingApp(Protocol):
    """What choosing needs of the app."""

    def push_screen(self, screen: Screen[tuple[str, ...]], callback: Callable[[tuple[str, ...] | None], None]) -> Any:
        """Show a screen over the pane, and call a function with its result."""
        ...

    def note(self, cause: str) -> None:
        """Note what is set now, for undo."""
        ...


def choose(app: ChoosingApp, found: ChoiceList, take: Callable[[Sequence[str]], object]) -> None:
    """Show a list; `take` is called with the values of the chosen rows, and not at all if it is cancelled."""

    def chosen(values: tuple[str, ...] | None) -> None:
        if values is not None:
            app.note("the mouse")
            take(values)
            app.note(message("choose {title}", title=found.title))

    app.push_screen(ChoiceScreen(found), chosen)
