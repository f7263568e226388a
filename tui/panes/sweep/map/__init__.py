"""The map of the Sweep pane: a statistic over d_k and the number of keys."""
