"""Plots in characters: histograms, curves, the freezing gauge."""
