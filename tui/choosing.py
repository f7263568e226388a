"""Choosing from a list over the pane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from textual.screen import Screen

from .views.fields.choice_list import ChoiceList
from .views.fields.choices import Choice
from .widgets.picker import ChoiceScreen


class ChoosingApp(Protocol):
    """What choosing needs of the app."""

    def push_screen(self, screen: Screen[str], callback: Callable[[str | None], None]) -> Any:
        """Show a screen over the pane, and call a function with its result."""
        ...

    def note(self, cause: str) -> None:
        """Note what is set now, for undo."""
        ...


def choose(
    app: ChoosingApp, title: str, choices: Sequence[Choice], current: str, take: Callable[[str], object]
) -> None:
    """Show a list; `take` is called with the value of the chosen row, and not at all if none is chosen."""

    def chosen(value: str | None) -> None:
        if value is not None:
            app.note("the mouse")
            take(value)
            app.note(f"choose {title}")

    app.push_screen(ChoiceScreen(ChoiceList.at(title, choices, current)), chosen)
