"""Tuning of the environment and the garbage collector, each with the figure it buys.

The figures are medians of interleaved runs on two cores, in a terminal of 120×40, without and with the setting.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

# Read when NumPy and Textual are loaded.
ENVIRONMENT = {
    # A recompute takes 15 → 6.5 ms of processor time; its wall time stays at 7 ms, beside other programs 26 → 12 ms.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    # A typed d_k is shown after 34 → 22 ms; with a key held at 100/s, 25 → 7 of 60 states are skipped.
    "TEXTUAL_FPS": "240",
}


def set_environment() -> None:
    """Set the variables that libraries read when loaded, unless the user has set them."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@contextmanager
def paused_collector() -> Generator[None, None, None]:
    """Collect no garbage during start-up, whose objects stay alive: the first result after 358 → 332 ms."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def resume_collector() -> None:
    """Collect garbage again, without examining the objects of start-up: a full collection takes 36 → 0 ms."""
    gc.freeze()
    gc.enable()
