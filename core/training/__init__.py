"""What the scale does to learning: a small attention that learns to recall, trained with one rule beside another."""
