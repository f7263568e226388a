"""Measure the figures of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..blas import one_blas_thread
from ..claims import trials as of_claims
from ..claims.claim import Reading
from ..claims.examine import Results
from ..claims.layers.stack import through_layers
from ..claims.races import raced
from ..lab.experiment import run
from ..parameters import Parameters
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate, Measurement
from . import sample, trials
from .figures import Figure, FromLab, FromTrial, Quotient, Source

_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    of_claims.additive,
    of_claims.dividing,
    of_claims.exp_overflow,
    of_claims.most_responsive,
    of_claims.softmax_example,
    of_claims.weights_of_attention,
    raced,
    through_layers,
    sample.all_heads,
    sample.heads_apart,
    sample.heads_at_once,
    sample.scale_dropped,
    trials.saturation_threshold,
    trials.saturation_width,
    trials.projected,
    trials.rotary,
    trials.score_overflow,
    trials.summed_terms,
    trials.weights_above,
)
TRIALS: Mapping[str, Callable[..., Any]] = {function.__name__: function for function in _FUNCTIONS}


def readings(figures: Mapping[str, Figure]) -> dict[str, Reading]:
    """Measure all figures, by name; what several share is measured once."""
    return dict(stream(figures))


def stream(figures: Mapping[str, Figure]) -> Iterator[tuple[str, Reading]]:
    """Yield the figures one by one, each with its reading, so that a caller can stop between them."""
    results = Results()
    for name, figure in figures.items():
        with one_blas_thread():
            found = read(figure.source, results)
        yield name, found


def read(source: Source, results: Results) -> Reading:
    """Measure one quantity."""
    match source:
        case FromLab(statistic, p, scaled):
            full = STATISTIC[statistic].optional
            measured = results.cached(_with_gradients, p) if full else results.measure(p)
            column = int(scaled)
            return Reading(
                measured.columns[column].measured[statistic], results.predict(p).columns[column].values[statistic]
            )
        case FromTrial(name, arguments, part):
            found = results.cached(TRIALS[name], *arguments)
            return found[part] if part else found
        case Quotient(one, other):
            return _quotient(read(one, results), read(other, results))


def _with_gradients(p: Parameters) -> Measurement[Parameters]:
    return run(p)


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
