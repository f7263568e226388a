"""Compare what was done to the scores of two heads: what their files say, and what their evidence shows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ...arrays import FloatArray
from ...captures.capture import Layer
from ...message import joined, message
from ..disagreement import mask_words
from ..fitting.evidence import residual, unit
from ..judgement.scale import least_tolerance
from ..multipliers import expected_multiplier, near
from ..results import Product, StageName, Verdict, amount
from ..subject import Subject
from ..trial import may_fit
from ..verdict import Examination, examine
from .results import Stage
from .score_change import half_unit_of

_EXACT = 1e-5  # relative: multipliers that two files say are the same if they are as close as this
_UNSURE = 0.05  # relative standard error above which a fitted multiplier is not compared
_FEW = 4  # numbers of evidence, of which a healthy head's multiplier is not compared with another fit
_LUCK = 16.0  # the square of the standard errors by which a best fit of a healthy head may be away
_OF_THE_OTHER = message("in the other capture")


@dataclass(frozen=True, eq=False)
class Processing:
    """How the processing of the scores of two heads differs."""

    differences: dict[StageName, Stage]
    notes: dict[StageName, str]  # of stages that do not differ
    reference: Examination
    test: Examination
    multipliers: tuple[float, float]  # of q·k as stored
    subjects: tuple[Subject, Subject]  # as they were examined: a head may fit what the other file says


def compare_processing(
    one: Subject, other: Subject, layers: tuple[Layer, Layer], factor: float, comparable: bool
) -> Processing:
    """Compare two heads; the other's scores are `factor` times those of the reference.

    `comparable` says whether both have the same rows and keys.
    """
    said = _declared(one, other, layers, factor, comparable)
    notes: dict[StageName, str] = {}
    subjects = (one, other)
    first = examine(one, of_format=False)
    second = first if not said and comparable and _are_identical(one, other) else examine(other, of_format=False)
    if said and comparable and other.evidence and (_may_fit(other, one, factor) or not _fits(second)):
        restated = _restated(other, one, factor)
        as_first = examine(restated, of_format=False)
        if _fits(as_first) or not _fits(second):
            said, second = _fitting(said, notes, as_first), as_first
            subjects = (subjects[0], restated)
    disputed = said and comparable and one.evidence and not _fits(first) and _fits(second)
    if disputed and _may_fit(one, other, 1 / factor):
        restated = _restated(one, other, 1 / factor)
        as_second = examine(restated, of_format=False)
        if _fits(as_second):
            said, first = _fitting(said, notes, as_second), as_second
            subjects = (restated, subjects[1])
    processing = Processing(dict(said), notes, first, second, (_used(first), _used(second)), subjects)
    _add_multipliers(processing, one, other, factor)
    _add_causes(processing)
    return processing


def _are_identical(one: Subject, other: Subject) -> bool:
    """Return whether q, k and the evidence of two heads are the same numbers."""
    pairs = [(one.q, other.q), (one.k, other.k)]
    if [evidence.kind for evidence in one.evidence] != [evidence.kind for evidence in other.evidence]:
        return False
    for a, b in zip(one.evidence, other.evidence, strict=True):
        pairs.append((a.values, b.values))
        if a.v is not None and b.v is not None:
            pairs.append((a.v, b.v))
        if (a.format, a.v_format) != (b.format, b.v_format):
            return False
    return all(np.array_equal(a, b) for a, b in pairs)


def _fits(examination: Examination) -> bool:
    return examination.verdict.word in ("healthy", "undecided")


def _may_fit(subject: Subject, source: Subject, factor: float) -> bool:
    """Return whether what the file of `source` says may explain a head, whose scores are `factor` times as large."""
    restated = _restated(subject, source, factor)
    return may_fit(restated, expected_multiplier(restated.facts, None).start)


def _fitting(
    said: dict[StageName, Stage], notes: dict[StageName, str], restated: Examination
) -> dict[StageName, Stage]:
    """Return what two files say differently, unless the evidence fits what both say, which is then noted."""
    if not _fits(restated):
        return said
    for name, each in said.items():
        notes[name] = message("{says} in the files; the evidence fits both", says=each.says)
    return {}


def _used(examination: Examination) -> float:
    """Return the multiplier of q·k as stored that a head had: what is known of it, else what is expected."""
    verdict, expected = examination.verdict, examination.verdict.expected
    return verdict.multiplier / expected.inside if verdict.multiplier and _is_sure(verdict) else expected.start


def _is_sure(verdict: Verdict) -> bool:
    """Return whether the fitted multiplier is known."""
    if verdict.multiplier is None or verdict.multiplier_error is None or verdict.word == "unexplained":
        return False
    return verdict.multiplier_error <= _UNSURE * abs(verdict.multiplier)


def is_as_expected(examination: Examination) -> bool:
    """Return whether the expected multiplier fits a head without a fault about as well as the best one."""
    trial, expected = examination.trial, examination.verdict.expected.start
    if trial is None or not _fits(examination) or trial.best.hypothesis is not None:
        return False
    observed, model, fit = trial.observed, trial.best.model, trial.best.fit
    z = (trial.best.multiplier - expected) * model.inner[0]
    away = np.std(z if model.seen is None else np.where(model.seen, z, 0))
    if observed.errors < _FEW or away <= unit(observed.evidence.format):
        return True
    arithmetic = trial.best.arithmetic
    if arithmetic is not None and near(trial.best.multiplier, expected, 2 * arithmetic.coarsest):
        return True
    left = residual(observed, model, np.array([expected])).distance
    return left <= math.sqrt(1 + _LUCK / observed.errors) * fit.distance


def _add_causes(processing: Processing) -> None:
    """Add the stages at which a cause acts on one head and not on the other."""
    first, second = processing.reference.verdict, processing.test.verdict
    if first.findings and second.cause in (first.cause, *first.also):
        stage = first.findings[0].stage
        if first.cause == "not-finite":
            says = message("nothing can be compared, not-finite in both: {says}", says=first.says)
            processing.differences[stage] = Stage(stage, "differs", says)
        elif stage not in processing.differences:
            processing.notes[stage] = message("{cause} in both: {says}", cause=first.cause, says=first.says)
        return
    for each, where in ((processing.reference, message("in the reference")), (processing.test, _OF_THE_OTHER)):
        if not each.verdict.findings:
            continue
        stage = each.verdict.findings[0].stage
        known = processing.differences.get(stage)
        why = each.verdict.says if known is None else joined([one.says for one in each.verdict.findings], "; ")
        says = message("{cause} {where}: {says}", cause=each.verdict.cause, where=where, says=why)
        if known is not None:
            processing.differences[stage] = replace(known, says=joined((known.says, says), "; "))
        elif stage != "multiplier" or each.verdict.multiplier is None or "-by-" in each.verdict.findings[0].cause:
            processing.differences[stage] = Stage(stage, "differs", says)


def _add_multipliers(processing: Processing, one: Subject, other: Subject, factor: float) -> None:
    """Compare fitted multipliers, or a fitted one with what the other file says."""
    verdicts = (processing.reference.verdict, processing.test.verdict)
    sure = [_is_sure(verdict) for verdict in verdicts]
    if not any(sure) or any(
        verdict.findings and verdict.findings[0].stage in ("qk", "weights") for verdict in verdicts
    ):
        return
    if not all(sure) and verdicts[sure.index(False)].expected.assumed:
        return
    before, after = processing.multipliers
    ratio = after * factor / before
    tolerance = _proportion(one, other, factor)
    expected = [verdict.expected.start for verdict in verdicts]
    as_expected = not any(verdict.expected.unknown for verdict in verdicts) and all(
        is_as_expected(examination) for examination in (processing.reference, processing.test)
    )
    alike = as_expected and abs(expected[1] * factor / expected[0] - 1) <= tolerance
    for verdict, subject, known in zip(verdicts, (one, other), sure, strict=True):
        if known:
            assert verdict.multiplier
            assert verdict.multiplier_error is not None
            evidence = next(each for each in subject.evidence if each.kind == verdict.evidence)
            error = 5 * verdict.multiplier_error / abs(verdict.multiplier)
            tolerance = max(tolerance, error, least_tolerance(subject, evidence))
    if alike or abs(ratio - 1) <= tolerance:
        processing.differences.pop("multiplier", None)
        if factor != 1:
            template = "{product}, of factors that are elsewhere than in the reference"
            processing.notes["multiplier"] = message(template, product=amount(one.facts.product(before)))
        return
    sources = ["" if known else message(" (as the file says)") for known in sure]
    says = _products(one.facts.product(before), ratio, *sources)
    processing.differences["multiplier"] = Stage("multiplier", "differs", says, abs(ratio - 1) / tolerance)


def _products(before: Product, ratio: float, of_reference: str, of_other: str) -> str:
    """Return what q·k was multiplied by in all, in both captures."""
    template = "is {after}{of_other}, {before} in the reference{of_reference}"
    after = Product(before * ratio)
    return message(template, after=amount(after), of_other=of_other, before=amount(before), of_reference=of_reference)


def _proportion(one: Subject, other: Subject, factor: float) -> float:
    """Return how precisely a product with the factor of the scores is known, relative."""
    return _EXACT if factor == 1 else max(1e-3, 4 * half_unit_of(one), 4 * half_unit_of(other))


def _declared(
    one: Subject, other: Subject, layers: tuple[Layer, Layer], factor: float, comparable: bool
) -> dict[StageName, Stage]:
    """Return what the two files say differently."""
    stages: dict[StageName, Stage] = {}

    def add(stage: StageName, says: str, change: float | None = None) -> None:
        stages[stage] = Stage(stage, "differs", says, change)

    a, b = one.facts, other.facts
    before, after = expected_multiplier(a, None), expected_multiplier(b, None)
    ratio = after.start * factor / before.start
    if abs(ratio - 1) > _proportion(one, other, factor):
        words = [message(" (assumed)") if expected.assumed else "" for expected in (before, after)]
        add("multiplier", _products(a.product(before.start), ratio, *words), abs(ratio - 1) / _EXACT)
    elif comparable and _arrays_differ(one.row_scales, other.row_scales, 1.0):
        add("multiplier", "rows have other multipliers than in the reference")
    numbers: dict[StageName, tuple[float | None, float | None]]
    numbers = {"softcap": (a.softcap, b.softcap), "sink": (a.sink, b.sink)}
    for stage, (x, y) in numbers.items():
        if _numbers_differ(x, y, one, other):
            add(stage, message("{y}, {x} in the reference", y=_or_none(y), x=_or_none(x)))
    if comparable:
        if _arrays_differ(one.bias, other.bias, 0.0, one, other):
            words = {(True, False): "no bias, one in the reference", (False, True): "a bias, none in the reference"}
            which = (one.bias is not None, other.bias is not None)
            add("bias", words.get(which, "other numbers than in the reference"))
        if (mask := _masks(one, other)) is not None:
            kinds = _kinds(layers)
            add("mask", joined((mask, kinds), ": ") if kinds else mask)
    elif kinds := _kinds(layers):
        add("mask", kinds)
    return stages


def _numbers_differ(x: float | None, y: float | None, one: Subject, other: Subject) -> bool:
    if x is None or y is None:
        return x is not y
    step = 2 * max(unit(one.format), unit(other.format))
    return abs(x - y) > step * max(abs(x), abs(y))


def _arrays_differ(
    x: FloatArray | None,
    y: FloatArray | None,
    absent: float,
    one: Subject | None = None,
    other: Subject | None = None,
) -> bool:
    """Return whether two arrays differ by more than rounding; a missing one is `absent` everywhere."""
    if x is None and y is None:
        return False
    a = np.float64(absent) if x is None else x
    b = np.float64(absent) if y is None else y
    step = max(_EXACT, *(2 * unit(rounding.format) for rounding in (one, other) if rounding is not None), 0.0)
    away = np.abs(np.subtract(b, a))
    for subject in (one, other):  # what is added to hidden pairs has no effect
        if subject is not None and subject.seen is not None:
            away = np.where(subject.seen, away, 0)
    size = max(float(np.max(np.abs(a))), float(np.max(np.abs(b))))
    return bool(np.max(away) > step * size)


def _or_none(number: float | None) -> str:
    return "none" if number is None else f"{number:.4g}"


def _masks(one: Subject, other: Subject) -> str | None:
    """Return how the visible pairs of two heads differ."""
    if one.seen is None and other.seen is None:
        return None
    a = np.True_ if one.seen is None else one.seen
    b = np.True_ if other.seen is None else other.seen
    rows = (one.used & other.used)[..., np.newaxis]
    more, less = int(np.count_nonzero(b & ~a & rows)), int(np.count_nonzero(a & ~b & rows))
    if not more and not less:
        return None
    size = int(np.count_nonzero(np.broadcast_to(rows, one.scores.shape)))
    parts = [
        message("{share} of pairs are {word}", share=percent(count / size), word=word)
        for count, word in ((more, "shown"), (less, "hidden"))
        if count
    ]
    return message("{parts} that the reference does not", parts=joined(parts, " and "))


def percent(share: float) -> str:
    """Return `12.5 %`; `all` of what nothing is left."""
    return f"{100 * share:.3g} %" if math.isfinite(share) else "all"


def _kinds(layers: tuple[Layer, Layer]) -> str:
    """Return how the kinds of masks differ that two files name; or empty."""
    kinds = [mask_words(layer, windows=False) for layer in layers]
    return (
        "" if kinds[0] == kinds[1] else message("{after}, {before} in the reference", after=kinds[1], before=kinds[0])
    )


def _restated(subject: Subject, source: Subject, factor: float) -> Subject:
    """Return a head whose file says what that of `source` does; its scores are `factor` times those of `source`."""
    said = source.facts
    scale = expected_multiplier(said, None).start / factor
    facts = replace(subject.facts, scale=scale, softcap=said.softcap, sink=said.sink, window=said.window)
    return replace(
        subject,
        facts=facts,
        positions=source.positions,
        seen=source.seen,
        present=source.present,
        bias=source.bias,
        row_scales=source.row_scales,
        shift=source.shift,
    )
