"""The code of what you see: short NumPy or PyTorch programs that reproduce printed numbers."""
