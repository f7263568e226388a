"""The panes of the app."""
