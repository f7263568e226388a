"""The Sweep pane: a statistic over d_k."""
