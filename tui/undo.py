"""What undo restores of the app, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..core.parameters import Parameters
from .history import History
from .panes.pane import Pane


@dataclass(frozen=True)
class Seen:
    """What undo restores: the parameters, and what each opened pane keeps."""

    parameters: Parameters
    panes: Mapping[str, object]


class Undone(Protocol):
    """What undo needs of the app."""

    parameters: Parameters
    panes: dict[str, Pane]
    active: str
    history: History[Seen]
    as_left: bool

    @property
    def pane(self) -> Pane:
        """The pane on screen."""
        ...

    def action_pane(self, name: str) -> None:
        """Show a pane."""
        ...

    def show_status(self) -> None:
        """Show the pane's status again."""
        ...

    def say(self, text: str) -> None:
        """Show a message."""
        ...


def seen(app: Undone) -> Seen:
    """Return what is set now."""
    return Seen(app.parameters, {name: pane.kept for name, pane in app.panes.items()})


def restore(app: Undone, history: History[Seen], otherwise: str) -> None:
    """Restore the present of a history, and show the pane that changes; if it is the app's own, say `otherwise`."""
    if history is app.history:
        app.say(otherwise)
        return
    past = history.present
    moved = [name for name, kept in past.panes.items() if kept != app.panes[name].kept]
    for name in moved:
        app.panes[name].put_back(past.panes[name])
    same = past.parameters == app.parameters
    app.parameters, app.as_left = past.parameters, app.as_left and same
    app.history = history.showing(seen(app))
    if same and moved and app.active not in moved:
        app.action_pane(moved[0])
    else:
        app.pane.follow()
        app.show_status()
