"""Entropy under every scale rule over d_k, on a sample of rows: what a sparkline beside each rule shows.

Measured rather than predicted, because no exact value is known for many of the rules: those that normalise q and k,
and all of them under other mechanisms, a soft-cap, a number format. Draws are nested, as everywhere: the curve at
one d_k uses the first d_k columns of the lab's own draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..attention.scales import SCALE_RULES, Normalise, Setting, multiplier
from ..attention.softmax import ShiftedRows, logits_below, row_statistics, row_sums, shift_rows, softcap
from ..parameters import Parameters
from .rule_rows import RULES, fault_of
from .sampling import chunks, components
from .scoring import dtype_of, sampled_rows, sides, sink_of, vectors_of, weights_of
from .surveyed import raw_scores

# The sample: scores at one d_k, of so many draws at most, and components that are drawn.
ENTRIES = 1 << 14
DRAWS = 4
COMPONENTS = 1 << 24
# Components of the keys of one draw that are held at once, which bounds d_k where keys are many.
HELD = 1 << 23
FIRST, LAST = 4, 4096  # d_k
LAST_LEARNED = 1024  # for mechanisms with weights of their own, which grow as d_k²


@dataclass(frozen=True, eq=False)
class Curves:
    """Entropy as a share of the largest possible, for each rule at each d_k; None where a rule has no multiplier."""

    d_ks: Sequence[int]
    draws: int  # behind each value
    rows: int  # of each draw
    values: Mapping[str, Sequence[float | None]]  # by rule


@dataclass(frozen=True, eq=False)
class Step:
    """How far the work is; the last one has the curves."""

    fraction: float
    curves: Curves | None = None


def grid(p: Parameters) -> tuple[int, ...]:
    """The powers of two from 4 to 4096, or to less where that would be too much to draw."""
    widest = LAST_LEARNED if p.mechanism in ("additive", "bilinear") else LAST
    widest = min(widest, max(HELD // p.n_keys, FIRST))
    return tuple(2**power for power in range(FIRST.bit_length() - 1, widest.bit_length()))


def stream(parameters: Parameters) -> Iterator[Step]:
    """The steps to the curves, none of them long; of all parameters, only d_k and the scale rule do not matter."""
    p = parameters
    d_ks = grid(p)
    many = min(max(COMPONENTS // (d_ks[-1] * (p.n_queries + p.n_keys)), 2), DRAWS, p.batch)
    chosen, unseen = sampled_rows(p, ENTRIES // many)
    sums = {rule: np.zeros(len(d_ks)) for rule in RULES}
    for draw in range(many):
        raw: list[FloatArray] = []
        for side in sides(p):
            kept = chosen if side == "query" else slice(None)
            made: list[FloatArray] = []
            for chunk in range(chunks(d_ks[-1])):
                made.append(components(p, side, draw, chunk)[:, kept].astype(dtype_of(p), copy=False))
                yield Step(draw / many)
            raw.append(np.concatenate(made)[np.newaxis])
        for at, d_k in enumerate(d_ks):
            asked = replace(p, d_k=d_k)
            for rule, entropy in _entropies(asked, [each[:, :d_k] for each in raw], unseen).items():
                sums[rule][at] += entropy / many
            yield Step((draw + (at + 1) / len(d_ks)) / many)
    values = {
        rule: tuple(
            None if fault_of(replace(p, d_k=d_k), rule) or math.isnan(value) else value
            for d_k, value in zip(d_ks, each.tolist(), strict=True)
        )
        for rule, each in sums.items()
    }
    yield Step(1.0, Curves(d_ks, many, len(chosen), values))


def _entropies(p: Parameters, raw: list[FloatArray], unseen: BoolArray | None) -> Mapping[str, float]:
    """The mean entropy fraction over the rows of one draw under each rule that has a multiplier; NaN for no row."""
    weights = weights_of(p)
    q, k = vectors_of(p, raw)
    sink = sink_of(p)
    made: dict[Normalise, FloatArray] = {}
    shifted: dict[Normalise, ShiftedRows] = {}  # of the scores themselves, where no soft-cap comes between
    found: dict[str, float] = {}
    for rule in RULES:
        if fault_of(p, rule):
            continue
        how, c = SCALE_RULES[rule].normalise, multiplier(rule, Setting.of(p))
        if how not in made:
            made[how] = raw_scores(p, q, k, how, weights)[0]
            if not p.softcap:
                shifted[how] = shift_rows(made[how], unseen)
        if p.softcap:
            logits = softcap(made[how] * made[how].dtype.type(c), p.softcap)
            found[rule] = _entropy_fraction(shift_rows(logits, unseen), 1.0, sink)
        else:
            found[rule] = _entropy_fraction(shifted[how], c, sink)
    return found


def _entropy_fraction(shifted: ShiftedRows, c: float, sink: float | None) -> float:
    """The mean over rows with several visible keys of H / ln(visible keys); logits are c times what was shifted."""
    visible = shifted.visible.astype(np.float64)
    several = visible > 1
    if not several.any():
        return math.nan
    above = None if sink is None else sink - c * shifted.largest.astype(np.float64)
    rows = row_statistics(row_sums(logits_below(shifted, c), shifted), visible, above)
    return float((rows.entropy[several] / np.log(visible[several])).mean())
