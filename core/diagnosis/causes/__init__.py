"""What may have been done to a head: masks, transformations, bends, biases, dropout."""
