"""Results as programs that print them again."""
