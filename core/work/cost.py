"""Estimates of the time that a measurement takes on one core, by which sweeps are cut.

They depend on the request alone, never on a clock, so that a sweep is cut alike everywhere. The constants were
measured on a 2.1 GHz Xeon with AVX-512; another core may take half or three times as long.
"""

from __future__ import annotations

from collections.abc import Collection

from ..parameters import ROUNDED, Parameters
from ..statistics.measurement import HistogramName
from ..statistics.tally import COUNTED

_DRAW = 10e-9  # seconds for a component
_PRODUCT = 0.04e-9  # for a score, for each component
_SUMS, _RULE = 2.4e-9, 1.4e-9  # for the sums of a score, and for each rule
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
    return scores(p) * (_SUMS + _RULE * (1 + rules)) + counted + rules * _POINT


def report_seconds(p: Parameters) -> float:
    """Return the time of the measurement of both columns."""
    return column_seconds(p, nested=False) * p.d_k + separate_seconds(p, full=True)


def separate_seconds(p: Parameters, full: bool) -> float:
    """Return the time of a separate run, given the components."""
    per_score = 2 * (_ROUNDED if p.precision in ROUNDED else _TWO_PASS)
    per_score += p.d_k * (_ADDITIVE if p.mechanism == "additive" else 2 * _PRODUCT)
    learned = 2 * _PRODUCT * p.d_k**2 * p.batch * (p.n_queries + p.n_keys) if p.mechanism == "bilinear" else 0.0
    return _POINT + (scores(p) * per_score + learned) * (_FULL if full else 1.0)
