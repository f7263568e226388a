"""Textual widgets; each shows one view."""
