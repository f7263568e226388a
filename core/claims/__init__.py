"""Claims about √d_k, and the measurements that test them."""
