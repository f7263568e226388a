"""What may have been done to a head, as edits of what its file says: masks, mixed-up sides, bends and biases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.visibility import Visibility
from ...message import message
from ..fitting.evidence import observe, residual
from ..fitting.model import LogitModel
from ..subject import Evidence, Indices, Subject, places, some_rows, spread_rows
from .hypothesis import Hypothesis, as_stored, in_rows

_ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Variant:
    """A mask [texts, rows, keys] that attention may have used instead; None: every key is visible."""

    cause: str
    words: str
    seen: BoolArray | None


def variants(subject: Subject) -> Iterator[Variant]:
    """Yield the masks that differ from the file's, each once."""
    texts, rows, keys = subject.scores.shape
    everything = np.ones((texts, rows, keys), np.bool_)
    seen = everything if subject.seen is None else subject.seen
    present = np.ones((texts, keys), np.bool_) if subject.present is None else subject.present
    tokens = np.broadcast_to(present[:, np.newaxis], seen.shape)
    place, query, window = places(keys), subject.positions[:, np.newaxis], subject.facts.window
    future = place > query
    causal = not bool((seen & future).any()) and bool((tokens & future).any())
    edited: list[tuple[str, str, BoolArray]] = []
    if causal:
        edited.append(("causal-lost", "queries see later keys, as without a causal mask", seen | (tokens & future)))
        near = tokens & future & (place <= query + 1)
        edited.append(("future-key", "each query sees one key of the future", seen | near))
        others = seen & (place != query)
        edited.append(("own-key-hidden", "no query sees its own key", others))
        if subject.facts.sink is not None:  # else rows without keys say nothing
            first = seen & ~others.any(axis=-1, keepdims=True)
            edited.append(("own-key-hidden", "no query sees its own key but the first", others | first))
        if subject.shift:
            for shift, words in ((-subject.shift, "top-left"), (subject.shift, "bottom-right")):
                moved = tokens & (place <= query + shift) & _near(subject, window, shift=shift)
                edited.append(("causal-shifted", message("the causal mask is aligned {words}", words=words), moved))
    else:
        edited.append(("causal-extra", "no query sees later keys, as with a causal mask", seen & ~future))
        edited.append(("own-key-hidden", "no query sees its own key", seen & (place != query)))
    past = tokens & ~future if causal else tokens
    edited.append(("window-ignored", "queries see keys outside the window", past))
    padded = (everything & ~future if causal else everything) & _near(subject, window)
    edited.append(("padding-attended", "padding is attended to", seen | (padded & ~tokens)))
    edited.append(("causal-lost", "neither the causal mask nor padding is applied", everything))
    if window is not None:
        for other in (window - 1, window + 1):
            words = message("the window has {other} keys, not {window}", other=other, window=window)
            edited.append(("window-ignored", words, past & _near(subject, other, causal)))
    known = [seen]
    for cause, words, mask in edited:
        if mask[subject.used].any(axis=-1).all() or cause == "own-key-hidden":
            mask = mask & (subject.used[..., np.newaxis])
            if not any(np.array_equal(mask, other) for other in known):
                known.append(mask)
                yield Variant(cause, words, None if mask.all() else mask)


def _near(subject: Subject, window: int | None, causal: bool = True, shift: int = 0) -> BoolArray:
    """Return the keys in a window, [1, rows, keys]; if `causal`, later keys are in it, too."""
    before = None if window is None else window - 1
    at = subject.positions + shift
    return Visibility(subject.k.shape[1], at, before=before, after=None if causal else before).of(_ALL, _ALL)


_BUCKETS, _FARTHEST = 32, 128  # of T5's relative positions


@dataclass(frozen=True, eq=False)
class HypothesisCase:
    """A head and its evidence, for which hypotheses are made."""

    subject: Subject
    evidence: Evidence
    multiplier: float  # a guess from which free coefficients start
    expected: float


