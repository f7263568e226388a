"""HYPOTHESES about what was done to a head, other than what its file says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...arrays import FloatArray
from ...message import message
from ..fitting.model import Model
from ..subject import Evidence, Indices, Subject, places
from .hypothesis import Hypothesis, as_stored, in_rows
from .transforms import normalisations, rotations
from .uneven import uneven, uneven_blocks
from .visibility import variants
from .windows import windows

_BUCKETS, _FARTHEST = 32, 128  # of T5's relative positions


def declared(subject: Subject) -> list[Hypothesis]:
    """Return the hypotheses that something the file says was lost: these are tried on every head."""
    facts, found = subject.facts, list[Hypothesis]()
    if facts.softcap is not None:
        cap = facts.softcap
        found.append(
            Hypothesis(
                "softcap-missing",
                message("the soft-cap {cap:g} was not applied", cap=cap),
                lambda s: replace(as_stored(s), softcap=None),
            )
        )
    if facts.sink is not None:
        found.append(Hypothesis("sink-missing", "the sink was left out", lambda s: replace(as_stored(s), sink=None)))
    if subject.bias is not None:
        found.append(Hypothesis("bias-missing", "the bias was left out", lambda s: replace(as_stored(s), bias=None)))
    if subject.row_scales is not None:
        found.append(
            Hypothesis(
                "scale-by-position",
                "the multiplier is the same in all rows, and the file says that it grows",
                lambda s: replace(as_stored(s), inner=(s.scores,)),
            )
        )
    return found


def hypotheses(
    subject: Subject, evidence: Evidence, multiplier: float, expected: float
) -> Iterator[list[Hypothesis]]:
    """Yield the hypotheses that apply to this head and evidence in stages, simple ones first.

    `multiplier` is a guess from which free coefficients start, `expected` the one that is expected. If a stage has an
    explanation, later ones are not needed.
    """
    stages = (
        (declared(subject), _masks(subject), _mixed_up(subject), _normalised(), _bends(subject, multiplier)),
        (_biases(subject), uneven(subject), windows(subject, evidence, expected)),
        (_rotated(subject),),
        (_free_biases(subject), uneven_blocks(subject)),
    )
    for stage in stages:
        yield [each for group in stage for each in group if evidence.kind in each.kinds]


def _normalised() -> Iterator[Hypothesis]:
    for change in normalisations():
        yield Hypothesis(change.cause, change.words, partial(_rescored, change.scores), change.also)


def _rotated(subject: Subject) -> Iterator[Hypothesis]:
    for change in rotations(subject):
        yield Hypothesis(change.cause, change.words, partial(_rescored, change.scores), change.also)


def _rescored(scores: Callable[[Subject], FloatArray], subject: Subject) -> Model:
    return replace(as_stored(subject), inner=(in_rows(subject, scores(subject)),))


def _masks(subject: Subject) -> Iterator[Hypothesis]:
    for variant in variants(subject):

        def build(s: Subject, key: tuple[str, str] = (variant.cause, variant.words)) -> Model:
            return replace(
                as_stored(s), seen=next((v.seen for v in variants(s) if (v.cause, v.words) == key), s.seen)
            )

        yield Hypothesis(variant.cause, variant.words, build)
    if subject.seen is not None:

        def added(s: Subject) -> Model:
            assert s.seen is not None
            return replace(as_stored(s), seen=None, outer=(s.seen.astype(np.float64),))

        yield Hypothesis(
            "causal-lost",
            "the mask was added as a number instead of hiding keys",
            added,
            also=("bias-extra", "padding-attended"),
            others=((1.0,),),
        )


def _mixed_up(subject: Subject) -> Iterator[Hypothesis]:
    """Yield heads, sides and axes that were mixed up."""
    if subject.tiled is not None:
        k, v = subject.tiled
        words = message(
            "the query head used key head {head}, as with tiled keys",
            head=subject.facts.head % subject.facts.kv_heads,
        )

        def tiled(s: Subject) -> Model:
            return replace(as_stored(s), inner=(in_rows(s, s.q @ k.mT),), v=v)

        yield Hypothesis("gqa-tiled", words, tiled)
        if v is not None:
            yield Hypothesis(
                "gqa-tiled", message("{words}, with its own values", words=words), lambda s: replace(tiled(s), v=None)
            )
    if subject.whole and subject.q.shape == subject.k.shape:
        yield Hypothesis(
            "qk-swapped",
            "queries and keys changed places",
            lambda s: replace(as_stored(s), inner=(in_rows(s, s.scores.mT),)),
            whole=True,
        )
        yield Hypothesis(
            "softmax-axis", "softmax ran over queries", lambda s: replace(as_stored(s), axis=-2), whole=True
        )
    yield Hypothesis(
        "scale-base2",
        "the log-sum-exp is in base 2",
        lambda s: replace(as_stored(s), lse_factor=math.log2(math.e)),
        kinds=("lse",),
    )
    yield Hypothesis(
        "scale-base2",
        "the log-sum-exp was multiplied by ln 2",
        lambda s: replace(as_stored(s), lse_factor=math.log(2)),
        kinds=("lse",),
    )
    yield Hypothesis(
        "dropout-on",
        "weights are zero at random and the others enlarged: dropout was on",
        lambda s: replace(as_stored(s), gaps=True),
        kinds=("weights",),
    )


def _bends(subject: Subject, multiplier: float) -> Iterator[Hypothesis]:
    """Yield soft-caps and sinks that the file does not have."""
    facts = subject.facts
    seen = subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0)
    largest = max(float(np.abs(seen).max()) * abs(multiplier), 1e-3)
    yield Hypothesis(
        "softcap-extra" if facts.softcap is None else "softcap-other",
        "logits are bent as by a soft-cap",
        lambda s: replace(as_stored(s), free_softcap=True),
        others=tuple((math.log(largest * factor),) for factor in (1.0, 0.3, 3.0)),
    )
    yield Hypothesis(
        "sink-extra",
        "a logit of no key takes weight from every row",
        lambda s: replace(as_stored(s), free_sink=True),
        others=((0.0,), (4.0,)),
    )


def _biases(subject: Subject) -> Iterator[Hypothesis]:
    """Yield additive biases: the file's with another factor, and some that the file does not have."""
    if subject.bias is not None:

        def scaled(s: Subject) -> Model:
            assert s.bias is not None
            return replace(as_stored(s), bias=None, outer=(s.bias,))

        yield Hypothesis("bias-scaled", "the bias was multiplied", scaled, others=((1.0,), (0.1,)))
    yield Hypothesis(
        "bias-extra",
        "a bias falls linearly with distance, as ALiBi does",
        lambda s: replace(as_stored(s), outer=(-np.abs(_distance(s)),)),
        also=("bias-position",),
        others=((0.0,),),
    )


