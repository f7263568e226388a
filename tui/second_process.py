"""A second process, which measures while this one paints.

At the start Textual, NumPy, the first measurement and the curves of its theory, one after the other, would take three
times as long as the toolkit alone; with a second processor the numbers are there when the first frame is. From then
on the threads of one process would hinder each other: measuring is many short calls, and Python runs one
thread at a time. What comes from there is shown without NumPy, which this process loads when it has to compute
something itself: the curves of other rows, another pane's results, or everything, should that process fail.
"""

from __future__ import annotations

import math
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.lab.kept import curves_to_make
from ..core.lab.service import FIRST, FIRST_ANSWERS, HEAD, Asked, Explained, Said
from ..core.statistics.measurement import Measurement

if TYPE_CHECKING:
    from ..core.arrays import FloatArray
    from ..core.lab.prediction import Theory
    from ..core.parameters import Parameters

# Products of a first measurement: more take so long that partial results and progress are wanted on the way.
_FEW = 1 << 25
_AT_ONCE = 1 << 16  # bytes
_LOOK = 0.02  # seconds that a look for a first answer takes at most
_GLANCE = 0.008  # and for any other, which may no longer be wanted; shorter looks take time from keys and frames
_PATIENCE = 2.0  # times as long as this process took to be loaded, after which no first answer is worth waiting for
_SILENCE = 10.0  # seconds of looking after which nothing more is expected; it says much sooner how far it is
_PROGRAM = "from attn_tui.core.lab.service import main; main()"


class UnansweredError(Exception):
    """The second process does not answer this."""


