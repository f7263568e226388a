"""What attention computes, for any q and k."""
