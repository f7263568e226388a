"""The terminal side: command line, views, widgets, panes and the app that owns the state."""
