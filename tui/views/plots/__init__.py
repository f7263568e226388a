"""Plots in characters: histograms, curves, the saturation gauge."""
