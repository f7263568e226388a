"""CLAIMS: widely copied statements about √d_k, each tested in a few seconds.

Every verdict is computed from a new measurement and the theory; none is stored.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from ..blas import one_blas_thread
from .about_layers import LAYERS
from .about_scales import SCALES
from .about_scores import SCORES
from .about_softmax import SOFTMAX
from .about_training import TRAINING
from .claim import Claim, Outcome
from .examine import examine

__all__ = ["CLAIMS", "check", "check_all"]

_PAUSE = 0.02  # seconds to wait for an outcome before yielding None

CLAIMS: tuple[Claim, ...] = SCORES + SOFTMAX + SCALES + TRAINING + LAYERS


def check(claim: Claim) -> Outcome:
    """Test one claim."""
    with one_blas_thread():
        return examine(claim)


def check_all(claims: Sequence[Claim] = CLAIMS, workers: int = 2) -> Generator[Outcome | None, None, None]:
    """Test claims, `workers` at a time; yield outcomes as they finish, and None every few milliseconds between them.

    A claim is started only when the next outcome is requested, so a caller that stops waits only for the claims
    already running.
    """
    waiting = iter(claims)
    running: set[Future[Outcome]] = set()
    with one_blas_thread(), ThreadPoolExecutor(workers, "claims") as pool:
        while True:
            running |= {pool.submit(examine, claim) for claim in islice(waiting, workers - len(running))}
            if not running:
                break
            done, running = wait(running, _PAUSE, FIRST_COMPLETED)
            for future in done:
                yield future.result()
            if not done:
                yield None
