"""Programs that print again what is on screen, from the parameters or the Computation that it was computed from."""
