"""Record the attention of any PyTorch program. Needs PyTorch and the standard library alone.

The recorder imports nothing else of attn-tui: programs load it by its path, in environments that do not have
attn-tui.
"""