def _free_biases(subject: Subject) -> Iterator[Hypothesis]:
    """Yield biases with many coefficients: one for each distance, or for each key."""
    used = _used_buckets(subject)
    yield Hypothesis(
        "bias-extra",
        "a bias depends on distance, in buckets like T5's",
        partial(_bucketed, used),
        also=("bias-position",),
        others=((0.0,) * len(used),),
    )
    keys = subject.k.shape[1]
    if keys <= 96:
        yield Hypothesis(
            "bias-extra",
            "every key has its own bias",
            lambda s: replace(as_stored(s), outer=_of_keys(s, np.eye(keys)[1:])),
            others=((0.0,) * (keys - 1),),
            kinds=("weights", "o"),
        )


def _distance(subject: Subject) -> FloatArray:
    away = places(subject.k.shape[1]) - subject.positions[:, np.newaxis]
    return np.broadcast_to(away.astype(np.float64), subject.scores.shape)


def _of_keys(subject: Subject, values: FloatArray) -> tuple[FloatArray, ...]:
    """Return one feature for each row of values [features, keys]."""
    return tuple(np.broadcast_to(row, subject.scores.shape) for row in values)


def _buckets(subject: Subject) -> Indices:
    """Return T5's bucket of each pair [rows, keys], for its bidirectional attention."""
    away = places(subject.k.shape[1]) - subject.positions[:, np.newaxis]
    half = _BUCKETS // 2
    exact = half // 2
    size = np.abs(away)
    growth = np.log(np.maximum(size, 1) / exact) / math.log(_FARTHEST / exact)
    far = exact + (growth * (half - exact)).astype(np.intp)
    return half * (away > 0) + np.where(size < exact, size, np.minimum(far, half - 1))


def _used_buckets(subject: Subject) -> list[int]:
    """Return all buckets but the first; those only of hidden keys have no effect."""
    buckets = _buckets(subject)
    if subject.seen is not None:
        buckets = buckets[subject.seen.any(axis=0)]
    return [int(each) for each in np.unique(buckets)[1:]]


def _bucketed(used: Sequence[int], subject: Subject) -> Model:
    buckets = _buckets(subject)
    shape = subject.scores.shape
    return replace(
        as_stored(subject),
        outer=tuple(np.broadcast_to((buckets == each).astype(np.float64), shape) for each in used),
    )
