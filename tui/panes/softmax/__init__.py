"""The Softmax pane: softmax of a few scores, step by step."""
