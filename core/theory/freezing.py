"""Find where softmax freezes: the widths at which a few keys hold all the weight of a row."""

from __future__ import annotations

import bisect
import math
from dataclasses import replace

from ..errors import ParameterError
from ..parameters import FIELD, Parameters, ScaleName
from ..scales import SCALE_RULES, multiplier
from .prediction import Freezing
from .score_moments import score_moments

_MONOTONE = 8  # √d_k/ln d_k falls to d_k = e² and rises after it


def freezing(parameters: Parameters, rule: ScaleName) -> Freezing:
    """Return where softmax freezes under a rule, the other parameters as given.

    Raise ParameterError if the rule has no multiplier at this d_k, and ValueError if it normalises q and k, because
    score moments are known only for q and k as drawn.
    """
    p = parameters
    if SCALE_RULES[rule].normalise != "none":
        raise ValueError(f"the scores of normalised q and k are not known: {rule}")
    setting = p.setting
    threshold = math.sqrt(2 * math.log(p.n_keys))
    # The score's standard deviation within a row grows like √d_k.
    component = math.sqrt(score_moments(p).variance_within_row / p.d_k)

    def std(d_k: int) -> float:
        return multiplier(rule, replace(setting, d_k=d_k)) * component * math.sqrt(d_k)

    def frozen(d_k: int) -> bool:
        try:
            return std(d_k) >= threshold
        except ParameterError:  # 1/ln d_k at 1
            return False

    widest = int(FIELD["d_k"].high)
    first = None
    if p.n_keys > 1 and frozen(widest):
        # From _MONOTONE on, the standard deviation is monotonic (see ScaleRule).
        first = _MONOTONE + bisect.bisect_left(range(_MONOTONE, widest), True, key=frozen)
        while first > 1 and frozen(first - 1):
            first -= 1
    return Freezing(threshold, std(p.d_k), first)
