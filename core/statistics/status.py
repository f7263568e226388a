"""status: what the statistics of a head say, in one word.

The first line that applies decides:

- **NaN**: some rows are NaN.
- **uniform**: entropy is above 98 % of its maximum. With few keys, the first has much of the weight all the same.
- **sink**: the first key has more than 30 % of the weight, and more than twice that of a uniform row; or a sink logit
  has more than 30 %. Low entropy on the first key is not a look-up.
- **one-hot**: most rows put everything on one key. One key that stands out does so without a large σ.
- **frozen**: σ of a row's logits is at least √(2 ln n), where the random-energy model freezes.
- **freezing**: it is at least 1/√2 of that, where half of the entropy is lost to first order, H ≈ ln n − σ²/2. Or
  less than a third of the entropy is left; normal logits keep more up to √(2 ln n), for at most 8192 keys.
- **healthy**: everything else.

A large σ alone does not freeze: if half of the keys are far below the others, these share the weight. So rows whose
largest weight is at most 20 % are neither frozen nor freezing; that of normal logits is at least 23 % at √(2 ln n),
for at most 8192 keys.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from .catalogue import SINK, UNIFORM
from .measurement import Estimate

Status: TypeAlias = Literal["uniform", "healthy", "freezing", "frozen", "sink", "one-hot", "NaN"]

FROZEN = 1.0  # the freezing ratio from which softmax is frozen
FREEZING = math.sqrt(0.5)  # the freezing ratio from which it is freezing
BY_CHANCE = 2.0  # times its weight in a uniform row; the first key of a sink gets more
MOST = 0.5  # of the rows
GATHERED = 1 / 3  # of ln n: a smaller entropy is not healthy
SHARED = 0.2  # a largest weight of at most this is not freezing, whatever σ


def status(measured: Mapping[str, Estimate], exact_ratio: float | None = None) -> Status | None:
    """Return the status of rows with these statistics; None if no row sees two keys.

    `exact_ratio` is the freezing ratio of the logits' law where theory knows it; otherwise the measured one counts.
    """
    if _value(measured, "nan_rows"):
        return "NaN"
    entropy, one_hot, most = (
        _value(measured, "entropy_fraction"),
        _value(measured, "one_hot_rows"),
        _value(measured, "max_weight"),
    )
    ratio = _value(measured, "freezing_ratio") if exact_ratio is None else exact_ratio
    if entropy is None or one_hot is None or most is None or ratio is None:
        return None
    if entropy > UNIFORM:
        return "uniform"
    if is_sink(measured):
        return "sink"
    if one_hot > MOST:
        return "one-hot"
    if ratio >= FROZEN and most > SHARED:
        return "frozen"
    return "freezing" if entropy < GATHERED or (ratio >= FREEZING and most > SHARED) else "healthy"


def is_sink(measured: Mapping[str, Estimate]) -> bool:
    """Return whether the first key, or a sink logit, has much of the weight, and not by chance."""
    names = ("first_key_weight", "first_key_over_uniform", "sink_weight")
    first, over_uniform, sink = (_value(measured, name) or 0.0 for name in names)
    return (first > SINK and over_uniform > BY_CHANCE) or sink > SINK


def _value(measured: Mapping[str, Estimate], name: str) -> float | None:
    """Return a finite value; None if there is none."""
    value = measured[name].value if name in measured else None
    return value if value is not None and math.isfinite(value) else None
