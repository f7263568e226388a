"""Measure what the figures of steps, questions and claims come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import hypot
from typing import Any, TypeVar

from ..blas import one_blas_thread
from ..lab.experiment import run
from ..lab.sampling import Draws
from ..parameters import Parameters
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate, Measurement
from ..theory.predict import predict
from ..theory.prediction import Prediction
from . import trials
from .claim import Claim, ClaimFigure
from .outcome import Outcome, judged
from .sources import Difference, FromLab, FromTrial, Quotient, Reading, Source
from .step import TourFigure
from .tour import trials as tour_trials

T = TypeVar("T")

_TRIALS: tuple[Callable[..., Any], ...] = (
    trials.additive,
    trials.additive_over_dot,
    trials.cosine,
    trials.distance_from_normal,
    trials.dividing,
    trials.exp_overflow,
    trials.first_or_last,
    trials.gradient_growth,
    trials.largest_of_matrix,
    trials.live_entries,
    trials.most_responsive,
    trials.raced,
    trials.rows_within,
    trials.shapes,
    trials.softmax_example,
    trials.std_of_one_run,
    trials.through_layers,
    trials.weights_of_attention,
    tour_trials.all_heads,
    tour_trials.heads_apart,
    tour_trials.heads_at_once,
    tour_trials.projected,
    tour_trials.rotary,
    tour_trials.scale_dropped,
    tour_trials.score_overflow,
    tour_trials.summed_terms,
    tour_trials.weights_above,
)
TRIALS: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in _TRIALS}


@dataclass(eq=False)
class ResultCache:
    """The cached results for one item, so that work shared by several figures is done once."""

    _draws: Draws = field(default_factory=Draws)
    _cache: dict[tuple[Any, ...], Any] = field(default_factory=dict[tuple[Any, ...], Any])

    def cached(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return `function(*arguments)`, from the cache if possible; the arguments must be hashable."""
        key = (function, *arguments)
        if key not in self._cache:
            self._cache[key] = function(*arguments)
        return self._cache[key]

    def measure(self, p: Parameters) -> Measurement[Parameters]:
        """Return the Lab's measurement."""
        return self.cached(run, p, self._draws, False)

    def predict(self, p: Parameters) -> Prediction:
        """Return the Lab's prediction."""
        return self.cached(predict, p)


def stream(figures: Mapping[str, TourFigure | ClaimFigure]) -> Iterator[tuple[str, Reading]]:
    """Yield the figures one by one, each with its reading, so that a caller can stop between them."""
    results = ResultCache()
    for name, figure in figures.items():
        with one_blas_thread():
            reading = read(figure.source, results)
        yield name, reading


def examine(claim: Claim) -> Outcome:
    """Test a claim."""
    return judged(claim, dict(stream(claim.by_label)))


def read(source: Source, results: ResultCache) -> Reading:
    """Measure one quantity."""
    match source:
        case FromLab(statistic, p, scaled):
            optional = STATISTIC[statistic].optional
            measured = results.cached(run, p) if optional else results.measure(p)
            predicted = results.predict(p).columns[int(scaled)].values[statistic]
            return Reading(measured.columns[int(scaled)].measured[statistic], predicted)
        case FromTrial(name, arguments, part):
            found = results.cached(TRIALS[name], *arguments)
            return found[part] if part else found
        case Reading():
            return source
        case Quotient(one, other):
            return _quotient(read(one, results), read(other, results))
        case Difference(one, other):
            return _difference(read(one, results), read(other, results))


def _quotient(one: Reading, other: Reading) -> Reading:
    """Return one over another. Relative errors are added, as if both erred together: an upper bound."""
    exact = one.exact / other.exact if one.exact is not None and other.exact else None
    above, below = one.measured, other.measured
    if above is None or below is None or above.value is None or not below.value:
        return Reading(None, exact)
    value = above.value / below.value
    relative = (
        (above.stderr or 0.0) / abs(above.value) + (below.stderr or 0.0) / abs(below.value) if above.value else 0
    )
    return Reading(Estimate(value, abs(value) * relative), exact)


def _difference(one: Reading, other: Reading) -> Reading:
    """Return one minus another, which are independent."""
    exact = one.exact - other.exact if one.exact is not None and other.exact is not None else None
    a, b = one.measured, other.measured
    if a is None or b is None or a.value is None or b.value is None:
        return Reading(None, exact)
    return Reading(Estimate(a.value - b.value, hypot(a.stderr or 0.0, b.stderr or 0.0)), exact)
