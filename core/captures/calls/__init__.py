"""Calls of attention by programs without PyTorch, and by engines, as captures."""