def masks(cause: str, case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield the masks of a cause that differ from the file's."""
    for variant in variants(case.subject):

        def edit(s: Subject, model: LogitModel, key: tuple[str, str] = (variant.cause, variant.words)) -> LogitModel:
            return replace(model, seen=next((v.seen for v in variants(s) if (v.cause, v.words) == key), s.seen))

        if variant.cause == cause:
            yield Hypothesis(variant.words, edit)


def mask_as_number(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.seen is not None:

        def edit(s: Subject, model: LogitModel) -> LogitModel:
            assert s.seen is not None
            return replace(model, seen=None, outer=(*model.outer, s.seen.astype(np.float64)))

        words = "the mask was added as a number instead of hiding keys"
        yield Hypothesis(words, edit, also=("bias-extra", "padding-attended"), outer=((1.0,),))


def tiled(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.tiled is not None:
        k, v = case.subject.tiled()
        facts = case.subject.facts
        words = message("the query head used key head {head}, as with tiled keys", head=facts.head % facts.kv_heads)

        def edit(s: Subject, model: LogitModel) -> LogitModel:
            return replace(model, inner=(in_rows(s, s.q @ k.mT),), v=v)

        yield Hypothesis(words, edit)
        if v is not None:
            own = message("{words}, with its own values", words=words)
            yield Hypothesis(own, lambda s, model: replace(edit(s, model), v=None))


def swapped(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.whole and case.subject.q.shape == case.subject.k.shape:
        whole = case.subject

        def edit(s: Subject, model: LogitModel) -> LogitModel:
            rows = np.searchsorted(whole.positions, s.positions)
            return replace(model, inner=(in_rows(s, whole.k[:, rows] @ whole.q.mT),))

        yield Hypothesis("queries and keys changed places", edit)


def along_queries(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.whole and case.subject.q.shape == case.subject.k.shape:
        yield Hypothesis("softmax ran over queries", lambda _, model: replace(model, axis=-2), whole=True)


def log_base(_: HypothesisCase) -> Iterator[Hypothesis]:
    for words, factor in (
        ("the log-sum-exp is in base 2", math.log2(math.e)),
        ("the log-sum-exp was multiplied by ln 2", math.log(2)),
    ):
        yield Hypothesis(words, lambda _, model, factor=factor: replace(model, lse_factor=factor))


def dropped(_: HypothesisCase) -> Iterator[Hypothesis]:
    words = "weights are zero at random and the others enlarged: dropout was on"
    yield Hypothesis(words, lambda _, model: replace(model, dropout=True))


def no_softcap(case: HypothesisCase) -> Iterator[Hypothesis]:
    cap = case.subject.facts.softcap
    if cap is not None:
        words = message("the soft-cap {cap:g} was not applied", cap=cap)
        yield Hypothesis(words, lambda _, model: replace(model, softcap=None))


def softcap(said: bool, case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield a soft-cap, if the file has another one, as `said`, or none."""
    subject = case.subject
    if (subject.facts.softcap is not None) == said:
        seen = subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0)
        largest = max(float(np.abs(seen).max()) * abs(case.multiplier), 1e-3)
        yield Hypothesis(
            "logits are bent as by a soft-cap",
            lambda _, model: replace(model, free_softcap=True),
            softcaps=tuple(math.log(largest * factor) for factor in (1.0, 0.3, 3.0)),
            told=lambda theta: message("logits are bent as by a soft-cap of {cap:.4g}", cap=math.exp(theta[1])),
        )


def no_sink(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.facts.sink is not None:
        yield Hypothesis("the sink was left out", lambda _, model: replace(model, sink=None))


def sink(_: HypothesisCase) -> Iterator[Hypothesis]:
    words = "a logit of no key takes weight from every row"
    yield Hypothesis(
        words,
        lambda _, model: replace(model, free_sink=True),
        sinks=(0.0, 4.0),
        told=lambda theta: message("a logit {sink:.4g} of no key takes weight from every row", sink=theta[1]),
    )


def no_bias(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.bias is not None:
        yield Hypothesis("the bias was left out", lambda _, model: replace(model, bias=None))


def scaled_bias(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.bias is not None:

        def edit(s: Subject, model: LogitModel) -> LogitModel:
            assert s.bias is not None
            return replace(model, bias=None, outer=(*model.outer, s.bias))

        yield Hypothesis(
            "the bias was multiplied",
            edit,
            outer=((1.0,),),
            told=lambda theta: message("the bias was multiplied by {factor:.4g}", factor=theta[1]),
        )


def bias_of_distance(_: HypothesisCase) -> Iterator[Hypothesis]:
    def edit(s: Subject, model: LogitModel) -> LogitModel:
        return replace(model, outer=(*model.outer, -np.abs(_distance(s))))

    yield Hypothesis(
        "a bias falls linearly with distance, as ALiBi does",
        edit,
        also=("bias-position",),
        outer=((0.0,), (0.1,)),
        told=lambda theta: message("a bias falls by {slope:.4g} a token, as ALiBi does", slope=theta[1]),
    )


def free_biases(case: HypothesisCase) -> Iterator[Hypothesis]:
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

        def edit(s: Subject, model: LogitModel) -> LogitModel:
            biases = tuple(np.broadcast_to(row, s.scores.shape) for row in np.eye(keys)[1:])
            return replace(model, outer=(*model.outer, *biases))

        yield Hypothesis("every key has its own bias", edit, outer=((0.0,) * (keys - 1),), kinds=("weights", "o"))


def same_in_rows(case: HypothesisCase) -> Iterator[Hypothesis]:
    if case.subject.row_scales is not None:
        words = (
            case.subject.facts.same_rows or "the multiplier is the same in all rows, and the file says that it grows"
        )
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
    return [int(bucket) for bucket in np.unique(buckets)[1:]]


def _bucketed(used: Sequence[int], subject: Subject, model: LogitModel) -> LogitModel:
    buckets = _buckets(subject)
    shape = subject.scores.shape
    biases = tuple(np.broadcast_to((buckets == bucket).astype(np.float64), shape) for bucket in used)
    return replace(model, outer=(*model.outer, *biases))


_ROWS = 16  # by which a window is searched
_EVERY = 512  # keys up to which every length is tried; of longer texts, those near powers of two


def windows(said: bool, case: HypothesisCase) -> Iterator[Hypothesis]:
    """Yield the window that fits the evidence best, if attention is causal; `said` is whether the file has one."""
    subject = case.subject
    if (subject.facts.window is not None) != said:
        return
    quick = some_rows(subject, spread_rows(subject.q.shape[1], _ROWS))
    observed = observe(
        quick, next(evidence for evidence in quick.evidence if evidence.kind == case.evidence.kind), case.expected
    )
    visible = int(subject.positions.max()) + 1  # keys that the last query may see
    future = places(subject.k.shape[1]) > subject.positions[:, np.newaxis]
    if subject.seen is None or bool((subject.seen & future).any()) or visible < 3:
        return
    lengths = list(range(1, visible)) if visible <= _EVERY else _usual(visible)
    guesses = [np.array([guess]) for guess in dict.fromkeys((case.expected, 1.0, case.expected**2))]
    stored = as_stored(quick)

    def left(length: int) -> float:
        model = _within(length, quick, stored)
        return min(residual(observed, model, theta).distance for theta in guesses)

    length = min(lengths, key=left)
    if length == subject.facts.window:
        return
    if said:
        words = message("the window has {length} keys, not {said}", length=length, said=subject.facts.window)
    else:
        words = message("queries see a window of {length} keys, which the file does not have", length=length)
    yield Hypothesis(words, partial(_within, length))


def _usual(most: int) -> list[int]:
    powers = [1 << power for power in range(most.bit_length())]
    near = {power + more for power in powers for more in (-1, 0, 1)}
    return sorted(count for count in near if 1 <= count < most)


def _within(length: int, subject: Subject, model: LogitModel) -> LogitModel:
    """Return the model with a causal window of this many keys instead of the file's mask of positions."""
    near = Visibility(subject.k.shape[1], subject.positions, before=length - 1, after=0).of(_ALL, _ALL)
    seen = np.broadcast_to(near, subject.scores.shape)
    if subject.present is not None:
        seen = seen & subject.present[:, np.newaxis]
    return replace(model, seen=seen & subject.used[..., np.newaxis])
