"""The Heads pane: what a layer costs."""
