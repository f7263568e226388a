"""Two ways to write one bias: softmax ignores a constant in a row, and a log-sum-exp does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...arrays import FloatArray
from ..subject import Subject, places

# Relative: how exactly a bias has to be linear in the keys. Rounding it to float32 leaves as much in the steps
# between 168 keys, and nothing if the slope is a power of two.
_ALIKE = 1e-5


def of_other_offsets(subject: Subject) -> Iterator[Subject]:
    """Yield the head with a linear bias of each other offset in its rows: −slope·(query − key), and slope·key.

    Press et al. 2021 (arXiv 2108.12409) subtract distances; flash-attention's causal kernel adds slope·column. The
    weights are the same, and the log-sum-exp of row i larger by slope·i.
    """
    linear = _linear(subject)
    if linear is None:
        return
    slope, offsets = linear
    for wanted in (np.zeros_like(offsets), -slope * subject.positions):
        if not np.allclose(wanted, offsets, rtol=_ALIKE, atol=_ALIKE * abs(slope)):
            assert subject.bias is not None
            yield replace(subject, bias=subject.bias + (wanted - offsets)[:, np.newaxis])


def _linear(subject: Subject) -> tuple[float, FloatArray] | None:
    """Return the slope of a bias over keys, and the offset of each row at key 0; None if it has no such form.

    Only keys that a query sees count.
    """
    if subject.bias is None or subject.bias.shape[-1] < 2:
        return None
    bias = subject.bias
    seen = np.ones(bias.shape, np.bool_) if subject.seen is None else subject.seen
    both = seen[..., 1:] & seen[..., :-1]
    steps = np.diff(bias, axis=-1)[both]
    if not steps.size or not steps[0] or not np.allclose(steps, steps[0], rtol=_ALIKE, atol=0):
        return None
    slope = float(np.median(steps))
    offsets = bias - slope * places(bias.shape[-1])
    of_rows = np.take_along_axis(offsets, seen.argmax(axis=-1)[..., np.newaxis], axis=-1)  # at the first visible key
    texts = seen.any(axis=-1).argmax(axis=0)  # one in which the query sees a key
    common = of_rows[texts, places(len(texts))]
    near = np.abs(offsets - common) <= _ALIKE * (np.abs(bias) + abs(slope) * bias.shape[-1])
    return (slope, common[:, 0]) if bool(np.all(near | ~seen)) else None
