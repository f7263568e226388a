"""A tour of why attention divides by √d_k, questions, bugs and claims: one list, its figures measured live."""
