"""Sweeps: cut into parts, which lab measures, and their points, each with its theory.

A part is some d_k of one question, all its draws or some rows of some of them. How a sweep is cut depends on the
request alone, never on the executor or a clock, so every executor gives the same bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from ..errors import InputError
from ..lab import sweep
from ..lab.results import SweepPoint, Target
from ..parameters import ROUNDED, Parameters, ScaleName, Value
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import HISTOGRAMS, HistogramName
from ..statistics.reading import merge
from ..statistics.tally import COUNTED, Tally
from ..theory.predict import predict
from ..theory.prediction import Prediction
from .part import Part, Steps

# Estimates of the time on one core, measured on a 2.1 GHz Xeon with AVX-512; another core may
# take half or three times as long.
_DRAW = 10e-9  # seconds for a component
_PRODUCT = 0.04e-9  # for a score, for each component
_SUM, _RULE = 2.4e-9, 1.4e-9  # for the sums of a score, and for each rule
_COUNT = 10e-9  # for a score that histograms count
_POINT = 1e-3  # for the statistics and the theory of a point
_TWO_PASS, _ROUNDED = 14e-9, 40e-9  # for a score, for each column
_ADDITIVE = 1.2e-9  # for a score, for each component
_FULL = 2.0  # times as long with gradients


def scores(p: Parameters) -> int:
    """Return the number of scores of all draws."""
    return p.batch * p.n_queries * p.n_keys


def column_seconds(p: Parameters, nested: bool) -> float:
    """Return the time to draw another component of all vectors and, if scores are nested, to add it to the scores."""
    return p.batch * (p.n_queries + p.n_keys) * _DRAW + (scores(p) * _PRODUCT if nested else 0.0)


def nested_seconds(p: Parameters, rules: int, histograms: Collection[HistogramName]) -> float:
    """Return the time for the statistics of some rules at one d_k, given the scores."""
    counted = min(scores(p), COUNTED) * (1 + rules) * _COUNT if histograms else 0.0
    return scores(p) * (_SUM + _RULE * (1 + rules)) + counted + rules * _POINT


def report_seconds(p: Parameters) -> float:
    """Return the time of the measurement of both columns."""
    return column_seconds(p, nested=False) * p.d_k + separate_seconds(p, full=True)


def separate_seconds(p: Parameters, full: bool) -> float:
    """Return the time of a separate run, given the components."""
    per_score = 2 * (_ROUNDED if p.precision in ROUNDED else _TWO_PASS)
    per_score += p.d_k * (_ADDITIVE if p.mechanism == "additive" else 2 * _PRODUCT)
    learned = 2 * _PRODUCT * p.d_k**2 * p.batch * (p.n_queries + p.n_keys) if p.mechanism == "bilinear" else 0.0
    return _POINT + (scores(p) * per_score + learned) * (_FULL if full else 1.0)


Predicted: TypeAlias = tuple[SweepPoint, Prediction]


@dataclass(frozen=True)
class SweepPlan:
    """A sweep that is to be measured: its questions, in the order of their points, and its d_k, ascending."""

    questions: tuple[Parameters, ...]
    d_ks: tuple[int, ...]
    target: Target | None = None
    full: bool = False  # whether the statistics of gradients and of the number format are measured too
    histograms: tuple[HistogramName, ...] = HISTOGRAMS  # of the points


@dataclass(frozen=True)
class Widths:
    """Some d_k of questions that differ in their scale rule alone, so that one measurement has the points of all."""

    places: tuple[int, ...]  # the numbers of the questions
    parameters: Parameters  # of the first
    rules: tuple[ScaleName, ...]  # of each
    d_ks: Sequence[int]  # rising; a range if evenly spaced, which takes fewer bytes


@dataclass(frozen=True)
class RowBlock:
    """Some rows of some draws, from the first to the one before the last, and whether no later cut follows."""

    draws: tuple[int, int]
    rows: tuple[int, int]
    last: bool


@dataclass(frozen=True, eq=False)
class CutTally:
    """The tally of a cut at one d_k; `last` says whether it completes the point of each question."""

    widths: Widths  # with this d_k alone
    last: bool
    tally: Tally


Found: TypeAlias = tuple[int, Predicted] | CutTally  # the number of a question and a point of it, or a tally

# Parts take _LEAST seconds if a sweep is short, and up to _MOST if there would be more than _PARTS of them: a hundred
# parts a second or more are passed on.
_PARTS = 4096
_LEAST, _MOST = 0.25, 10.0  # seconds
_SUMS = 10_000  # bytes of the sums of a cut's draws, with the counts of a histogram at most 25 kB
_OF_SCORES, _OF_RULE = 192, 120  # bytes of the sums of a draw
_GAIN = 8  # times as much as growing the scores again costs, a group measures


def sweep_plan(
    parameters: Parameters,
    d_ks: Sequence[int],
    *,
    vary: tuple[str, Sequence[Value]] | None = None,
    n_keys: Sequence[int] = (),
    target: Target | None = None,
    full: bool = False,
    histograms: Sequence[HistogramName] = HISTOGRAMS,
) -> SweepPlan:
    """Return the plan of a sweep: for each value of the second axis, for each number of keys, every d_k, both rising.

    `vary` is the second axis: another parameter and its values. Without `n_keys`, the number of keys is that of the
    parameters. With a target, each point draws further batches until it is precise enough. With `full`, or if the
    target needs it, the statistics of gradients and of the number format are measured too; they do not nest, so each
    point is a separate run. Raise InputError, before anything is computed, if an argument is invalid.
    """
    grid = tuple(sorted(set(d_ks)))
    asked = sweep.questions(parameters, grid, vary, n_keys)
    full = full or (target is not None and STATISTIC[target.statistic].optional)
    return SweepPlan(tuple(asked), grid, target, full, tuple(histograms))


class Fold:
    """Makes points of the results of parts, which come in the order of a plan."""

    def __init__(self, plan: SweepPlan) -> None:
        self._asked = len(plan.d_ks)
        self._tallies: dict[int, Tally] = {}  # of the cuts so far, by d_k
        self._early = defaultdict[int, list[Predicted]](list)  # the points of later questions than `_place`
        self._place = self._complete = 0  # the question whose points are next, and how many it had

    def add(self, results: Iterable[Found | InputError]) -> list[Predicted]:
        """Return the points that follow next, once these results are added; raise an InputError among them.

        A point of another grid, or of `experiment.run`, has the same draws and agrees to the precision of float32.
        """
        for result in results:
            if isinstance(result, InputError):
                raise result
            for place, point in self._finished(result):
                self._early[place].append(point)
        ready: list[Predicted] = []
        while self._early[self._place]:
            self._complete += len(self._early[self._place])
            ready += self._early.pop(self._place)
            if self._complete == self._asked:
                self._place, self._complete = self._place + 1, 0
        return ready

    def _finished(self, result: Found) -> Iterator[tuple[int, Predicted]]:
        """Yield the points that a result completes, each with the number of its question."""
        if not isinstance(result, CutTally):
            yield result
            return
        widths, [d_k] = result.widths, result.widths.d_ks
        before = self._tallies.pop(d_k, None)
        kept = result.tally if before is None else merge([before, result.tally])
        if not result.last:
            self._tallies[d_k] = kept
            return
        for place, point in zip(widths.places, sweep.points(widths.parameters, d_k, widths.rules, kept), strict=True):
            yield place, (point, predict(point.parameters))


def parts(plan: SweepPlan) -> Iterator[Part[Found]]:
    """Yield the parts of a sweep; those of one question, and of one d_k, follow each other."""
    for widths in _groups(plan):
        p, seconds = widths.parameters, _seconds(plan, widths)
        points = len(widths.places) * len(widths.d_ks)
        if not _nests(plan, p):
            yield Part(measure_separate, (widths, plan.target, plan.full, plan.histograms), seconds, points)
            continue
        cuts = _cuts(plan, widths)
        if len(cuts) == 1:
            yield Part(measure_nested, (widths, plan.target, plan.histograms), seconds, points)
            continue
        for number, (draws, rows) in enumerate(cuts, 1):
            cut = RowBlock((draws.start, draws.stop), (rows.start, rows.stop), number == len(cuts))
            yield Part(tally_cut, (widths, cut, plan.histograms), seconds / len(cuts), len(widths.d_ks))


def measure_nested(widths: Widths, target: Target | None, histograms: Sequence[HistogramName]) -> Steps[Found]:
    """Measure the points of a part that has all draws."""
    for fraction, found in sweep.nested(widths.parameters, widths.d_ks, widths.rules, target, histograms):
        yield fraction, _predicted(widths, found)


def measure_separate(
    widths: Widths, target: Target | None, full: bool, histograms: Sequence[HistogramName]
) -> Steps[Found]:
    """Measure points in separate runs."""
    for fraction, found in sweep.separate(widths.parameters, widths.d_ks, target, full, histograms):
        yield fraction, _predicted(widths, found)


def _predicted(widths: Widths, points: Iterable[tuple[int, SweepPoint]]) -> tuple[Found, ...]:
    return tuple((widths.places[rule], (point, predict(point.parameters))) for rule, point in points)


def tally_cut(widths: Widths, cut: RowBlock, histograms: Sequence[HistogramName]) -> Steps[Found]:
    """Measure the tallies of a cut."""
    draws, rows = slice(*cut.draws), slice(*cut.rows)
    for fraction, found in sweep.tallies(widths.parameters, draws, rows, widths.d_ks, widths.rules, histograms):
        yield fraction, tuple(CutTally(replace(widths, d_ks=(d_k,)), cut.last, tally) for d_k, tally in found)


def _nests(plan: SweepPlan, p: Parameters) -> bool:
    return not plan.full and sweep.nests(p)


def _cuts(plan: SweepPlan, widths: Widths) -> list[tuple[slice, slice]]:
    """Return the draws and rows of each part; all in one if later draws depend on what the first find.

    A tally has some sums of each draw, so that of a cut has few draws; if that makes cuts too short for a part, there
    are none.
    """
    p = widths.parameters
    draws, rows = slice(0, p.batch), slice(0, p.n_queries)
    if plan.target or not _nests(plan, p) or scores(p) <= sweep.MOST:
        return [(draws, rows)]
    cuts = sweep.cuts(p, draws, max(_SUMS // (_OF_SCORES + _OF_RULE * len(widths.rules)), 1))
    if len(cuts) > len(sweep.cuts(p, draws)) and _seconds(plan, widths) < _LEAST * len(cuts):
        return [(draws, rows)]
    return cuts


def _families(plan: SweepPlan) -> list[Widths]:
    """Return all questions, those that share their scores together."""
    alike: dict[Parameters | int, list[int]] = {}
    for place, p in enumerate(plan.questions):
        alike.setdefault(replace(p, scale="none") if _nests(plan, p) else place, []).append(place)
    return [
        Widths(tuple(places), plan.questions[places[0]], tuple(plan.questions[i].scale for i in places), plan.d_ks)
        for places in alike.values()
    ]


def _groups(plan: SweepPlan) -> Iterator[Widths]:
    """Yield the questions with their d_k in groups that are worth a part.

    All but the first group of a question grow their scores again from the first column, so a group begins only where
    what it measures takes _GAIN times as long.
    """
    families = _families(plan)
    grain = min(max(sum(_seconds(plan, family) for family in families) / _PARTS, _LEAST), _MOST)
    for family in families:
        p, d_ks = family.parameters, family.d_ks
        least, column = grain * len(_cuts(plan, family)), column_seconds(p, _nests(plan, p))
        costs = [_point_seconds(plan, family, d_k) for d_k in d_ks]
        steps = [after - before for before, after in pairwise([0, *d_ks])]
        rest, first, spent = sum(costs) + column * d_ks[-1], 0, 0.0
        for at, (cost, step) in enumerate(zip(costs, steps, strict=True)):
            again = column * (d_ks[at] - step)
            start = column * d_ks[first - 1] if first else 0.0
            if spent >= max(least, _GAIN * start) and rest >= max(least / 2, _GAIN * again):
                yield replace(family, d_ks=_compact(d_ks[first:at]))
                first, spent = at, 0.0
            spent += cost + column * step
            rest -= cost + column * step
        yield replace(family, d_ks=_compact(d_ks[first:]))


def _compact(d_ks: Sequence[int]) -> Sequence[int]:
    even = range(d_ks[0], d_ks[-1] + 1, d_ks[1] - d_ks[0] if len(d_ks) > 1 else 1)
    return even if tuple(even) == tuple(d_ks) else d_ks


def _point_seconds(plan: SweepPlan, widths: Widths, d_k: int) -> float:
    p = replace(widths.parameters, d_k=d_k)
    if _nests(plan, p):
        return nested_seconds(p, len(widths.rules), plan.histograms)
    return separate_seconds(p, plan.full)


def _seconds(plan: SweepPlan, widths: Widths) -> float:
    """Return the time of a part or a question on one core, estimated; with a target, of the first batch."""
    p = widths.parameters
    points = sum(_point_seconds(plan, widths, d_k) for d_k in widths.d_ks)
    return points + column_seconds(p, _nests(plan, p)) * widths.d_ks[-1]
