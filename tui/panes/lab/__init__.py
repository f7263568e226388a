"""The Lab pane: random queries and keys, recomputed on every key."""
