"""Compare two captures, stage by stage."""
