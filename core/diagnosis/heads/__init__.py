"""One captured head at a time: its weights, what its logits consist of, and why it is worth a look."""
