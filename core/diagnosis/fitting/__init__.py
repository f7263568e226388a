"""Fit models of what was done to evidence, and judge them by rounding."""
