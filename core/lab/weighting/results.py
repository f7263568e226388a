"""WEIGHTINGS: the one declaration of each weighting that is compared; its results. NumPy is not needed here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ...statistics.catalogue import ONE_HOT
from ...statistics.measurement import Estimate

GATE = 1 / (1 + math.exp(-2))  # the constant gate f of forgetting attention, σ(2): models compute one from each token
CLIP = 100.0  # τ of QK-Clip, as for Kimi K2

# What is measured of the weights p of a row, with its definition.
MEASURES: dict[str, str] = {
    "weight_sum": "Σp",
    "entropy": "entropy of p/Σp in nats, where Σp is above 0",
    "max_weight": "max p",
    "zero_weights": "share of visible keys with weight exactly 0",
    "one_hot_rows": f"share of rows, of those that see two keys or more, with max p above {ONE_HOT}",
    "jacobian_norm": "‖∂p/∂z‖_F with respect to the scaled logits z",
}
_SUMMED = ("weight_sum", "entropy", "max_weight", "jacobian_norm")
_SIGNED = ("weight_sum", "max_weight", "jacobian_norm")
_SOFT = (*_SUMMED, "one_hot_rows")

# The parameters that the comparison ignores: logits are dot products in float32 without a soft-cap.
NOT_OF_WEIGHTINGS = (
    "against",
    "mechanism",
    "gain",
    "softcap",
    "sink",
    "sink_logit",
    "precision",
    "arithmetic",
    "d_v",
)


@dataclass(frozen=True)
class Weighting:
    """One weighting: its names, its formula for logits z, which of MEASURES exist, and its source."""

    name: str
    label: str  # at most 18 characters
    formula: str
    measures: tuple[str, ...]
    source: str
    setting: str = ""  # the symbol of its constant, if it has one


WEIGHTINGS: dict[str, Weighting] = {
    each.name: each
    for each in (
        Weighting("softmax", "softmax", "e^z / Σe^z", _SOFT, "Vaswani et al. 2017, arXiv 1706.03762"),
        Weighting(
            "softmax_sink", "softmax and sink", "e^z / (1 + Σe^z)", _SOFT,
            "Miller 2023, Attention Is Off By One; gpt-oss, with a learned logit", "sink logit",
        ),
        Weighting(
            "sigmoid", "sigmoid", "σ(z + b), b = −ln n", _SUMMED, "Ramapuram et al. 2024, arXiv 2409.04431", "b",
        ),
        Weighting(
            "entmax_15", "entmax-1.5", "max(z/2 − τ, 0)², Σp = 1", tuple(MEASURES),
            "Peters et al. 2019, arXiv 1905.05702",
        ),
        Weighting(
            "sparsemax", "sparsemax", "max(z − τ, 0), Σp = 1", tuple(MEASURES),
            "Martins & Astudillo 2016, arXiv 1602.02068",
        ),
        Weighting(
            "differential", "differential", "softmax(z₁) − λ softmax(z₂)", _SIGNED,
            "Ye et al. 2024, arXiv 2410.05258", "λ",
        ),
        Weighting(
            "forgetting", "forgetting", "softmax(z + Σ ln f)", _SOFT, "Lin et al. 2025, arXiv 2503.02130", "f",
        ),
        Weighting(
            "qk_clip", "QK-Clip", "softmax(γ·z), γ = min(1, τ/max z), τ = 100", _SOFT,
            "Kimi K2, arXiv 2507.20534", "γ",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class WeightingRow:
    """The measurement of one weighting, or the reason why it does not exist."""

    name: str  # of WEIGHTINGS
    setting: float | None  # its constant, the mean over draws for QK-Clip
    measured: Mapping[str, Estimate]  # by the names of MEASURES; empty if it does not exist
    draws: int  # behind each value
    rows: int  # of each draw
    fault: str = ""

    def estimate(self, name: str) -> Estimate:
        """Return an estimate, without a value if it was not measured."""
        return self.measured.get(name, Estimate(None, None))
