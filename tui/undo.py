"""What undo restores of the app, and how."""

from __future__ import annotations

from .app_protocol import App, Seen
from .history import History


def seen(app: App) -> Seen:
    """Return what is set now."""
    return Seen(app.parameters, {name: pane.kept for name, pane in app.panes.items()})


def restore(app: App, history: History[Seen], otherwise: str) -> None:
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
