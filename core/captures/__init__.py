"""Captured queries and keys of real models."""
