"""The comparison of weightings: what makes attention weights of logits."""
