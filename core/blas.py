"""One BLAS thread: a second one makes rare computations five times slower and none here much faster."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext

# Set before NumPy is loaded, which is to be after this module, these say it too; asking the loaded libraries takes as
# long as a tenth of loading NumPy.
VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_SAID = "numpy" not in sys.modules and all(os.environ.get(name) == "1" for name in VARIABLES)


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which matrix products use one thread."""
    if _SAID:
        return nullcontext()
    import numpy as np  # threadpoolctl limits what is loaded
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

    assert np.__version__
    return threadpool_limits(1)  # pyright: ignore[reportUnknownVariableType]
