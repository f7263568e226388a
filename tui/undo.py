"""What undo restores of the app, and how."""

from __future__ import annotations

from .app_protocol import App, AppState
from .history import History


def state_of(app: App) -> AppState:
    """Return what is set now."""
    return AppState(app.parameters, {name: pane.undo_state for name, pane in app.panes.items()})


def restore(app: App, history: History[AppState], otherwise: str) -> None:
    """Restore the present of a history, and show the pane that changes; if it is the app's own, say `otherwise`."""
    if history is app.history:
        app.say(otherwise)
        return
    past = history.present
    moved = [name for name, state in past.panes.items() if state != app.panes[name].undo_state]
    for name in moved:
        app.panes[name].restore_state(past.panes[name])
    same = past.parameters == app.parameters
    app.parameters, app.as_left = past.parameters, app.as_left and same
    app.history = history.showing(state_of(app))
    if same and moved and app.active not in moved:
        app.action_pane(moved[0])
    else:
        app.pane.follow()
        app.show_status()
