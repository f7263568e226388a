"""Work cut into parts, and the executors that perform them."""
