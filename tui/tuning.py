"""Tuning of the environment, the garbage collector and the memory allocator, each with the figure it buys.

The figures are medians of interleaved runs on two cores, in a terminal of 120×40, without and with the setting.
"""

from __future__ import annotations

import gc
import os
import sys

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

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of GNU's malloc.h
_TRIM_BYTES = 64 << 20  # free memory at the end of the heap beyond this is returned to the system
_MMAP_BYTES = 32 << 20  # larger arrays are mapped, and returned at once; glibc accepts no higher threshold


def set_environment() -> None:
    """Set the variables that libraries read when loaded, unless the user has set them."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def pause_collector() -> None:
    """Collect no garbage during start-up, whose objects stay alive: the first result after 358 → 332 ms."""
    gc.disable()


def resume_collector() -> None:
    """Collect garbage again, without examining the objects of start-up: a full collection takes 36 → 0 ms."""
    gc.freeze()
    gc.enable()


def keep_memory() -> None:
    """Make glibc keep freed memory for the next arrays: a recompute takes 9 → 6.5 ms.

    Each recompute needs the same few megabytes. By default glibc returns them to the system in between, and every
    page is then faulted in and cleared again.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
