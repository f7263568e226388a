"""Measurements of attention with random queries and keys."""
