"""status: what the statistics of a head say, in one word.

The order of the words: NaN rows have no other statistics. Uniform comes before sink, because with few keys the first
has much of the weight all the same; sink before one-hot, because low entropy on the first key is not a look-up; and
one-hot before saturated, because one key that stands out does so without a large σ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

from .catalogue import ONE_HOT, SINK, UNIFORM
from .measurement import Estimate

Status: TypeAlias = Literal["uniform", "healthy", "saturating", "saturated", "sink", "one-hot", "NaN"]

# The saturation, σ over √(2 ln n), from which softmax is saturated in the random-energy model.
SATURATED = 1.0
# The ratio from which it is saturating: to first order H = ln n − σ²/2, so half of the entropy is lost.
SATURATING = math.sqrt(0.5)
# A large σ alone does not saturate: if half of the keys are far below the others, these share the weight. So the
# largest weight must be above this; that of normal logits is at least 23 % at √(2 ln n), for at most 8192 keys.
GATHERED = 0.2
# The share of ln n below which entropy is not healthy whatever σ; normal logits keep as much up to √(2 ln n).
LOST = 1 / 3
# The first key of a sink has more than this many times its weight in a uniform row.
BY_CHANCE = 2.0
MOST = 0.5  # of the rows

_MUCH, _FEW = f"{100 * SINK:.0f} %", f"{100 * GATHERED:.0f} %"
MEANINGS: dict[Status, str] = {
    "NaN": "some rows are NaN",
    "uniform": f"entropy is above {100 * UNIFORM:.0f} % of its maximum",
    "sink": f"the first key has more than {_MUCH} of the weight, and more than twice what it has in uniform rows; or "
    f"a sink logit has more than {_MUCH}",
    "one-hot": f"most rows have more than {100 * ONE_HOT:.0f} % of the weight on one key",
    "saturated": "σ of a row's logits is at least √(2 ln n), n being its visible keys, and the largest weight is "
    f"above {_FEW}",
    "saturating": f"σ is at least 1/√2 of that, and the largest weight is above {_FEW}; or entropy is below a third "
    "of its maximum",
    "healthy": "none of these",
}  # the first that applies is the status


def status(measured: Mapping[str, Estimate], exact_ratio: float | None = None) -> Status | None:
    """Return the status of rows with these statistics; None if no row sees two keys.

    `exact_ratio` is the saturation ratio of the logits' law where theory knows it; otherwise the measured one counts.
    """
    if _value(measured, "nan_rows"):
        return "NaN"
    entropy, one_hot, most = (
        _value(measured, "entropy_fraction"),
        _value(measured, "one_hot_rows"),
        _value(measured, "max_weight"),
    )
    ratio = _value(measured, "saturation") if exact_ratio is None else exact_ratio
    if entropy is None or one_hot is None or most is None or ratio is None:
        return None
    if entropy > UNIFORM:
        return "uniform"
    if is_sink(measured):
        return "sink"
    if one_hot > MOST:
        return "one-hot"
    if ratio >= SATURATED and most > GATHERED:
        return "saturated"
    return "saturating" if entropy < LOST or (ratio >= SATURATING and most > GATHERED) else "healthy"


def is_sink(measured: Mapping[str, Estimate]) -> bool:
    """Return whether the first key, or a sink logit, has much of the weight, and not by chance."""
    names = ("first_key_weight", "first_key_over_uniform", "sink_weight")
    first, over_uniform, sink = (_value(measured, name) or 0.0 for name in names)
    return (first > SINK and over_uniform > BY_CHANCE) or sink > SINK


def _value(measured: Mapping[str, Estimate], name: str) -> float | None:
    """Return a finite value; None if there is none."""
    value = measured[name].value if name in measured else None
    return value if value is not None and math.isfinite(value) else None
