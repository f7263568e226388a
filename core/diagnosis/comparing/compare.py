"""Compare two captures stage by stage: which stage of attention is the first that differs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from ...arrays import BoolArray, FloatArray
from ...attention.softmax import divergence, moved, weight_statistics
from ...captures.files import NotFiniteError
from ...captures.head import CaptureFile
from ...message import joined, message
from ...statistics.catalogue import ONE_HOT
from ..causes.hypothesis import as_stored
from ..fitting.evidence import is_short, spacing, unit
from ..fitting.model import logits, softmax
from ..heads.rows import variance
from ..reading import read_for_comparison
from ..results import ORDER, STAGES, StageName
from ..subject import Evidence, Subject, some_rows, spread_rows
from ..verdict import Examined
from .pairing import Common, aligned, common_tokens, plan
from .processing import Processing, compare_processing, percent
from .results import Comparison, Figures, HeadComparison, Pair, Stage
from .score_change import ScoreChange, limit, product_change, score_change

_ROWS = 64  # of a head that statistics are taken over


def sampled(subject: Subject) -> Subject:
    """Return some rows of a head, evenly spread."""
    return some_rows(subject, spread_rows(subject.q.shape[1], _ROWS))


def weights_of(subject: Subject, found: Examined, multiplier: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights [texts, rows, keys] and the logits: stored weights, else those of the best explanation."""
    trial = found.trial
    model, theta = as_stored(subject), np.array([multiplier])
    if trial is not None and math.isfinite(trial.best.multiplier) and trial.best.model.axis == -1:
        best = trial.best
        if best.hypothesis is None:
            theta = best.fit.theta if found.verdict.verdict != "undecided" else theta
        elif not best.hypothesis.whole:
            model, theta = best.hypothesis.build(subject), best.fit.theta
    z = logits(model, theta, slopes=False)
    p = softmax(model, z).weights
    stored = next((each.values for each in subject.evidence if each.kind == "weights"), None)
    if stored is not None and np.isfinite(stored).all():
        p = stored
    return p, z.z


