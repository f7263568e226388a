"""The tensors beside queries and keys: their roles, by name, and whether they fit."""
