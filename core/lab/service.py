"""Questions answered by a process of its own, so that measuring and painting do not wait for each other.

`python -c "from attn_tui.core.lab.service import main; main()"` reads questions from stdin and writes answers to
stdout, all of it pickled. A newer question takes the place of the one that is being answered. Who asks imports this
module too, which loads no NumPy.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from struct import Struct
from threading import Condition, Thread
from typing import TYPE_CHECKING, TypeAlias

from ..parameters import Parameters
from ..statistics.measurement import Measurement

if TYPE_CHECKING:
    from .sampling import Draws

HEAD = Struct("<QQ")  # before each answer: the number of its question, and how many bytes it has
FIRST = 0  # the number of the question that is asked while the one that asks is still being loaded
FIRST_ANSWERS = 3

# How much is done, 0 to 1; a measurement, perhaps of the first draws only; None where there is nothing to say.
Said: TypeAlias = float | Measurement[Parameters] | None

SILENCE = 0.15  # seconds after which a measurement that goes on says how far it is
PARTIAL = 0.5  # and shows what it has so far


def main() -> None:
    """Answer until nobody asks any more.

    The first question gets three answers: its measurement without histograms, which needs no NumPy to be shown; the
    measurement; the curves of its theory. Every other one gets what `telling` says. None in place of an answer says
    that it cannot be had; who asks finds out why by trying. None in place of a question ends the one before.
    """
    begun: list[Draws] = []
    first = Thread(target=_begin, args=(begun,))
    first.start()
    first.join()
    from ..blas import one_blas_thread

    inbox, [draws] = _Inbox(), begun
    with one_blas_thread():
        while True:
            number, question = inbox.take()
            try:
                for said in telling(question, draws) if question else ():
                    if inbox.waiting:
                        break
                    if said is not None:
                        _say(number, said)
            except Exception:
                _say(number, None)


def telling(question: Parameters, draws: Draws) -> Iterator[Said]:
    """What there is to say while this is measured, and at last the measurement of all draws."""
    from .experiment import stream

    told = shown = time.monotonic()
    complete = 0
    for step in stream(question, draws):
        now = time.monotonic()
        early = int(step.draws) > complete and now - shown > PARTIAL
        measurement = step.measurement() if early or step.fraction == 1 else None
        if measurement is not None:
            shown, complete = now, measurement.draws
            yield measurement
        elif now - told > SILENCE:
            told = now
            yield step.fraction
        else:
            yield None


def _begin(begun: list[Draws]) -> None:
    """Load what a measurement needs, and answer the first question, which may be None.

    It stands back where processors are busy, for the first frame is not to wait for it. On Linux that is a thread's
    own affair; elsewhere the whole process would stand back for good.
    """
    if sys.platform == "linux":
        os.nice(10)
    from ..blas import one_blas_thread
    from .sampling import Draws

    draws = Draws()
    begun.append(draws)
    with one_blas_thread():
        for answer in _first_answers(draws):
            _say(FIRST, answer)


def _first_answers(draws: Draws) -> Iterator[object]:
    from .experiment import run  # before the question is there: this is what takes long

    try:
        _, question = pickle.load(sys.stdin.buffer)
        measurement = run(question, draws)
    except Exception:
        yield from [None] * FIRST_ANSWERS
        return
    yield replace(measurement, columns=tuple(replace(each, histograms={}) for each in measurement.columns))
    yield measurement
    from .curves import prepared

    yield prepared(question.n_keys, question.mask)


def _say(number: int, answer: object) -> None:
    said = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(HEAD.pack(number, len(said)) + said)
    sys.stdout.buffer.flush()


class _Inbox:
    """The newest question; the process ends when there can be no other."""

    def __init__(self) -> None:
        self._newest: tuple[int, Parameters | None] | None = None
        self._changed = Condition()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                number, question = pickle.load(sys.stdin.buffer)
            except Exception:  # the end, or what nobody has asked
                os._exit(0)
            with self._changed:
                self._newest = (number, question)
                self._changed.notify()

    def take(self) -> tuple[int, Parameters | None]:
        """The newest question, waited for."""
        with self._changed:
            while self._newest is None:
                self._changed.wait()
            newest, self._newest = self._newest, None
            return newest

    @property
    def waiting(self) -> bool:
        """Whether there is one that has not been taken."""
        return self._newest is not None
