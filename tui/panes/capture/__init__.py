"""The Capture pane: the heads of a real model."""
