"""What may have been done to a head, as edits of what its file says: masks, mixed-up sides, bends and biases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...arrays import FloatArray
from ...message import message
from ..fitting.model import Model
from ..subject import Evidence, Indices, Subject, places
from .hypothesis import Hypothesis, in_rows
from .visibility import variants

_BUCKETS, _FARTHEST = 32, 128  # of T5's relative positions


@dataclass(frozen=True, eq=False)
class Case:
    """A head and its evidence, for which hypotheses are made."""

    subject: Subject
    evidence: Evidence
    multiplier: float  # a guess from which free coefficients start
    expected: float


def masks(cause: str, case: Case) -> Iterator[Hypothesis]:
    """Yield the masks of a cause that differ from the file's."""
    for variant in variants(case.subject):

        def edit(s: Subject, model: Model, key: tuple[str, str] = (variant.cause, variant.words)) -> Model:
            return replace(model, seen=next((v.seen for v in variants(s) if (v.cause, v.words) == key), s.seen))

        if variant.cause == cause:
            yield Hypothesis(variant.words, edit)


def mask_as_number(case: Case) -> Iterator[Hypothesis]:
    if case.subject.seen is not None:

        def edit(s: Subject, model: Model) -> Model:
            assert s.seen is not None
            return replace(model, seen=None, outer=(*model.outer, s.seen.astype(np.float64)))

        words = "the mask was added as a number instead of hiding keys"
        yield Hypothesis(words, edit, also=("bias-extra", "padding-attended"), outer=((1.0,),))


def tiled(case: Case) -> Iterator[Hypothesis]:
    if case.subject.tiled is not None:
        k, v = case.subject.tiled
        facts = case.subject.facts
        words = message("the query head used key head {head}, as with tiled keys", head=facts.head % facts.kv_heads)

        def edit(s: Subject, model: Model) -> Model:
            return replace(model, inner=(in_rows(s, s.q @ k.mT),), v=v)

        yield Hypothesis(words, edit)
        if v is not None:
            own = message("{words}, with its own values", words=words)
            yield Hypothesis(own, lambda s, model: replace(edit(s, model), v=None))


def swapped(case: Case) -> Iterator[Hypothesis]:
    if case.subject.whole and case.subject.q.shape == case.subject.k.shape:
        whole = case.subject

        def edit(s: Subject, model: Model) -> Model:
            rows = np.searchsorted(whole.positions, s.positions)
            return replace(model, inner=(in_rows(s, whole.k[:, rows] @ whole.q.mT),))

        yield Hypothesis("queries and keys changed places", edit)


def along_queries(case: Case) -> Iterator[Hypothesis]:
    if case.subject.whole and case.subject.q.shape == case.subject.k.shape:
        yield Hypothesis("softmax ran over queries", lambda _, model: replace(model, axis=-2), whole=True)


def log_base(_: Case) -> Iterator[Hypothesis]:
    for words, factor in (
        ("the log-sum-exp is in base 2", math.log2(math.e)),
        ("the log-sum-exp was multiplied by ln 2", math.log(2)),
    ):
        yield Hypothesis(words, partial(_with_lse_factor, factor))


def _with_lse_factor(factor: float, _: Subject, model: Model) -> Model:
    return replace(model, lse_factor=factor)


def dropped(_: Case) -> Iterator[Hypothesis]:
    words = "weights are zero at random and the others enlarged: dropout was on"
    yield Hypothesis(words, lambda _, model: replace(model, gaps=True))


def no_softcap(case: Case) -> Iterator[Hypothesis]:
    cap = case.subject.facts.softcap
    if cap is not None:
        words = message("the soft-cap {cap:g} was not applied", cap=cap)
        yield Hypothesis(words, lambda _, model: replace(model, softcap=None))


def softcap(said: bool, case: Case) -> Iterator[Hypothesis]:
    """Yield a soft-cap, if the file has another one, as `said`, or none."""
    subject = case.subject
    if (subject.facts.softcap is not None) == said:
        seen = subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0)
        largest = max(float(np.abs(seen).max()) * abs(case.multiplier), 1e-3)
        yield Hypothesis(
            "logits are bent as by a soft-cap",
            lambda _, model: replace(model, free_softcap=True),
            softcaps=tuple(math.log(largest * factor) for factor in (1.0, 0.3, 3.0)),
        )


def no_sink(case: Case) -> Iterator[Hypothesis]:
    if case.subject.facts.sink is not None:
        yield Hypothesis("the sink was left out", lambda _, model: replace(model, sink=None))


def sink(_: Case) -> Iterator[Hypothesis]:
    words = "a logit of no key takes weight from every row"
    yield Hypothesis(words, lambda _, model: replace(model, free_sink=True), sinks=(0.0, 4.0))


def no_bias(case: Case) -> Iterator[Hypothesis]:
    if case.subject.bias is not None:
        yield Hypothesis("the bias was left out", lambda _, model: replace(model, bias=None))


def scaled_bias(case: Case) -> Iterator[Hypothesis]:
    if case.subject.bias is not None:

        def edit(s: Subject, model: Model) -> Model:
            assert s.bias is not None
            return replace(model, bias=None, outer=(*model.outer, s.bias))

        yield Hypothesis("the bias was multiplied", edit, outer=((1.0,),))


def bias_of_distance(_: Case) -> Iterator[Hypothesis]:
    def edit(s: Subject, model: Model) -> Model:
        return replace(model, outer=(*model.outer, -np.abs(_distance(s))))

    yield Hypothesis(
        "a bias falls linearly with distance, as ALiBi does",
        edit,
        also=("bias-position",),
        outer=((0.0,), (0.1,)),
    )


def free_biases(case: Case) -> Iterator[Hypothesis]:
    """Yield biases with many coefficients: one for each distance, or for each key."""
    used = _used_buckets(case.subject)
    yield Hypothesis(
        "a bias depends on distance, in buckets like T5's",
        partial(_bucketed, used),
        also=("bias-position",),
        outer=((0.0,) * len(used),),
    )
    keys = case.subject.k.shape[1]
    if keys <= 96:

        def edit(s: Subject, model: Model) -> Model:
            own = tuple(np.broadcast_to(row, s.scores.shape) for row in np.eye(keys)[1:])
            return replace(model, outer=(*model.outer, *own))

        yield Hypothesis("every key has its own bias", edit, outer=((0.0,) * (keys - 1),), kinds=("weights", "o"))


def same_in_rows(case: Case) -> Iterator[Hypothesis]:
    if case.subject.row_scales is not None:
        words = "the multiplier is the same in all rows, and the file says that it grows"
        yield Hypothesis(words, lambda s, model: replace(model, inner=(s.scores,)))


def _distance(subject: Subject) -> FloatArray:
    away = places(subject.k.shape[1]) - subject.positions[:, np.newaxis]
    return np.broadcast_to(away.astype(np.float64), subject.scores.shape)


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


def _bucketed(used: Sequence[int], subject: Subject, model: Model) -> Model:
    buckets = _buckets(subject)
    shape = subject.scores.shape
    own = tuple(np.broadcast_to((buckets == each).astype(np.float64), shape) for each in used)
    return replace(model, outer=(*model.outer, *own))
