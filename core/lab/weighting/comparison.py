"""Compare weightings, which make attention weights of the same logits: softmax and what replaces or extends it.

The logits are dot products in float32 under the chosen scale rule and mask, without a soft-cap; everything after them
is float64. A sample of the rows is measured if there are many. Learned factors have their initial values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...arrays import BoolArray, FloatArray
from ...attention import weightings
from ...attention.weightings import Weighted
from ...message import message
from ...parameters import Parameters
from ...scales import multiplier
from ...statistics.catalogue import ONE_HOT
from ...statistics.measurement import Estimate
from ..results import Step, fault_of
from ..sampling import CHUNK, chunks
from ..scoring import columns_under, computation, one_draw, sampled_rows, sides, vectors_of
from .results import CLIP, GATE, MEASURES, NOT_OF_WEIGHTINGS, WEIGHTINGS, WeightingRow

# The sample: at most ENTRIES logits, of draws with at most COMPONENTS components, but of two draws at least.
ENTRIES = 1 << 18
COMPONENTS = 1 << 24
_ROUNDING = 1e-14  # the part of a mean below which its standard error is only rounding


@dataclass(frozen=True, eq=False)
class Logits:
    """The scaled logits of some rows of one draw, and those of both halves of their vectors if they can be halved."""

    whole: FloatArray  # (rows, n)
    halves: tuple[FloatArray, FloatArray] | None
    queries: npt.NDArray[np.intp]  # (rows,) positions
    hidden: BoolArray | None  # (rows, n)


def stream(parameters: Parameters) -> Iterator[Step[list[WeightingRow] | None]]:
    """Yield a step after each draw, the last with all rows; raise ParameterError if the rule has no multiplier.

    The parameters of NOT_OF_WEIGHTINGS are ignored.
    """
    usual = Parameters()
    p = replace(parameters, **{name: getattr(usual, name) for name in NOT_OF_WEIGHTINGS})
    multiplier(p.scale, p.setting)
    draws = min(p.batch, max(2, COMPONENTS // (chunks(p.d_k) * CHUNK * (p.n_queries + p.n_keys))))
    chosen, unseen = sampled_rows(p, ENTRIES // draws)
    visible = np.full(len(chosen), p.n_keys) if unseen is None else np.count_nonzero(~unseen, axis=-1)
    faults = {name: fault_of_weighting(p, name) for name in WEIGHTINGS}
    measured: dict[str, list[Sequence[float]]] = {name: [] for name in WEIGHTINGS}
    settings: dict[str, list[float]] = {name: [] for name in WEIGHTINGS}
    for draw in range(draws):
        logits = _logits(p, draw, chosen, unseen)
        for name in WEIGHTINGS:
            if not faults[name]:
                weighted, setting = _weighted(name, p, logits)
                measured[name].append(_measures(name, weighted, visible))
                settings[name] += [] if setting is None else [setting]
        if draw < draws - 1:
            yield Step((draw + 1) / draws, None)
    sample = draws, len(chosen)
    yield Step(
        1.0,
        [
            WeightingRow(name, _mean(settings[name]), _estimates(measured[name]), *sample, faults[name])
            for name in WEIGHTINGS
        ],
    )


def fault_of_weighting(p: Parameters, name: str) -> str:
    """Return why a weighting does not exist at these parameters; empty if it does."""
    if name == "forgetting" and p.mask != "causal":
        return message("Forgetting attention needs a causal mask")
    if name == "differential":
        if p.d_k % 2:
            return message("Differential attention needs an even d_k")
        if fault := fault_of(replace(p, d_k=p.d_k // 2), p.scale):
            return message("Differential attention halves d_k: {fault}", fault=fault)
    return ""


def _logits(p: Parameters, draw: int, chosen: npt.NDArray[np.intp], unseen: BoolArray | None) -> Logits:
    """Return the logits of some queries of a draw."""
    q, k = vectors_of(p, one_draw(p, sides(p), draw))
    half, halves = p.d_k // 2, None
    if not fault_of_weighting(p, "differential"):
        asked = replace(p, d_k=half)
        parts = slice(None, half), slice(half, None)
        one, other = (_scaled(asked, q[..., part], k[..., part], chosen) for part in parts)
        halves = one, other
    return Logits(_scaled(p, q, k, chosen), halves, chosen, unseen)


def _scaled(p: Parameters, q: FloatArray, k: FloatArray, chosen: npt.NDArray[np.intp]) -> FloatArray:
    """Return scaled logits (m, n) in float64 of the chosen queries of q (1, m, d_k) and keys k (1, n, d_k)."""
    c = computation(p, columns_under(p, [p.scale])[0], None)
    q, k = c.vectors(q[:, chosen], k)
    scores = c.scores(q, k).astype(np.float64)
    return c.logits(scores, c.terms(scores.shape, rows=chosen))[0]


def _weighted(name: str, p: Parameters, logits: Logits) -> tuple[Weighted, float | None]:
    """Return the weights of a weighting, and the value of its `setting`."""
    z, hidden = logits.whole, logits.hidden
    if name == "sigmoid":
        bias = -math.log(p.n_keys)
        return weightings.sigmoid_weighting(z, hidden, bias), bias
    if name == "entmax_15":
        return weightings.entmax_15(z, hidden), None
    if name == "sparsemax":
        return weightings.sparsemax(z, hidden), None
    if name == "differential":
        assert logits.halves is not None, "otherwise it has a fault"
        factor = weightings.differential_factor(p.layer)
        return weightings.differential(*logits.halves, hidden, factor), factor
    if name == "forgetting":
        bias = weightings.forgetting_bias(np.full(p.n_keys, math.log(GATE)), logits.queries)
        return weightings.softmax_weighting(z + bias, hidden), GATE
    if name == "qk_clip":
        largest = z.max() if hidden is None else z[~hidden].max()
        factor = weightings.clip_factor(float(largest), CLIP)
        found = weightings.softmax_weighting(factor * z, hidden)
        return Weighted(found.weights, factor * found.jacobian_norm), factor
    sink = 0.0 if name == "softmax_sink" else None
    return weightings.softmax_weighting(z, hidden, sink), sink


def _measures(name: str, weighted: Weighted, visible: npt.NDArray[np.intp]) -> Sequence[float]:
    """Return the values of MEASURES in one draw; NaN where one does not exist."""
    p = weighted.weights
    total = p.sum(axis=-1)
    measures = WEIGHTINGS[name].measures
    entropy = zeros = one_hot = math.nan
    if "entropy" in measures and (total > 0).any():
        shares = p[total > 0] / total[total > 0, np.newaxis]
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        entropy = float(-np.vecdot(shares, logs).mean())
    largest = p.max(axis=-1)  # hidden keys have 0, and some weight of each row is positive
    if "zero_weights" in measures:
        zeros = float((1 - np.count_nonzero(p, axis=-1) / visible).mean())
    if "one_hot_rows" in measures and (visible > 1).any():
        one_hot = float((largest[visible > 1] > ONE_HOT).mean())
    return float(total.mean()), entropy, float(largest.mean()), zeros, one_hot, float(weighted.jacobian_norm.mean())


def _estimates(draws: list[Sequence[float]]) -> Mapping[str, Estimate]:
    """Return the mean of each of MEASURES over draws; empty without draws."""
    if not draws:
        return {}
    return {
        name: _estimate(np.array(values)) for name, values in zip(MEASURES, zip(*draws, strict=True), strict=True)
    }


def _estimate(values: FloatArray) -> Estimate:
    """Return the mean of one value for each draw, and its standard error; None if a value is missing."""
    if np.isnan(values).any():
        return Estimate(None, None)
    mean, stderr = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    return Estimate(mean, stderr if stderr > _ROUNDING * abs(mean) else 0.0)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
