"""The Learn pane: a guided tour, with a guess before each answer."""
