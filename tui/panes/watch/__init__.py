"""The Watch pane."""
