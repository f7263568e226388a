"""What is kept of one attention call."""
