"""The curves of the Sweep pane: a statistic over d_k or the number of keys, and a table of its landmarks."""
