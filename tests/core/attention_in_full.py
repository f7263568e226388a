"""Attention written out with whole arrays in float64, to compare measured heads of captures with."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import Rule, file_rule, measure_head
from attn_tui.core.diagnosis.heads.rows import rough_statistics
from capture_files import Array

special = import_module("scipy.special")  # without type stubs


@dataclass(frozen=True)
class Expected:
    """The statistics of logits [batch, queries, keys], hidden where −∞, with a sink logit if there is one."""

    logits: Array
    sink: float | None = None
    left_out: Array | None = None  # [batch, queries] the rows of padding

    def statistics(self) -> dict[str, float]:
        logits = self.logits.astype(np.float64)
        visible = logits > -np.inf
        if self.left_out is not None:
            visible = visible & ~self.left_out[..., np.newaxis]
        rows = visible.any(axis=-1)
        beside = np.full((*logits.shape[:-1], 1), -np.inf if self.sink is None else self.sink)
        whole = np.concatenate([np.where(visible, logits, -np.inf), beside], axis=-1)[rows]
        weights = np.exp(whole - special.logsumexp(whole, axis=-1, keepdims=True))[:, :-1]
        seen = logits[visible]
        jacobian = np.einsum("ri,ij->rij", weights, np.eye(weights.shape[1])) - np.einsum(
            "ri,rj->rij", weights, weights
        )
        number = visible[rows].sum(axis=-1)
        several = number >= 2
        spread = np.sqrt(
            np.array([each[shown].var() for each, shown in zip(logits[rows], visible[rows], strict=True)])
        )
        first = weights[np.arange(len(weights)), visible[rows].argmax(axis=-1)]
        entropy = special.entr(weights).sum(axis=-1)
        return {
            "logit_mean": seen.mean(),
            "logit_variance": seen.var(),
            "logit_std": seen.std(),
            "saturation": (spread[several] / np.sqrt(2 * np.log(number[several]))).mean(),
            "first_key_weight": first.mean(),
            "first_key_over_uniform": first.mean() / (1 / number).mean(),
            "logit_min": seen.min(),
            "logit_max": seen.max(),
            "entropy": entropy.mean(),
            "entropy_fraction": (entropy[several] / np.log(number[several])).mean(),
            "max_weight": weights.max(axis=-1).mean(),
            "sum_squared_weights": (weights**2).sum(axis=-1).mean(),
            "jacobian_norm": np.sqrt((jacobian**2).sum(axis=(1, 2))).mean(),
            "one_hot_rows": (weights.max(axis=-1) > 0.95)[several].mean(),
            "dead_rows": (np.sqrt((jacobian**2).sum(axis=(1, 2))) < 0.01)[several].mean(),
        }


def assert_measured(
    capture: CaptureFile, head: int, expected: Expected, rule: Rule | None = None, rel: float = 1e-9
) -> None:
    """Compare a head under a rule, by default the file's scale, with what is expected; a first look at it, too."""
    found = capture.layers[0]
    several = [measure_head(capture, found, head, [rule or file_rule(found)]).columns[0].measured]
    if rule is None and found.batch <= 4:
        several.append(rough_statistics(capture, found, head, rows=found.queries))
    known = expected.statistics()
    for measured in several:
        found = np.array([measured[name].value for name in known], float)  # NaN where there is no value
        np.testing.assert_allclose(found, [*known.values()], rtol=rel, atol=1e-11, err_msg=" ".join(known))
