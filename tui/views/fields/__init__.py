"""Parameters as fields: what is typed, what can be chosen."""
