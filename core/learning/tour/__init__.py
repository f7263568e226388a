"""The steps of the tour, as declarations."""
