"""One head of a capture: its attention matrix, and one row."""
