"""How panes get results: a pane sends a request to the engine, whose process answers it."""
