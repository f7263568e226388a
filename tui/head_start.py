"""The first measurement, made by a second process while this one loads Textual.

One after the other, Textual, NumPy, the measurement and the curves of its theory take three times as long as the
toolkit alone. They need nothing of each other, so that with a second processor the numbers are there when the first
frame is. Whatever goes wrong with that process, the app computes for itself, as it does for every later question.
"""

from __future__ import annotations

import math
import os
import pickle
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.lab.ahead import ANSWERS, LENGTH

if TYPE_CHECKING:
    from ..core.arrays import FloatArray
    from ..core.parameters import Parameters
    from ..core.statistics.measurement import Measurement

# Products of a measurement: more take so long that partial results and progress are wanted on the way.
_FEW = 1 << 25
_AT_ONCE = 1 << 16  # bytes
_LOOK = 0.02  # seconds that a look for an answer takes at most
_PATIENCE = 2.0  # times as long as this process took to be loaded, after which no answer is worth waiting for
# It stands back where processors are busy: the first frame is not to wait for it.
_PROGRAM = "import os; os.nice(10); from attn_tui.core.lab.ahead import main; main()"


class HeadStart:
    """A process that loads NumPy, is asked one question, gives its three answers, and ends."""

    def __init__(self) -> None:
        self._question: Parameters | None = None
        self._answers: list[bytes] = []  # pickled
        self._said = bytearray()  # of the next answer
        self._asked = 0.0
        self._until = math.inf
        self._lock = Lock()  # one thread may look for an answer while another one ends the process
        self._process: subprocess.Popen[bytes] | None = None
        if _side_by_side():
            command, pipe = [sys.executable, "-P", "-c", _PROGRAM], subprocess.PIPE
            with suppress(OSError):  # no more processes, for one, may be allowed here
                self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def ask(self, question: Parameters) -> None:
        """Have this answered, if that does not take long."""
        p = question
        if self._process is None or p.batch * p.n_queries * p.n_keys * p.d_k > _FEW:
            self.close()
            return
        self._question, self._asked = question, time.monotonic()
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(pickle.dumps(question))
            self._process.stdin.close()
        except OSError:
            self.close()

    def numbers(self, question: Parameters) -> Measurement[Parameters] | None:
        """The measurement without histograms, if it is there already."""
        if question != self._question:
            return None
        if not self._answers:
            self._look(0)
        return pickle.loads(self._answers[0]) if self._answers else None

    def measurement(self, question: Parameters) -> Iterator[Measurement[Parameters] | None]:
        """None for as long as the answer is awaited, then the answer; nothing if this has not been asked."""
        if question == self._question:
            yield from self._answer(1)

    def curves(self, question: Parameters) -> Iterator[Mapping[int, FloatArray] | None]:
        """The same for what `curves.adopt` takes, which is also that of other questions about the same rows."""
        asked = self._question
        if asked is not None and (question.n_keys, question.mask) == (asked.n_keys, asked.mask):
            yield from self._answer(2)

    def _answer(self, number: int) -> Iterator[Any]:
        now = time.monotonic()
        self._until = min(self._until, now + _PATIENCE * (now - self._asked))
        while len(self._answers) <= number and self._process is not None:
            self._look(_LOOK)
            yield None
        if len(self._answers) > number:
            yield pickle.loads(self._answers[number])

    def _look(self, seconds: float) -> None:
        """Take in what has come, or comes within this time."""
        with self._lock:
            if self._process is None or self._process.stdout is None:
                return
            pipe = self._process.stdout.fileno()
            if select.select([pipe], [], [], seconds)[0]:
                said = os.read(pipe, _AT_ONCE)
                self._said += said
                self._take_answers()
                if said and len(self._answers) < ANSWERS:
                    return
            elif time.monotonic() < self._until:
                return
        self.close()

    def _take_answers(self) -> None:
        """What has been said in full; each answer comes after its length."""
        while len(self._said) >= (end := LENGTH + int.from_bytes(self._said[:LENGTH])) > LENGTH:
            self._answers.append(bytes(self._said[LENGTH:end]))
            del self._said[:end]

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
