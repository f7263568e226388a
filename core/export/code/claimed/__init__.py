"""Programs of the figures of claims, and of steps and questions of the tour."""
