"""The Claims pane: claims about √d_k, tested."""
