"""Attention for any q and k: scores, softmax, gradients, number formats, cost."""
