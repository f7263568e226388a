"""A training run, step by step: what its heads do, which of them grow, and when they pass a limit."""
