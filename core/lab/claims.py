"""CLAIMS: what is said about √d_k in widely copied study notes, put to the test while one waits.

Every verdict is computed from what a measurement and the theory find now; none is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from ..blas import one_blas_thread
from .claims_of_layers import LAYERS
from .claims_of_scales import SCALES
from .claims_of_scores import SCORES
from .claims_of_softmax import SOFTMAX
from .verdicts import Claim, Figure, Finding, Outcome, Verdict, examine

__all__ = ["CLAIMS", "Claim", "Figure", "Finding", "Outcome", "Verdict", "check", "check_all"]

CLAIMS: tuple[Claim, ...] = SCORES + SOFTMAX + SCALES + LAYERS


def check(claim: Claim) -> Outcome:
    """Put one claim to the test."""
    with one_blas_thread():
        return examine(claim)


def check_all(claims: Sequence[Claim] = CLAIMS, workers: int = 2) -> Iterator[Outcome]:
    """Put claims to the test, so many at a time; outcomes come as they are ready, in no fixed order.

    Claims about time come last, one after the other, with nothing beside them. A claim is begun only when an outcome
    is asked for, so that whoever stops asking waits for no more than those that are running.
    """
    waiting = (claim for claim in claims if not claim.timed)
    running: set[Future[Outcome]] = set()
    with one_blas_thread(), ThreadPoolExecutor(workers, "claims") as pool:
        while True:
            running |= {pool.submit(examine, claim) for claim in islice(waiting, workers - len(running))}
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
        yield from (examine(claim) for claim in claims if claim.timed)
