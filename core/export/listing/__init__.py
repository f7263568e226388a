"""Results that are lists of things, written as these come."""
