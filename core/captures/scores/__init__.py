"""The scores of a head."""
