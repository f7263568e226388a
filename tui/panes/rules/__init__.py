"""The Rules pane: every scale rule side by side."""
