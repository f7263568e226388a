"""Exact expectations, derived independently of the lab's measurements."""
