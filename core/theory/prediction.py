"""The results of theory as plain values; this module does not need NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ..message import message
from ..parameters import FIELD, Parameters
from ..statistics.histogram import Histogram
from ..statistics.measurement import Estimate
from ..statistics.status import SATURATED, Status, status

Interval: TypeAlias = tuple[int, int]  # of d_k, the first and the last
REACH = 512  # the d_k up to which one axis of logits holds
WAY = (16, 256)  # the d_k between which it is shown how saturation changes: few models have wider or narrower heads
_NARROWEST, _WIDEST = int(FIELD["d_k"].low), int(FIELD["d_k"].high)


@dataclass(frozen=True, repr=False)
class PredictedColumn:
    """The predictions for one column."""

    values: Mapping[str, float | None]  # by the names of STATISTICS; None if no exact value is known
    saturation: Saturation | None  # None if the standard deviation of the logits is not known at every d_k

    def __repr__(self) -> str:
        known = {name: value for name, value in self.values.items() if value is not None}
        shown = [f"{name} {known[name]:.4g}" for name in ("logit_std", "entropy", "max_weight") if name in known]
        return f"<exact values of {len(known)} statistics: {', '.join(shown)}>"


class Saturation(NamedTuple):
    """Where softmax saturates, so that a few keys hold all the weight of a row."""

    threshold: float  # the logit standard deviation √(2 ln n) of the random-energy model (Derrida 1981)
    std: float  # of the logits within a row, the part that affects softmax, at the d_k of the parameters
    reach: float  # the largest standard deviation at any d_k up to this one, or up to REACH if that is larger
    saturated_at: tuple[Interval, ...]  # all d_k at which the standard deviation is at least the threshold, ascending
    way: tuple[float, float]  # the ratios to the threshold at the first and the second d_k of WAY; NaN without one
    decides: bool = True  # the status; a measured ratio does if arithmetic is rounded, or weights are drawn once

    @property
    def ratio(self) -> float:
        """The standard deviation over the threshold."""
        return self.std / self.threshold

    def words(self) -> tuple[str, ...]:
        """Return `saturated at d_k 1–6`, `saturated from d_k 10 up`, …, and shorter forms of it."""
        if not self.saturated_at:
            below = message("stays below saturation at every d_k"), message("stays below saturation")
            return *below, message("never saturated"), message("never")
        if self.saturated_at == ((_NARROWEST, _WIDEST),):
            return message("saturated at every d_k"), message("at every d_k"), message("every d_k")
        closed = [f"{a}" if a == b else f"{a}–{b}" for a, b in self.saturated_at if b != _WIDEST]
        up = [a for a, b in self.saturated_at if b == _WIDEST]
        if not closed:
            return (
                message("saturated from d_k {up} up", up=up[0]),
                message("saturated from d_k {up}", up=up[0]),
                message("from d_k {up}", up=up[0]),
                f"{up[0]}+",
            )
        open_end = message(" and from {up} up", up=up[0]) if up else ""
        short = ", ".join([*closed, *(f"{first}+" for first in up)])
        return (
            message("saturated at d_k {closed}{open_end}", closed=", ".join(closed), open_end=open_end),
            message("saturated at d_k {short}", short=short),
            message("at d_k {short}", short=short),
            short,
        )


def status_given(saturation: Saturation | None, measured: Mapping[str, Estimate]) -> Status | None:
    """Return the status of a measured column, by its exact saturation ratio if that is known."""
    return status(measured, saturation.ratio if saturation is not None and saturation.decides else None)


def is_saturated(saturation: Saturation | None, measured: Mapping[str, Estimate], d_k: int) -> bool | None:
    """Return whether softmax is saturated at a d_k, by its measured ratio if the exact one is not known."""
    if saturation is not None:
        return any(first <= d_k <= last for first, last in saturation.saturated_at)
    ratio = ratio_given(None, measured)
    return None if ratio is None else ratio >= SATURATED


def crossings(flags: Iterable[tuple[int, bool | None]]) -> Iterator[tuple[float, bool]]:
    """Yield where softmax saturates, with True, and where it recovers: in the middle of two places on a log axis.

    `flags` says at which places, ascending, it is saturated; None if that is not known.
    """
    known = [(at, saturated) for at, saturated in flags if saturated is not None]
    for (at, before), (following, after) in pairwise(known):
        if before != after:
            yield math.sqrt(at * following), after


def ratio_given(saturation: Saturation | None, measured: Mapping[str, Estimate]) -> float | None:
    """Return the saturation ratio that decides the status of a measured column; None if there is none."""
    if saturation is not None and saturation.decides:
        return saturation.ratio
    found = measured.get("saturation")
    return None if found is None or found.value is None or not math.isfinite(found.value) else found.value


class Prediction(NamedTuple):
    """The predictions for some parameters, to compare with their Measurement."""

    parameters: Parameters
    columns: tuple[PredictedColumn, ...]  # of A and B


class Theory(NamedTuple):
    """A prediction, and the deviations of a measurement from it."""

    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]  # of each column, in standard errors
    curves: Sequence[Histogram | None]  # the shares of each column's unscaled scores
