"""How the logits of a head are computed: block by block, exactly or in a number format, in which setting."""
