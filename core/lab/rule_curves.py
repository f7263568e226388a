"""Measure entropy over d_k under every scale rule, on a sample of rows, for the sparkline beside each rule.

It is measured rather than predicted, because no exact value is known for rules that normalise q and k, nor for any
rule with other mechanisms, a soft-cap or a number format. The curve at one d_k uses the first d_k columns of the
lab's draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..attention.softmax import (
    ShiftedRows,
    logits_below,
    row_statistics,
    row_sums,
    shift_rows,
    weight_statistics,
)
from ..parameters import ROUNDED, Parameters
from ..scales import multiplier
from .results import ProgressStep, RuleCurves, fault_of, rules_for
from .sampling import chunks, components
from .scoring import (
    Preparation,
    RuleColumn,
    computation,
    dtype_of,
    learned_weights,
    preparation,
    sampled_rows,
    sides,
    vectors_of,
)

# The sample: at most ENTRIES scores at each d_k, of at most DRAWS draws with at most COMPONENTS components.
ENTRIES = 1 << 14
DRAWS = 4
COMPONENTS = 1 << 24
# The most components of the keys of one draw to hold at once, which limits d_k if there are many keys.
HELD = 1 << 23
FIRST, LAST = 4, 4096  # d_k
LAST_LEARNED = 1024  # for mechanisms with learned weights, which grow like d_k²


def grid(p: Parameters) -> tuple[int, ...]:
    """Return the powers of two from FIRST to LAST, or fewer if that would be too much to draw."""
    widest = LAST_LEARNED if p.mechanism in ("additive", "bilinear") else LAST
    widest = min(widest, max(HELD // p.n_keys, FIRST))
    return tuple(2**power for power in range(FIRST.bit_length() - 1, widest.bit_length()))


def stream(parameters: Parameters) -> Iterator[ProgressStep[RuleCurves]]:
    """Yield short steps, the last with the curves; the d_k of the parameters is ignored."""
    p = parameters
    d_ks = grid(p)
    draws = min(max(COMPONENTS // (d_ks[-1] * (p.n_queries + p.n_keys)), 2), DRAWS, p.batch)
    chosen, _ = sampled_rows(p, ENTRIES // draws)
    sums = {rule: np.zeros(len(d_ks)) for rule in rules_for(p.scale)}
    for draw in range(draws):
        raw: list[FloatArray] = []
        for side in sides(p):
            kept = chosen if side == "query" else slice(None)
            made: list[FloatArray] = []
            for chunk in range(chunks(d_ks[-1])):
                made.append(components(p, side, draw, chunk)[:, kept].astype(dtype_of(p), copy=False))
                yield ProgressStep(draw / draws)
            raw.append(np.concatenate(made)[np.newaxis])
        for at, d_k in enumerate(d_ks):
            asked = replace(p, d_k=d_k)
            for rule, entropy in _entropies(asked, [vectors[:, :d_k] for vectors in raw], chosen).items():
                sums[rule][at] += entropy / draws
            yield ProgressStep((draw + (at + 1) / len(d_ks)) / draws)
    values = {
        rule: tuple(
            None if fault_of(replace(p, d_k=d_k), rule) or math.isnan(value) else value
            for d_k, value in zip(d_ks, each.tolist(), strict=True)
        )
        for rule, each in sums.items()
    }
    yield ProgressStep(1.0, (RuleCurves(d_ks, draws, len(chosen), values),))


def _entropies(p: Parameters, raw: list[FloatArray], chosen: npt.NDArray[np.intp]) -> Mapping[str, float]:
    """Return the mean entropy fraction of one draw under each rule that has a multiplier; NaN without rows."""
    learned = learned_weights(p)
    q, k = vectors_of(p, raw)
    made: dict[Preparation, FloatArray] = {}
    shifted: dict[Preparation, ShiftedRows] = {}  # of the scores, if there is no soft-cap
    found: dict[str, float] = {}
    for rule in rules_for(p.scale):
        if fault_of(p, rule):
            continue
        c = computation(p, RuleColumn(rule, multiplier(rule, p.setting), p.setting), learned)
        how = preparation(c)
        if how not in made:
            made[how] = c.scores(*c.vectors(q, k))
        terms = c.terms(made[how].shape, rows=chosen)
        unseen = None if terms.hidden is None else terms.hidden[0]
        if p.precision in ROUNDED:
            weights = c.weights(c.logits(made[how], terms), terms.hidden).weights[0]
            found[rule] = _rounded_entropy_fraction(weights, unseen)
            continue
        if p.softcap:
            found[rule] = _entropy_fraction(shift_rows(c.logits(made[how], terms)[0], unseen), 1.0, c.sink)
            continue
        if how not in shifted:
            shifted[how] = shift_rows(made[how][0], unseen)
        factors = np.asarray(terms.multiplier)[0]
        if len(factors) > 1:
            found[rule] = _entropy_fraction(_multiplied(shifted[how], factors), 1.0, c.sink)
        else:
            found[rule] = _entropy_fraction(shifted[how], factors.item(), c.sink)
    return found


def _multiplied(shifted: ShiftedRows, factors: FloatArray) -> ShiftedRows:
    """Return the rows of scores times a factor for each row (rows, 1)."""
    factors = factors.astype(shifted.below.dtype)
    below = shifted.below * factors
    return shifted._replace(below=below, largest=shifted.largest * factors[:, 0], smallest=below.min(axis=1))


def _entropy_fraction(shifted: ShiftedRows, c: float, sink: float | None) -> float:
    """Return the mean of H / ln(visible keys) over rows with several visible keys; logits are c times `shifted`."""
    visible, several = shifted.visible, shifted.visible > 1
    if not several.any():
        return math.nan
    above = None if sink is None else sink - c * shifted.largest.astype(np.float64)
    rows = row_statistics(row_sums(logits_below(shifted, c), shifted), visible, above)
    return float((rows.entropy[several] / np.log(visible[several])).mean())


def _rounded_entropy_fraction(weights: FloatArray, unseen: BoolArray | None) -> float:
    """Return the same from weights (rows, n) in a rounded format; NaN rows are left out."""
    visible = np.full(len(weights), weights.shape[1]) if unseen is None else np.count_nonzero(~unseen, axis=1)
    several = (visible > 1) & ~np.isnan(weights[:, 0])
    if not several.any():
        return math.nan
    rows = weight_statistics(weights[several], visible[several], None if unseen is None else unseen[several])
    return float((rows.entropy / np.log(visible[several])).mean())
