"""One question answered ahead: by a process of its own, while the one that asks is still being loaded.

`python -c "from attn_tui.core.lab.ahead import main; main()"` loads what a measurement needs, reads a question from
stdin and writes three answers to stdout, all of it pickled: its measurement without histograms, which needs no NumPy
to be shown; the measurement; the curves of its theory. Who asks imports this module too, which loads no NumPy.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

from ..parameters import Parameters

ANSWERS = 3
LENGTH = 8  # bytes before each answer that say how long it is


def main() -> None:
    """Answer what stdin asks; without a question, end."""
    from ..blas import one_blas_thread
    from .experiment import run  # before the question is there: this is what takes long

    try:
        question = pickle.load(sys.stdin.buffer)
    except EOFError:
        return
    assert isinstance(question, Parameters)
    with one_blas_thread():
        measurement = run(question)
        _say(replace(measurement, columns=tuple(replace(each, histograms={}) for each in measurement.columns)))
        _say(measurement)
        from .curves import prepared

        _say(prepared(question.n_keys, question.mask))


def _say(answer: object) -> None:
    said = pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.buffer.write(len(said).to_bytes(LENGTH) + said)
    sys.stdout.buffer.flush()
