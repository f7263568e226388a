"""Tuning of the environment, the garbage collector and the memory allocator.

Its effect is measured by `make bench-terminal`: two cores, 120×40, medians of interleaved runs.
"""

from __future__ import annotations

import gc
import os
import sys

# Read when NumPy and Textual are loaded.
ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
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
    """Collect no garbage during start-up, whose objects stay alive."""
    gc.disable()


def resume_collector() -> None:
    """Collect garbage again, but do not examine the objects of start-up."""
    gc.freeze()
    gc.enable()


def keep_memory() -> None:
    """Make glibc keep freed memory for the next arrays.

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