def figures(subject: Subject, p: FloatArray, z: FloatArray, multiplier: float) -> Figures | None:
    """Return the statistics of the rows that see at least one key; None if there are none."""
    seen = np.ones(p.shape, np.bool_) if subject.seen is None else np.broadcast_to(subject.seen, p.shape)
    counts = np.count_nonzero(seen, axis=-1)
    used, wide = counts > 0, counts > 1
    if not used.any():
        return None
    found, several = (weight_statistics(p[rows], counts[rows], ~seen[rows]) for rows in (used, wide))
    return Figures(
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


_APPROXIMATE = 4e-5  # of a log-sum-exp: kernels on 16-bit inputs may use an approximate exponential
_SINGLE = 2.0**-24
_MADE: tuple[StageName, ...] = ("multiplier", "softcap", "bias", "mask", "sink")  # what is done to scores
_BEFORE_VALUES: tuple[Literal["lse", "weights"], ...] = ("lse", "weights")


def compare(reference: CaptureFile, test: CaptureFile) -> Comparison:
    """Compare all heads; raise InputError if a file cannot be read."""
    whole = plan(reference, test)
    heads = tuple(compare_heads(reference, test, pair) for pair in whole.pairs)
    return Comparison(heads, whole.missing, whole.notes)


def compare_heads(reference: CaptureFile, test: CaptureFile, pair: Pair) -> HeadComparison:
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
    return compare_subjects(one, other, pair, common)


def compare_subjects(one: Subject, other: Subject, pair: Pair, common: Common) -> HeadComparison:
    """Compare two heads that have been read."""
    layers = (pair.layer, pair.test_layer)
    both = aligned(one, other, layers, common)
    if both is None:
        return _of_other_text(one, other, pair, common)
    one, other = both
    most = limit(first=pair.layer.position == 0)
    scores = score_change(one, other, most)
    factor = scores.factor if scores.change <= most else 1.0  # of scores that differ otherwise, none is known
    process = compare_processing(one, other, layers, factor, comparable=True)
    found: dict[StageName, Stage] = {"qk": _scores_stage(scores, most, process, one, other)}
    for name in _MADE:
        found[name] = _processing_stage(name, process, one, other)
    for kind in _BEFORE_VALUES:
        found[kind] = _evidence_stage(kind, one, other, scores, process, most, found)
    found["v"] = _values_stage(one, other, most)
    found["o"] = _evidence_stage("o", one, other, scores, process, most, found)
    some, others = sampled(one), sampled(other)
    p, z = weights_of(some, process.reference, process.multipliers[0])
    r, y = weights_of(others, process.test, process.multipliers[1])
    return _result(
        pair,
        tuple(found[name] for name in ORDER),
        figures(some, p, z, process.multipliers[0]),
        figures(others, r, y, process.multipliers[1]),
        change(some, others, p, r),
    )


def _result(
    pair: Pair,
    stages: tuple[Stage, ...],
    reference: Figures | None = None,
    test: Figures | None = None,
    moved: tuple[float, float] | None = None,
) -> HeadComparison:
    kl, rows = moved or (None, None)
    return HeadComparison(pair.layer, pair.head, pair.test_layer, pair.test_head, stages, reference, test, kl, rows)


def _scores_stage(scores: ScoreChange, most: float, process: Processing, one: Subject, other: Subject) -> Stage:
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
        return Stage("qk", "differs", says, scores.change)
    if known is not None:
        return replace(known, change=scores.change)
    if scores.by_rows:
        nonlinear = any(each.facts.softcap is not None or each.facts.sink is not None for each in (one, other))
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
    fitted = any(each.verdict.evidence is not None for each in (process.reference, process.test))
    says = {
        "multiplier": message("× {b:.6g} in both", b=b)
        if f"{a:.6g}" == f"{b:.6g}"
        else message("× {b:.6g}, × {a:.6g} in the reference", b=b, a=a),
        "softcap": "none" if facts.softcap is None else f"{facts.softcap:g}",
        "sink": "none" if facts.sink is None else f"{facts.sink:.4g}",
        "bias": "none" if one.bias is None else "the same numbers",
        "mask": "all keys are visible" if one.seen is None and other.seen is None else "the same pairs",
    }[name]
    return Stage(name, "same", says if fitted else message("{says}, as the files say", says=says))


def _evidence_stage(
    kind: Literal["lse", "weights", "o"],
    one: Subject,
    other: Subject,
    scores: ScoreChange,
    process: Processing,
    most: float,
    before: Mapping[StageName, Stage],
) -> Stage:
    """Compare what attention returned; `before` are the stages so far."""
    a, b = (next((each for each in subject.evidence if each.kind == kind), None) for subject in (one, other))
    if a is None or b is None:
        where = "neither file" if a is b else "only the reference" if b is None else "only the other capture"
        known = process.differences.get(kind)
        if known is not None:
            return known
        says = (
            message("{where} has them", where=where) if kind == "weights" else message("{where} has it", where=where)
        )
        return Stage(kind, "not-compared", says)
    # Scores that differ are no noise: what follows from them must not pass for the same.
    noise = 0.0 if before["qk"].state == "differs" else abs(process.multipliers[0]) * scores.noise
    change = _evidence_change(a, b, one, other, noise)
    known = process.differences.get(kind)
    if known is not None:
        return replace(known, change=change)
    if change <= 1.5:
        return Stage(kind, "same", _rounding(change), change)
    cause: StageName | None = next((each.name for each in before.values() if each.state == "differs"), None)
    if cause is not None:
        words = "{change:.2g} × rounding, as {stages} differ before"
        return Stage(kind, "follows", message(words, change=change, stages=STAGES[cause]), change)
    if all(each.verdict.verdict in ("healthy", "cause") for each in (process.reference, process.test)):
        says = message("{change:.2g} × rounding, as the noise of q·kᵀ explains", change=change)
        return Stage(kind, "same", says, change)
    if change <= most:
        return Stage(kind, "same", _rounding(change), change)
    says = message("{change:.2g} × rounding, and no stage before explains it", change=change)
    return Stage(kind, "differs", says, change)


def _rounding(change: float) -> str:
    return "the same numbers" if change == 0 else message("{change:.2g} × rounding", change=change)


def _evidence_change(a: Evidence, b: Evidence, one: Subject, other: Subject, noise: float) -> float:
    """Return the root mean square of a difference over that of rounding, given the noise of the logits."""
    rows = one.used & other.used
    values = a.values, b.values
    if values[0].shape != values[1].shape and a.kind != "o":
        return math.inf
    bad = [~np.isfinite(each[rows]) for each in values]
    if any(each.any() for each in bad):
        same = values[0].shape == values[1].shape and np.array_equal(values[0], values[1], equal_nan=True)
        return 0.0 if same else math.inf
    steps = [max(unit(each.format), _SINGLE) for each in (a, b)]
    if a.kind == "o":
        return _output_change(a, b, rows, noise)
    x, y = values[0][rows], values[1][rows]
    left = float(np.sqrt(np.mean(np.square(y - x))))
    if left == 0:
        return 0.0
    if a.kind == "lse":
        short = any(is_short(each.format) for each in (one, other))
        rounding = (_APPROXIMATE if short else 0.0) + 2 * _SINGLE * (1 + float(np.sqrt(np.mean(x * x)))) + noise
        return left / rounding
    steps_of = [spacing(np.where(each > 0, each, 1.0), e.format) * (each > 0) for each, e in ((x, a), (y, b))]
    stored = sum(float(np.mean(np.square(each))) for each in steps_of) / 12
    size = float(np.mean(x * x))
    return left / math.sqrt(stored + size * (noise * noise + sum(step * step for step in steps)) + 1e-300)


def _output_change(a: Evidence, b: Evidence, rows: BoolArray, noise: float) -> float:
    """Compare outputs: o·vᵀ where both have values, which does not depend on a basis that they share."""
    if a.values.shape == b.values.shape and np.array_equal(a.values, b.values):
        return 0.0
    assert a.v is not None
    assert b.v is not None
    x, y = (np.where(rows[..., np.newaxis], each.values, 0) for each in (a, b))
    worst = max((a, b), key=lambda each: unit(each.format))
    plain = product_change((x, a.v), (y, b.v), worst.format)
    typical = float(np.sqrt(np.mean(np.square(x))))
    spread = float(np.sqrt(np.mean(np.square(a.v))))
    # What noise of the logits does to an output: at most this much of its size.
    carried = noise * spread / (max(unit(worst.format), _SINGLE) * (typical + 1e-300))
    return plain / math.hypot(1, carried)


def _values_stage(one: Subject, other: Subject, most: float) -> Stage:
    found = [next((each for each in subject.evidence if each.v is not None), None) for subject in (one, other)]
    a, b = found
    if a is None or b is None or a.v is None or b.v is None:
        where = "neither file" if a is b else "only the reference" if b is None else "only the other capture"
        return Stage("v", "not-compared", message("{where} has v and o", where=where))
    worst = max((a, b), key=lambda each: unit(each.v_format))
    change = product_change((a.v, a.v), (b.v, b.v), worst.v_format)
    if change <= most:
        return Stage("v", "same", _rounding(change), change)
    return Stage("v", "differs", message("v·vᵀ differ by {change:.3g} × rounding", change=change), change)


def _of_other_text(one: Subject, other: Subject, pair: Pair, common: Common) -> HeadComparison:
    """Compare what does not depend on the text."""
    layers = (pair.layer, pair.test_layer)
    process = compare_processing(one, other, layers, 1.0, comparable=False)
    why = common.note.split(":", 1)[0] if common.note else "no row is in both captures"
    found: list[Stage] = []
    for name in ORDER:
        if name in process.differences or name in ("multiplier", "softcap", "sink", "mask"):
            made = name in _MADE
            found.append(_processing_stage(name, process, one, other) if made else process.differences[name])
        else:
            found.append(Stage(name, "not-compared", why))
    some, others = sampled(one), sampled(other)
    p, z = weights_of(some, process.reference, process.multipliers[0])
    r, y = weights_of(others, process.test, process.multipliers[1])
    before, after = process.multipliers
    return _result(pair, tuple(found), figures(some, p, z, before), figures(others, r, y, after))
