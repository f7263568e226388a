"""Arrays that come again need no new memory from the system."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import numpy as np
from attn_tui.core.memory import keep_memory

if "keep" in sys.argv:
    keep_memory()
else:  # as glibc does by itself at first; it learns from arrays that are given back
    import ctypes
    ctypes.CDLL(None).mallopt(-3, 1 << 17)

def work():
    for _ in range(100):
        np.ones(1 << 17) * 2

work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*arguments: str) -> int:
    """Pages that were faulted in while arrays of a megabyte came and went."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="where memory can be kept")
def test_memory_that_arrays_leave_is_kept_for_the_next_ones() -> None:
    assert faults("keep") < 1000 < faults()
