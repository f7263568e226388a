"""Two ways to write one bias: softmax ignores a constant in a row, and a log-sum-exp does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...arrays import FloatArray
from ..results import Finding
from ..subject import Subject, places

# Of the largest numbers of a linear bias: how far it may be from its line. Rounding to float32 leaves 6e-8. Of 120
# healthy heads with 64 to 1,024 keys and 12 slopes none is accused, and none of 24 other biases or scales passes.
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
        if not np.allclose(wanted, offsets, rtol=_ALIKE, atol=_ALIKE * abs(slope) * subject.k.shape[1]):
            assert subject.bias is not None
            yield replace(subject, bias=subject.bias + (wanted - offsets)[:, np.newaxis])


def _linear(subject: Subject) -> tuple[float, FloatArray] | None:
    """Return the slope of a bias over keys, and the offset of each row at key 0; None if it has no such form.

    Only keys that a query sees count.
    """
    if subject.bias is None or subject.bias.shape[-1] < 2:
        return None
    bias, keys = subject.bias, places(subject.bias.shape[-1])
    seen = np.ones(bias.shape, np.bool_) if subject.seen is None else subject.seen
    first, last = seen.argmax(axis=-1), keys[-1] - seen[..., ::-1].argmax(axis=-1)  # visible keys
    ends = [np.take_along_axis(bias, query[..., np.newaxis], axis=-1)[..., 0] for query in (first, last)]
    widest = np.unravel_index(np.where(seen.any(axis=-1), last - first, 0).argmax(), first.shape)
    slope = float(ends[1][widest] - ends[0][widest]) / max(int(last[widest] - first[widest]), 1)
    texts = seen.any(axis=-1).argmax(axis=0)  # one in which the query sees a key
    offsets = (ends[0] - slope * first)[texts, places(len(texts))]
    away = np.abs(bias - slope * keys - offsets[:, np.newaxis])
    near = away <= _ALIKE * (np.abs(bias) + abs(slope) * len(keys))
    return (slope, offsets) if slope and bool(np.all(near | ~seen)) else None


def mask_added(subject: Subject) -> Finding | None:
    """Return the finding that the file's bias is a boolean mask, added to the logits as 1 and 0; None if it is not.

    It has these two numbers on the keys that a query sees, and is a triangle, or the same for all queries.
    """
    bias = subject.bias
    if bias is None:
        return None
    shown = bias if subject.seen is None else bias[subject.seen]
    if not (np.any(shown == 0) and np.any(shown == 1) and np.all((shown == 0) | (shown == 1))):
        return None
    earlier = places(bias.shape[-1]) <= subject.positions[:, np.newaxis]
    kinds = (earlier, ~earlier, bias[:, :1])
    hidden = False if subject.seen is None else ~subject.seen
    if not any(np.all((bias == kind) | hidden) for kind in kinds):
        return None
    says = "a mask of True and False was added to the logits, as 1 and 0: it hides no key; −∞ does, or a boolean mask"
    return Finding("mask-added", says, ("bias-extra",), "mask")
