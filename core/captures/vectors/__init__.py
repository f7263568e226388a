"""Queries and keys as they are stored: the order of their axes, and their sizes."""
