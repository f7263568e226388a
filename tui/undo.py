"""What undo restores of the app, and how."""

from __future__ import annotations

from .app_protocol import App, AppState
from .history import History


def state_of(app: App) -> AppState:
    """Return what is set now."""
    kept = {name: pane.undo_state for name, pane in app.panes.items()}
    return AppState(app.parameters, app.active, app.theme, app.executor, kept)


def restore(app: App, history: History[AppState], otherwise: str) -> None:
    """Restore the present of a history, with the pane that was on screen; if it is the app's own, say `otherwise`."""
    if history is app.history:
        app.say(otherwise)
        return
    past = history.present
    for name, state in past.panes.items():
        if state != app.panes[name].undo_state:
            app.panes[name].restore_state(state)
    app.parameters, app.theme = past.parameters, past.theme
    if past.executor != app.executor:
        from .choosing import use_executor

        use_executor(app, past.executor)
    moved = past.active != app.active
    app.show_pane(past.active)
    app.history = history.showing(state_of(app))
    focused = app.screen.focused
    if moved or focused is None or not focused.focusable:
        app.screen.set_focus(app.pane)  # the pane itself, not a field, where the next `u` would be typed
