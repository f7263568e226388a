"""Work cut into parts, and the engines that perform them."""
