"""Settings: declared in `declared`, read and written by `store`."""
