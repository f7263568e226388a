"""What is written, and where."""