class SecondProcess:
    """A process that loads NumPy, answers a first question, and then others as they come."""

    def __init__(self) -> None:
        self._first: Parameters | None = None
        self._asked = 0.0  # when the first question was
        self._until = math.inf  # when a first answer is no longer waited for
        self._number = FIRST  # of the newest question
        self._heard: dict[int, list[bytes]] = {FIRST: []}  # answers, pickled, by the numbers of their questions
        self._said = bytearray()  # of the next answer
        self._silent = 0.0  # seconds that were looked for answers since the last one; it may be suspended for longer
        self._lock = Lock()  # one thread may look for an answer while another one does, or ends the process
        self._process: subprocess.Popen[bytes] | None = None
        if _side_by_side():
            command, pipe = [sys.executable, "-P", "-c", _PROGRAM], subprocess.PIPE
            with suppress(OSError):  # no more processes, for one, may be allowed here
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def begin(self, question: Parameters) -> None:
        """Have this answered first, if that does not take long."""
        p = question
        self._first = p if p.batch * p.n_queries * p.n_keys * p.d_k <= _FEW else None
        self._asked = time.monotonic()
        self._put((FIRST, self._first, False))

    @property
    def there(self) -> bool:
        """Whether there is such a process."""
        return self._process is not None

    def explains(self, question: Parameters) -> bool:
        """Whether the theory of this comes from there without being asked for."""
        return self.there and question == self._first

    def first_measurement(self, question: Parameters) -> Measurement[Parameters] | None:
        """The first measurement, if it is there already."""
        return next(iter(self._there_already(question, 1)), None)

    def first(self, question: Parameters) -> Measurement[Parameters] | Explained | None:
        """As much of the first measurement and its theory as is there already."""
        found = self._there_already(question, 2)
        return Explained(*found) if len(found) == 2 and found[1] else found[0] if found else None

    def _there_already(self, question: Parameters, most: int) -> Sequence[Any]:
        """The first answers to this question, without waiting for any."""
        if question != self._first:
            return []
        heard = self._heard[FIRST]
        while len(heard) < most and self._look(0):
            pass
        return [pickle.loads(answer) for answer in heard[:most]]

    def theory(self, question: Parameters) -> Iterator[Theory | None]:
        """None while it is awaited, then the theory of the first measurement; nothing for another one."""
        if question == self._first:
            yield from self._first_answer(1)

    def curves(self, question: Parameters) -> Iterator[Mapping[int, FloatArray] | None]:
        """None while they are awaited, then what `curves.adopt` takes; nothing for rows unlike the first ones."""
        made = curves_to_make(question)
        if self._first is not None and made is not None and made == curves_to_make(self._first):
            yield from self._first_answer(2)

    def adopt(self, curves: Mapping[int, FloatArray]) -> None:
        """Let it know these, which `curves.prepared` made here."""
        self._put(curves)

    def measure(self, question: Parameters, explained: bool = False) -> Iterator[Said | Explained]:
        """What `telling` says of this; raises UnansweredError where that is not to be had, or no longer.

        Explained, the measurement of all draws comes with its theory; the curves of such rows must be known there.
        """
        if question == self._first:
            for found in self._first_answer(0):
                if found is None:
                    yield None
            found = self.first(question)
            if found is None:
                raise UnansweredError
            yield found
            return
        while self._busy and self._look(0):  # nobody else may be waiting for the first answers
            pass
        if self._busy:  # with so little that nobody should wait for that
            raise UnansweredError
        number = self._ask(question, explained)
        heard = self._heard[number]
        try:
            while True:
                said = yield from self._next_answer(heard)
                if said is None:
                    raise UnansweredError
                yield said
                if isinstance(said, Explained) or (isinstance(said, Measurement) and said.complete):
                    number = 0
                    return
        finally:
            if number == self._number:  # it is no longer wanted, and nothing else has been asked
                self._ask(None)

    @property
    def _busy(self) -> bool:
        return self._first is not None and len(self._heard[FIRST]) < FIRST_ANSWERS

    def _ask(self, question: Parameters | None, explained: bool = False) -> int:
        """The number of this question, which takes the place of the one before."""
        self._number += 1
        self._heard = {FIRST: self._heard[FIRST], self._number: []}
        self._put((self._number, question, explained))
        return self._number

    def _next_answer(self, heard: list[bytes]) -> Generator[None, None, Any]:
        """Wait for it."""
        while not heard:
            if not self.there or self._silent > _SILENCE:
                self.close()
                raise UnansweredError
            yield None
            self._silent = 0.0 if self._look(_GLANCE) else self._silent + _GLANCE
        return pickle.loads(heard.pop(0))

    def _first_answer(self, index: int) -> Iterator[Any]:
        heard, now = self._heard[FIRST], time.monotonic()
        self._until = min(self._until, now + _PATIENCE * (now - self._asked))
        while len(heard) <= index and self.there and now <= self._until:
            self._look(_LOOK)
            now = time.monotonic()
            yield None
        if len(heard) > index:
            yield pickle.loads(heard[index])

    def _put(self, said: Asked | Mapping[int, FloatArray]) -> None:
        process = self._process
        if process is not None and process.stdin is not None:
            try:
                process.stdin.write(pickle.dumps(said))
                process.stdin.flush()
            except (OSError, ValueError):  # it has ended, or has been ended
                self.close()

    def _look(self, seconds: float) -> bool:
        """Take in what has come, or comes within this time; whether there was something."""
        with self._lock:
            if self._process is None or self._process.stdout is None:
                return False
            pipe = self._process.stdout.fileno()
            if not select.select([pipe], [], [], seconds)[0]:
                return False
            said = os.read(pipe, _AT_ONCE)
            self._said += said
            self._take_answers()
        if not said:
            self.close()
        return bool(said)

    def _take_answers(self) -> None:
        """What has been said in full; answers to questions that have been replaced are dropped."""
        while len(self._said) >= HEAD.size:
            number, length = HEAD.unpack_from(self._said)
            if len(self._said) < HEAD.size + length:
                break
            heard = self._heard.get(number)  # looked up once: another thread may ask meanwhile
            if heard is not None:
                heard.append(bytes(self._said[HEAD.size : HEAD.size + length]))
            del self._said[: HEAD.size + length]

    def close(self) -> None:
        """End the process; what it has answered stays."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None:
                process.kill()
                for pipe in (process.stdin, process.stdout):
                    with suppress(OSError):  # it may not have taken all that was written to it
                        if pipe is not None:
                            pipe.close()
                process.wait()


def _side_by_side() -> bool:
    """Whether there is a processor for each of two processes, and a way to wait for a pipe."""
    if os.name != "posix" or not sys.executable:
        return False
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return processors > 1
