"""Textual widgets, each of which shows one view."""
