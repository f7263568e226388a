"""Compare two captures stage by stage: which stage of attention is the first that differs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import divergence, moved, weight_statistics
from ...captures.capture import Layer
from ...captures.files import NotFiniteError
from ...captures.head import CaptureFile
from ...message import joined, message
from ...statistics.catalogue import ONE_HOT
from ..causes.coarse import rounded_weights, rounding
from ..fitting.evidence import is_short, unit
from ..heads.rows import overflow, variance
from ..multipliers import near
from ..reading import read_for_comparison
from ..results import ORDER, Product, StageName, amount
from ..subject import Subject, some_rows, spread_rows
from ..verdict import Examination
from .evidence_stage import evidence_stage, rounding_words
from .pairing import Common, aligned, common_tokens, plan
from .processing import Processing, compare_processing, percent
from .results import Comparison, HeadComparison, HeadPair, PairFigures, Stage, compared
from .returned import Explanation, explained, score_format
from .score_change import ScoreChange, limit, product_change, score_change

# Nats of KL(exact ‖ rounded) below which nothing changes: those of two equal keys whose scores are rounded twice to
# steps of 0.1, 0.1²/12 for each rounding, times p(1 − p)/2.
_NOTHING = 2e-4


@dataclass(frozen=True)
class CoarseScores:
    """The scores of one head are rounded coarsely, and those of the other less."""

    format: str
    place: int  # 0 for the reference, 1 for the other head
    says: str


def coarse_scores(one: Explanation, other: Explanation) -> CoarseScores | None:
    """Return which head's scores are rounded more coarsely than the other's, if that changes attention."""
    before, after = (score_format(subject) for subject in (one, other))
    if before is None or after is None or unit(before) == unit(after):
        return None
    place = int(unit(after) > unit(before))
    head, format, finer = (other, after, before) if place else (one, before, after)
    if not is_short(format) or head.model.axis != -1:
        return None
    found = rounding(head.model, head.theta, head.subject.used, format)
    if found is None or not found.divergence > _NOTHING:
        return None
    words = (
        "scores are rounded to {format}, in steps of up to {step:.3g} of logit: KL(exact ‖ rounded) {kl:.2g} nats; "
        "they are in {finer} in the reference"
        if place
        else "scores are in {finer}; in the reference they are rounded to {format}, in steps of up to {step:.3g} of "
        "logit: KL(exact ‖ rounded) {kl:.2g} nats"
    )
    return CoarseScores(
        format, place, message(words, format=format, step=found.step, kl=found.divergence, finer=finer)
    )


_MEASURED = 0.2  # relative: how near a factor of scores that differ otherwise, too, is to the one that files say
_ROWS = 64  # of a head that statistics are taken over


def sampled(subject: Subject) -> Subject:
    """Return some rows of a head, evenly spread."""
    return some_rows(subject, spread_rows(subject.q.shape[1], _ROWS))


def weights_of(
    subject: Subject, found: Examination, multiplier: float, rounded_to: str | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights [texts, rows, keys] and the logits: stored weights, else those of the best explanation.

    `rounded_to` is the number format of scores that are coarse.
    """
    head = explained(replace(subject, whole=False), found, multiplier)
    if head.model.axis != -1:
        head = explained(subject, replace(found, trial=None), multiplier)
    p, z = head.logits.softmax.weights, head.logits.z
    stored = next((each.values for each in subject.evidence if each.kind == "weights"), None)
    if stored is not None and np.isfinite(stored).all():
        p = stored
    elif rounded_to is not None:
        p = rounded_weights(head.model, head.theta, rounded_to)
    return p, z


def figures(subject: Subject, p: FloatArray, z: FloatArray, multiplier: Product) -> PairFigures | None:
    """Return the statistics of the rows that see at least one key; None if there are none."""
    seen = np.ones(p.shape, np.bool_) if subject.seen is None else np.broadcast_to(subject.seen, p.shape)
    counts = np.count_nonzero(seen, axis=-1)
    used, wide = counts > 0, counts > 1
    if not used.any():
        return None
    found, several = (weight_statistics(p[rows], counts[rows], ~seen[rows]) for rows in (used, wide))
    return PairFigures(
        multiplier,
        float(np.mean(np.sqrt(variance(z, seen))[used])),
        float(np.mean(found.entropy)),
        np.divide(several.entropy, np.log(counts[wide])).mean().item() if wide.any() else None,
        float(np.mean(found.max_weight)),
        np.count_nonzero(several.max_weight > ONE_HOT) / several.max_weight.size if wide.any() else None,
        float(np.mean(found.first_key_weight)),
    )


