"""Limit BLAS to one thread: a second one makes some computations five times slower and none here much faster."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext

# If these are 1 before NumPy is loaded, no further limit is needed; querying the loaded libraries takes a tenth of
# the time of loading NumPy.
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_LIMITED = "numpy" not in sys.modules and all(os.environ.get(name) == "1" for name in VARIABLES)


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which matrix products use one thread."""
    if _LIMITED:
        return nullcontext()
    import numpy as np  # threadpoolctl limits only loaded libraries
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    assert np.__version__
    return threadpool_limits(1)  # pyright: ignore[reportUnknownVariableType]
