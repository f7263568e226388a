"""Questions answered by a process of its own, so that measuring and painting do not wait for each other.

`python -c "from attn_tui.core.lab.service import main; main()"` reads questions from stdin and writes answers to
stdout, all of it pickled. A newer question takes the place of the one that is being answered. Who asks imports this
module too, which loads no NumPy.

The curves that theory rests on can be told in place of a question, so that they are made by one process only.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from struct import Struct
from threading import Condition, Thread
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from ..errors import InputError
from ..parameters import Parameters
from ..statistics.measurement import Measurement
from .kept import curves_to_make

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from .prediction import Theory
    from .sampling import Draws

HEAD = Struct("<QQ")  # before each answer: the number of its question, and how many bytes it has
FIRST = 0  # the number of the question that is asked while the one that asks is still being loaded
FIRST_ANSWERS = 3
REFUSALS = (InputError, MemoryError)  # what people are told of, and the process goes on after

# How much is done, 0 to 1; a measurement, perhaps of the first draws only; None where there is nothing to say.
Said: TypeAlias = float | Measurement[Parameters] | None


class Explained(NamedTuple):
    """A measurement of all draws with its theory."""

    measurement: Measurement[Parameters]
    theory: Theory


# The number of a question, what it asks, and whether that is to be explained.
Asked: TypeAlias = tuple[int, Parameters | None, bool]

SILENCE = 0.15  # seconds after which a measurement that goes on says how far it is
PARTIAL = 0.5  # and shows what it has so far


def main() -> None:
    """Answer until nobody asks any more.

    The first question gets three answers: its measurement, the theory of that, and the curves that were made for it;
    the first two need no NumPy to be shown. Every other one gets what `telling` says. None in place of an answer says
    that it cannot be had; who asks finds out why by trying. None in place of a question ends the one before. An error
    that is no refusal ends the process, and who asks is told by that.
    """
    # A file object of its own: the interpreter waits at its end for a lock that a read from sys.stdin holds.
    questions = os.fdopen(0, "rb", closefd=False)
    begun: list[Draws] = []
    first = Thread(target=_begin, args=(questions, begun))
    first.start()
    first.join()
    if not begun:
        sys.exit(1)
    from ..blas import one_blas_thread

    inbox, [draws] = _Inbox(questions), begun
    with one_blas_thread():
        while asked := inbox.take():
            number, question, explained = asked
            try:
                for said in telling(question, draws) if question else ():
                    if inbox.waiting:
                        break
                    if said is not None:
                        _say(number, _explained(said) if explained else said)
            except REFUSALS:
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


def _explained(said: Said) -> Said | Explained:
    """This with its theory, if it is a measurement of all draws."""
    if not isinstance(said, Measurement) or not said.complete:
        return said
    from .comparison import theory_of

    return Explained(said, theory_of(said.subject)(said))


def _begin(questions: BinaryIO, begun: list[Draws]) -> None:
    """Load what a measurement needs and answer the first question; when that is done, `begun` has the draws.

    It stands back where processors are busy, for the first frame is not to wait for it. On Linux that is a thread's
    own affair; elsewhere the whole process would stand back for good.
    """
    if sys.platform == "linux":
        os.nice(10)
    from ..blas import one_blas_thread
    from ..memory import keep_memory
    from .sampling import Draws

    keep_memory()
    draws = Draws()
    with one_blas_thread():
        for answer in _first_answers(questions, draws):
            _say(FIRST, answer)
    begun.append(draws)


def _first_answers(questions: BinaryIO, draws: Draws) -> Iterator[object]:
    from .experiment import run  # before the question is there: this is what takes long

    _, question, _ = pickle.load(questions)
    try:
        measurement = question and run(question, draws)
    except REFUSALS:
        measurement = None
    if not measurement:
        yield from [None] * FIRST_ANSWERS
        return
    yield measurement
    from .comparison import theory_of
    from .curves import prepared

    yield theory_of(question)(measurement)
    made = curves_to_make(question)
    yield prepared(made) if made else {}


def _say(number: int, answer: object) -> None:
    said = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(HEAD.pack(number, len(said)) + said)
    sys.stdout.buffer.flush()


class _Inbox:
    """The newest question, until there can be no other."""

    def __init__(self, questions: BinaryIO) -> None:
        self._questions = questions
        self._newest: Asked | None = None
        self._ended = False
        self._changed = Condition()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            with suppress(EOFError):
                while True:
                    said: Asked | Mapping[int, FloatArray] = pickle.load(self._questions)
                    if isinstance(said, Mapping):
                        from .curves import adopt

                        adopt(said)
                    else:
                        self._put(said)
        finally:
            self._put(None)

    def _put(self, asked: Asked | None) -> None:
        with self._changed:
            self._newest, self._ended = asked, asked is None
            self._changed.notify()

    def take(self) -> Asked | None:
        """The newest question, which is waited for; None when nobody asks any more."""
        with self._changed:
            while not self.waiting:
                self._changed.wait()
            newest, self._newest = self._newest, None
            return newest

    @property
    def waiting(self) -> bool:
        """Whether there is one that has not been taken, or the end."""
        return self._newest is not None or self._ended
