"""What `import attn_tui` offers: the same numbers as the commands, as objects."""
