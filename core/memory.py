"""Memory that arrays leave is kept for the next ones.

A recompute takes the same few megabytes as the one before. The C library of most Linux systems gives them back to the
system in between, and every page is faulted in and cleared anew: a quarter of a recompute is that.
"""

from __future__ import annotations

import sys

# What GNU's malloc.h calls them, and bytes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_KEPT = 64 << 20  # free at the end of the heap; more than that is given back
_MAPPED = 32 << 20  # arrays as large as this are given back at once, and no larger limit is accepted


def keep_memory() -> None:
    """Have this process keep it, where the C library can be told so."""
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MAPPED)
        mallopt(_TRIM_THRESHOLD, _KEPT)
