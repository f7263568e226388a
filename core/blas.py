"""One BLAS thread: a second one makes rare computations five times slower and none here much faster."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np  # before threadpoolctl looks for its BLAS


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which matrix products use one thread."""
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    assert np.__version__
    return threadpool_limits(1)  # pyright: ignore[reportUnknownVariableType]