def change(one: Subject, other: Subject, p: FloatArray, r: FloatArray) -> tuple[float, float] | None:
    """Return KL(p ‖ r) in nats and the share of rows whose largest weight moved, over rows that both use."""
    rows = one.used & other.used & np.greater(p.sum(axis=-1), 0) & np.greater(r.sum(axis=-1), 0)
    if not rows.any():
        return None
    a, b = p[rows], r[rows]
    return max(float(np.mean(divergence(a, b))), 0.0), float(np.mean(moved(a, b)))


_MADE: tuple[StageName, ...] = ("multiplier", "softcap", "bias", "mask", "sink")  # what is done to scores
_BEFORE_VALUES: tuple[Literal["lse", "weights"], ...] = ("lse", "weights")


def compare(reference: CaptureFile, test: CaptureFile) -> Comparison:
    """Compare all heads; raise InputError if a file cannot be read."""
    whole = plan(reference, test)
    heads = tuple(compare_heads(reference, test, pair) for pair in whole.pairs)
    return compared(heads, whole.missing, whole.notes)


def compare_heads(reference: CaptureFile, test: CaptureFile, pair: HeadPair) -> HeadComparison:
    """Compare one head of each capture; raise CaptureError if one cannot be read.

    Numbers that are not finite are a difference, also if both heads have them: nothing says that they are the same.
    """
    subjects: list[Subject | None] = []
    faults: list[str] = []
    for capture, layer, head in ((reference, pair.layer, pair.head), (test, pair.test_layer, pair.test_head)):
        try:
            subjects.append(read_for_comparison(capture, layer, head))
        except NotFiniteError as error:
            subjects.append(None)
            faults.append(str(error))
    one, other = subjects
    if one is None or other is None:
        both = "nothing can be compared, not finite in both: " if one is None and other is None else ""
        first = Stage("qk", "differs", f"{both}{faults[0]}", math.inf)
        rest = [Stage(name, "not-compared", "numbers are not finite") for name in ORDER[1:]]
        return _result(pair, (first, *rest))
    common = common_tokens(reference, test, pair.layer, pair.test_layer)
    try:
        with np.errstate(over="raise"):
            return compare_subjects(one, other, pair, common)
    except FloatingPointError as error:
        raise overflow(reference, pair.layer, pair.head) from error


def compare_subjects(one: Subject, other: Subject, pair: HeadPair, common: Common) -> HeadComparison:
    """Compare two heads that have been read."""
    layers = (pair.layer, pair.test_layer)
    both = aligned(one, other, layers, common)
    if both is None:
        return _of_other_text(one, other, pair, common)
    one, other = both
    most = limit(first=pair.layer.position == 0)
    scores = score_change(one, other, most)
    factor = scores.factor if scores.change <= most else _said_factor(one, other, layers, scores.factor)
    process = compare_processing(one, other, layers, factor, comparable=True)
    first, second = process.subjects
    heads = (
        explained(first, process.reference, process.multipliers[0]),
        explained(second, process.test, process.multipliers[1]),
    )
    coarse = coarse_scores(*heads)
    stages: dict[StageName, Stage] = {"qk": _scores_stage(scores, most, process, heads, coarse)}
    for name in _MADE:
        stages[name] = _processing_stage(name, process, one, other)
    for kind in _BEFORE_VALUES:
        stages[kind] = evidence_stage(kind, one, other, scores, process, heads, stages)
    stages["v"] = _values_stage(one, other, most)
    stages["o"] = evidence_stage("o", one, other, scores, process, heads, stages)
    some, others = sampled(one), sampled(other)
    to = [coarse.format if coarse is not None and coarse.place == place else None for place in (0, 1)]
    p, z = weights_of(some, process.reference, process.multipliers[0], to[0])
    r, y = weights_of(others, process.test, process.multipliers[1], to[1])
    before, after = process.multipliers
    known = scores.change <= most or factor != 1  # of what the scores are a multiple
    return _result(
        pair,
        tuple(stages[name] for name in ORDER),
        figures(some, p, z, one.facts.product(before)),
        figures(others, r, y, one.facts.product(factor * after) if known else other.facts.product(after)),
        change(some, others, p, r),
    )


def _said_factor(one: Subject, other: Subject, layers: tuple[Layer, Layer], measured: float = math.nan) -> float:
    """Return the factor that both files say of scores that differ otherwise, too; 1 if it is not certain."""
    said = other.facts.prescaled / one.facts.prescaled
    recorded = all(layer.observed and not layer.unknown_factor for layer in layers)
    return said if recorded or near(measured, said, _MEASURED) else 1.0


