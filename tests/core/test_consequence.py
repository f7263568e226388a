"""What a fault did to a head, beside its verdict: against the weights written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from attn_tui.core.diagnosis.verdict import diagnose
from injection import Array, Case, case_of, random_head, subject_of

HEAD = random_head(64, 96, True)


def weights(case: Case, multiplier: float, sink: float | None) -> Array:
    """The weights of all rows, and that of the sink as those of one more key."""
    logits = np.where(case.seen, multiplier * case.q @ case.k.T, -np.inf)
    beside = np.full((len(logits), 1), -np.inf if sink is None else sink)
    whole = np.concatenate([logits, beside], axis=1)
    powers = np.exp(whole - whole.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def entropy(p: Array) -> float:
    return float(-(p * np.log(np.where(p > 0, p, 1))).sum(axis=1).mean())


@pytest.mark.parametrize("sinks", [(None, None), (1.5, 1.5), (None, 1.5), (1.5, None)])
@pytest.mark.parametrize("multiplier", [1.0, 1 / 64])
def test_a_consequence_is_that_of_the_weights(multiplier: float, sinks: tuple[float | None, float | None]) -> None:
    case = case_of(HEAD, "float32")
    case.multiplier, case.sink = multiplier, sinks[0]
    case.say(sink=sinks[1])
    verdict = diagnose(subject_of(case, "float32", "weights"))
    found = verdict.consequence
    if sinks[0] != sinks[1] and found is None:
        return  # a fault of two causes need not be understood
    assert found is not None
    whole, expected = weights(case, multiplier, sinks[0]), weights(case, 1 / 8, sinks[1])
    p, r = whole[:, :-1], expected[:, :-1]
    assert found.entropy == pytest.approx(entropy(p), rel=1e-5)
    assert found.expected_entropy == pytest.approx(entropy(r), rel=1e-5)
    assert found.max_weight == pytest.approx(p.max(axis=1).mean(), rel=1e-5)
    assert found.expected_max_weight == pytest.approx(r.max(axis=1).mean(), rel=1e-5)
    assert found.changed_rows == np.mean(p.argmax(axis=1) != r.argmax(axis=1))
    if sinks[0] is None or sinks[1] is None:
        whole, expected = (each / each.sum(axis=1, keepdims=True) for each in (p, r))
    ratio = np.log(np.where(whole > 0, whole, 1)) - np.log(np.where(whole > 0, expected, 1))
    assert found.divergence == pytest.approx((whole * ratio).sum(axis=1).mean(), rel=1e-4)


def test_a_fault_that_moves_the_largest_weight_changes_rows() -> None:
    case = case_of(HEAD, "float32")
    case.used_seen = np.ones((96, 96), np.bool_)
    verdict = diagnose(subject_of(case, "float32", "weights"))
    assert verdict.cause == "causal-lost"
    assert verdict.consequence is not None
    logits = case.q @ case.k.T / 8
    first, now = (np.where(seen, logits, -math.inf).argmax(axis=1) for seen in (case.seen, case.used_seen))
    assert 0 < verdict.consequence.changed_rows == np.mean(first != now)
