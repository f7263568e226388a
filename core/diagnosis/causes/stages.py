"""The stages of attention at which causes act and heads differ, in the order of computing."""

from __future__ import annotations

from typing import Literal, TypeAlias

StageName: TypeAlias = Literal[
    "qk", "multiplier", "softcap", "bias", "mask", "sink", "lse", "weights", "v", "o"
]  # fmt: skip
ORDER: tuple[StageName, ...] = ("qk", "multiplier", "softcap", "bias", "mask", "sink", "lse", "weights", "v", "o")
