"""Scale rules: the number that scores are multiplied by before softmax.

Never the divisor: "÷ √d_k" and "× 1/√d_k" are the same rule, and only the multiplier is ever shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..parameters import ParameterError, ScaleName


@dataclass(frozen=True)
class ScaleRule:
    """One rule: its formula as shown to people, its multiplier, who uses it and where that is written."""

    name: ScaleName
    formula: str
    multiplier: Callable[[int, float], float]  # (d_k, the custom multiplier) -> multiplier
    used_by: str
    source: str


def multiplier(name: str, d_k: int, custom: float = 1.0) -> float:
    """The multiplier of a rule at a width; raises ParameterError where the rule has none."""
    try:
        return SCALE_RULES[name].multiplier(d_k, custom)
    except ZeroDivisionError:
        raise ParameterError(
            f"scale {SCALE_RULES[name].formula} has no value at d_k = {d_k}; choose another"
        ) from None


_RULES = (
    ScaleRule(
        "none", "1", lambda d_k, custom: 1.0,
        "T5 and mT5, whose queries are initialised small instead; GPT-Neo",
        "Raffel et al. 2020, arXiv 1910.10683",
    ),
    ScaleRule(
        "sqrt_d_k", "1/√d_k", lambda d_k, custom: 1 / math.sqrt(d_k),
        "almost every transformer; the default of PyTorch's scaled_dot_product_attention",
        "Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1",
    ),
    ScaleRule(
        "d_k", "1/d_k", lambda d_k, custom: 1 / d_k,
        "muP in its spectral variant; Granite's attention_multiplier",
        "Yang et al. 2022, arXiv 2203.03466",
    ),
    ScaleRule(
        "log_d_k", "1/ln d_k", lambda d_k, custom: 1 / math.log(d_k),
        "no model we know: a question that interviews ask",
        "study notes",
    ),
    ScaleRule(
        "two_sqrt_d_k", "1/(2√d_k)", lambda d_k, custom: 1 / (2 * math.sqrt(d_k)),
        "no model we know: a question that interviews ask",
        "study notes",
    ),
    ScaleRule("custom", "custom", lambda d_k, custom: custom, "yours", "the multiplier you give"),
)  # fmt: skip

SCALE_RULES: dict[str, ScaleRule] = {rule.name: rule for rule in _RULES}
