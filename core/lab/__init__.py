"""Random queries and keys."""
