"""The heads of a capture in order: ranked, listed, found, selected."""
