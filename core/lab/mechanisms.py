"""Compare mechanisms over d_k on the same queries and keys: their statistics, and how large their scores can be.

Each is measured under the rule it is used with: the dot product unscaled and scaled, the bilinear one scaled,
additive and cosine attention unscaled. None has a soft-cap. The scaled dot product is measured once more with an
attention sink, a logit that belongs to no key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ..attention.scores import score_bound
from ..parameters import MechanismName, Parameters, ScaleName, SinkName
from ..statistics.measurement import Column
from . import experiment
from .results import MechanismRow, ProgressStep
from .scoring import last_draws, weights_of

# A mechanism, its scale rule, and whether it has a sink whatever the parameters say.
COMPARED: tuple[tuple[MechanismName, ScaleName, bool], ...] = (
    ("dot_product", "none", False),
    ("dot_product", "sqrt_d_k", False),
    ("dot_product", "sqrt_d_k", True),
    ("bilinear", "sqrt_d_k", False),
    ("additive", "none", False),
    ("cosine", "none", False),
)
D_KS = (16, 32, 64, 128, 256, 512, 1024)
MEASURED = ("logit_std", "entropy_fraction", "max_weight")  # the statistics compared
_ENDS = ("logit_min", "logit_max")


def measure(
    parameters: Parameters, d_k: int, compared: tuple[MechanismName, ScaleName, bool]
) -> Iterator[ProgressStep[MechanismRow]]:
    """Yield the steps of the measurement of one of COMPARED at a d_k, the last with its row."""
    mechanism, rule, with_sink = compared
    sink: SinkName = "logit" if with_sink else parameters.sink
    asked = replace(parameters, d_k=d_k, mechanism=mechanism, scale=rule, sink=sink, softcap=0.0)
    draws = last_draws(parameters)
    for step in experiment.stream(asked, draws, (*MEASURED, *_ENDS), names=[rule], histograms=()):
        measurement = step.measurement() if step.fraction == 1 else None
        yield ProgressStep(step.fraction, (_row(asked, measurement.columns[0], with_sink),) if measurement else ())


def _row(p: Parameters, column: Column, with_sink: bool) -> MechanismRow:
    measured = column.measured
    ends = [measured[name].value for name in _ENDS]
    largest = max((abs(end) for end in ends if end is not None), default=None)
    bound = score_bound(p.mechanism, weights_of(p))
    return MechanismRow(
        p.mechanism,
        p.scale,
        column.multiplier,
        p.d_k,
        {name: measured[name] for name in MEASURED},
        largest=None if largest is None else largest / column.multiplier,
        bound=bound if math.isfinite(bound) else None,
        with_sink=with_sink,
    )