def _result(
    pair: HeadPair,
    stages: tuple[Stage, ...],
    reference: PairFigures | None = None,
    test: PairFigures | None = None,
    moved: tuple[float, float] | None = None,
) -> HeadComparison:
    kl, rows = moved or (None, None)
    return HeadComparison(pair.layer, pair.head, pair.test_layer, pair.test_head, stages, reference, test, kl, rows)


def _scores_stage(
    scores: ScoreChange,
    most: float,
    process: Processing,
    heads: tuple[Explanation, Explanation],
    coarse: CoarseScores | None,
) -> Stage:
    known = process.differences.get("qk")
    factor = "" if scores.factor == 1 else f", × {scores.factor:.4g}"
    if scores.change > most:
        says = message(
            "differ by {relative} of their spread within rows, correlation {correlation}",
            relative=percent(scores.relative),
            correlation=f"{scores.correlation:.3f}".replace("-", "−"),
        )
        if scores.correlation < 0.5:
            says = message("{says}: other queries and keys, or another text", says=says)
        return Stage("qk", "differs", says, scores.change, arrives=True)
    if known is not None:
        return replace(known, change=scores.change)
    if coarse is not None:
        return Stage("qk", "differs", coarse.says, scores.change)
    if scores.by_rows:
        facts = [head.subject.facts for head in heads]
        nonlinear = any(fact.softcap is not None or fact.sink is not None for fact in facts)
        says = message("differ by a constant in each row{factor}", factor=factor)
        if nonlinear:
            says = message("{says}, which a soft-cap or sink does not ignore", says=says)
            return Stage("qk", "differs", says, scores.change)
        return Stage("qk", "same", message("{says}, which softmax ignores", says=says), scores.change)
    exact = "the same numbers"
    if scores.change:
        exact = message("the same to within {change:.2g} × rounding", change=scores.change)
    note = process.notes.get("qk")
    says = message("{exact}{factor}", exact=exact, factor=factor)
    return Stage("qk", "same", joined((says, note), "; ") if note else says, scores.change)


def _processing_stage(name: StageName, process: Processing, one: Subject, other: Subject) -> Stage:
    known = process.differences.get(name)
    if known is not None:
        return known
    if note := process.notes.get(name):
        return Stage(name, "same", note)
    a, b = process.multipliers
    facts = one.facts
    fitted = any(judged.verdict.evidence is not None for judged in (process.reference, process.test))
    says = {
        "multiplier": message("{used} in both", used=amount(facts.product(a)))
        if f"{a:.4g}" == f"{b:.4g}"
        else message("{b}, {a} in the reference", b=amount(other.facts.product(b)), a=amount(facts.product(a))),
        "softcap": "none" if facts.softcap is None else f"{facts.softcap:g}",
        "sink": "none" if facts.sink is None else f"{facts.sink:.4g}",
        "bias": "none" if one.bias is None else "the same numbers",
        "mask": "all keys are visible" if one.seen is None and other.seen is None else "the same pairs",
    }[name]
    return Stage(name, "same", says if fitted else message("{says}, as the files say", says=says))


def _values_stage(one: Subject, other: Subject, most: float) -> Stage:
    found = [next((each for each in subject.evidence if each.v is not None), None) for subject in (one, other)]
    a, b = found
    if a is None or b is None or a.v is None or b.v is None:
        where = "neither file" if a is b else "only the reference" if b is None else "only the other capture"
        return Stage("v", "not-compared", message("{where} has v and o", where=where))
    worst = max((a, b), key=lambda each: unit(each.v_format))
    change = product_change((a.v, a.v), (b.v, b.v), worst.v_format)
    if change <= most:
        return Stage("v", "same", rounding_words(change), change)
    says = message("v·vᵀ differ by {change:.3g} × rounding", change=change)
    return Stage("v", "differs", says, change, arrives=True)


def _of_other_text(one: Subject, other: Subject, pair: HeadPair, common: Common) -> HeadComparison:
    """Compare what does not depend on the text."""
    layers = (pair.layer, pair.test_layer)
    process = compare_processing(one, other, layers, _said_factor(one, other, layers), comparable=False)
    why = common.note.split(":", 1)[0] if common.note else "no row is in both captures"
    stages: list[Stage] = []
    for name in ORDER:
        if name in process.differences or name in ("multiplier", "softcap", "sink", "mask"):
            made = name in _MADE
            stages.append(_processing_stage(name, process, one, other) if made else process.differences[name])
        else:
            stages.append(Stage(name, "not-compared", why))
    some, others = sampled(one), sampled(other)
    p, z = weights_of(some, process.reference, process.multipliers[0])
    r, y = weights_of(others, process.test, process.multipliers[1])
    before, after = process.multipliers
    used = (one.facts.product(before), other.facts.product(after))
    return _result(pair, tuple(stages), figures(some, p, z, used[0]), figures(others, r, y, used[1]))
