"""Painting the screen, sending it to the terminal, and leaving the terminal. Start reading at `diff_screen`."""
