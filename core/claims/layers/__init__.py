"""Measurements of whole layers: a stack of them, and several heads."""
