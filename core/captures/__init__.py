"""Queries and keys of real models."""
