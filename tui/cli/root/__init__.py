"""attn-tui: see, predict and debug the scale in scaled dot-product attention, from a terminal."""
