"""Tests assert nothing about time, and those that run side by side leave each other the processors."""

import os

from hypothesis import settings

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
