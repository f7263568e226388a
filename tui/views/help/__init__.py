"""The help: its page, the names of keys, the status words."""
