"""The stages of attention at which causes act and heads differ, in the order of computing, and the words for them."""

from __future__ import annotations

from typing import Literal, TypeAlias

StageName: TypeAlias = Literal[
    "qk", "multiplier", "softcap", "bias", "mask", "sink", "lse", "weights", "v", "o"
]  # fmt: skip
STAGES: dict[StageName, str] = {
    "qk": "q·kᵀ",
    "multiplier": "multiplier",
    "softcap": "soft-cap",
    "bias": "bias",
    "mask": "mask",
    "sink": "sink",
    "lse": "log-sum-exp",
    "weights": "weights",
    "v": "values",
    "o": "output",
}
ORDER: tuple[StageName, ...] = tuple(STAGES)
