"""Programs of heads of captures, which load their file."""
