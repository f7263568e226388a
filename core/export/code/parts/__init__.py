"""Pieces of programs: each returns the lines of code for one thing, such as how scores are drawn."""
