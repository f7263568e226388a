"""How many numbers become few."""
