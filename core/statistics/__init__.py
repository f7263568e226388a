"""Statistics of scores and weights: sums, estimates, histograms."""
