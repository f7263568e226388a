"""The app: keys, the command palette, lists, undo."""
