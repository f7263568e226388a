"""Questions about captured heads."""
