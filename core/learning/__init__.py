"""A tour of why attention divides by √d_k: steps with a guess before each answer, every figure computed live."""
