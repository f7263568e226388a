"""What is seen of a forward pass: operations, and what they make of queries, keys, scores and weights."""
