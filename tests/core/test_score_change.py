"""How far apart the scores of a head in two captures are, in units of what rounding leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.diagnosis.comparing.compare import compare
from attn_tui.core.diagnosis.comparing.score_change import limit, score_change
from attn_tui.core.diagnosis.subject import StatedFacts, Subject
from pairs import Layer, changed, recipe, written

ROWS, KEYS, D_K = 12, 20, 16
rng = np.random.default_rng(3)
Q, K = rng.normal(size=(1, ROWS, D_K)), rng.normal(size=(1, KEYS, D_K))
HEAD = Subject(Q, K, "float32", StatedFacts(D_K), (), np.arange(ROWS))


def test_a_factor_enlarges_the_rounding_of_the_reference() -> None:
    """Scores of bfloat16 numbers, and those 64 times as large of exact ones, differ by 64 times the rounding."""
    q, k = (each.astype(ml_dtypes.bfloat16).astype(np.float64) for each in (Q, K))
    reference = replace(HEAD, q=q, k=k, format="bfloat16")
    found = score_change(reference, replace(HEAD, q=64 * Q), limit(True))
    assert abs(found.factor - 64) < 0.5
    assert 0.3 < found.change < 3


def test_scores_that_only_one_of_two_masks_shows_are_compared() -> None:
    moved = K.copy()
    moved[:, 5] += 1
    seen = np.ones((1, ROWS, KEYS), np.bool_)
    seen[..., 5] = False
    masked, other = replace(HEAD, seen=seen), replace(HEAD, k=moved)
    assert score_change(masked, other, limit(True)).change > limit(True)
    assert score_change(other, masked, limit(True)).change > limit(True)
    assert score_change(masked, replace(other, seen=seen), limit(True)).change == 0


HIDDEN = np.zeros((1, ROWS, KEYS), np.bool_)


@pytest.mark.parametrize(
    ("one", "other", "change", "factor", "correlation"),
    [
        (HEAD, HEAD, 0, 1, 1), (HEAD, replace(HEAD, k=-K), math.inf, 1, -1),
        (replace(HEAD, q=0 * Q), replace(HEAD, q=0 * Q), 0, 1, 1), (replace(HEAD, q=0 * Q), HEAD, math.inf, 1, 1),
        (HEAD, replace(HEAD, q=0 * Q), math.inf, 1, 1),
        (replace(HEAD, seen=HIDDEN), replace(HEAD, q=2 * Q, seen=HIDDEN), 0, 1, 1),
    ],
)  # fmt: skip
def test_scores_that_are_all_0_or_hidden_have_no_factor(
    one: Subject, other: Subject, change: float, factor: float, correlation: float
) -> None:
    found = score_change(one, other, limit(True))
    assert (found.factor, found.correlation) == pytest.approx((factor, correlation))
    assert found.change == 0 if change == 0 else found.change > limit(True)


def test_the_noise_of_alike_texts_is_that_of_one() -> None:
    three = replace(HEAD, q=np.repeat(Q, 3, axis=0), k=np.repeat(K, 3, axis=0))
    alone, together = (score_change(each, replace(each, k=-each.k), limit(True)).change for each in (HEAD, three))
    assert together == pytest.approx(alone)


def test_later_layers_may_differ_by_more() -> None:
    assert limit(False) > limit(True)


def test_a_negative_correlation_has_a_minus_sign(tmp_path: Path) -> None:
    one = recipe()

    def turn(layer: Layer) -> None:
        layer.q = np.random.default_rng(8).standard_normal(layer.q.shape).astype(layer.q.dtype) - layer.q

    found = compare(
        written(one, tmp_path / "one.safetensors"), written(changed(one, turn), tmp_path / "other.safetensors")
    )
    said = " ".join(stage.says for each in found.heads for stage in each.stages)
    assert ", correlation −0." in said
    assert "correlation -" not in said
