"""Claims about √d_k, by what they are about."""
