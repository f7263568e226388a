"""How much memory some work takes."""

import tracemalloc
from collections.abc import Callable


def peak_memory(work: Callable[[], object], warm_up: bool = True) -> int:
    """The most bytes held at once during the work, which runs once before to import and cache what it needs."""
    if warm_up:
        work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
