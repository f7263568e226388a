"""Mechanisms over d_k: what each makes of the same queries and keys, and how large its scores can become.

Each stands under the rule that it is used with: the dot product unscaled and scaled, the bilinear one scaled,
additive and cosine attention as they are. None has a soft-cap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..attention.scores import score_bound
from ..parameters import MechanismName, Parameters, ScaleName
from ..statistics.measurement import Column, Estimate
from . import experiment
from .sampling import Draws
from .scoring import weights_of

COMPARED: tuple[tuple[MechanismName, ScaleName], ...] = (
    ("dot_product", "none"),
    ("dot_product", "sqrt_d_k"),
    ("bilinear", "sqrt_d_k"),
    ("additive", "none"),
    ("cosine", "none"),
)
D_KS = (16, 32, 64, 128, 256, 512, 1024)
MEASURED = ("logit_std", "entropy_fraction", "max_weight")  # what is compared


@dataclass(frozen=True, eq=False)
class Row:
    """One mechanism at one d_k."""

    mechanism: MechanismName
    rule: ScaleName
    multiplier: float
    d_k: int
    measured: Mapping[str, Estimate]  # by the names of MEASURED
    largest: float | None  # the largest |score| that was drawn; None where no pair is visible
    bound: float | None  # what |score| never exceeds; None where nothing holds it


@dataclass(frozen=True, eq=False)
class Step:
    """How far the comparison is, and the row that is new."""

    fraction: float
    row: Row | None = None


def stream(parameters: Parameters) -> Iterator[Step]:
    """A row for each mechanism at each d_k, d_k by d_k; the last step has fraction 1.

    Of the parameters, d_k, mechanism, scale rule and soft-cap make no difference: all others do.
    """
    p = replace(parameters, softcap=0.0)
    draws = Draws()
    work = [(d_k, *compared) for d_k in D_KS for compared in COMPARED]
    costs = [d_k * (8 if mechanism == "additive" else 1) for d_k, mechanism, _ in work]
    for number, (d_k, mechanism, rule) in enumerate(work):
        asked = replace(p, d_k=d_k, mechanism=mechanism, scale=rule)
        for step in experiment.stream(asked, draws, full=False, names=[rule]):
            done = (sum(costs[:number]) + step.fraction * costs[number]) / sum(costs)
            found = step.measurement() if step.fraction == 1 else None
            yield Step(1.0 if found and number == len(work) - 1 else done, found and _row(asked, found.columns[0]))


def _row(p: Parameters, column: Column) -> Row:
    found = column.measured
    ends = [found[name].value for name in ("logit_min", "logit_max")]
    largest = max((abs(end) for end in ends if end is not None), default=None)
    bound = score_bound(p.mechanism, weights_of(p))
    return Row(
        p.mechanism,
        p.scale,
        column.multiplier,
        p.d_k,
        {name: found[name] for name in MEASURED},
        largest=None if largest is None else largest / column.multiplier,
        bound=bound if math.isfinite(bound) else None,
    )
