"""What evidence and explanations of a head amount to."""
