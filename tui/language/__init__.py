"""The language that users read: which one, and its messages."""
