"""Factors inside q and k: what is told is the whole product, and its cause."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import Evidence, Kind, StatedFacts, Subject
from attn_tui.core.diagnosis.verdict import diagnose
from cases import for_each

D_K, TOKENS = 32, 48
ROOT = D_K**-0.5


def found(of_q: float, of_k: float, multiplier: float, kind: Kind = "lse", recorded: bool = False) -> Verdict:
    """The verdict on a head whose q and k carry factors; the file or, of a `recorded` one, nothing says 1/√d_k."""
    rng = np.random.default_rng(2)
    q, k, v = rng.standard_normal((3, 1, TOKENS, D_K))
    q, k = q * of_q, k * of_k
    z = multiplier * q @ k.mT
    lse = np.log(np.exp(z).sum(axis=-1))
    p = np.exp(z - lse[..., None])
    values = {"lse": lse, "weights": p, "o": p @ v}[kind].astype(np.float32).astype(np.float64)
    evidence = Evidence(kind, values, "float32", v if kind == "o" else None)
    facts = StatedFacts(D_K, prescaled=of_q * of_k, inside=(of_q, of_k), heads=4, n_heads=4, d_model=4 * D_K)
    scale = multiplier if recorded else ROOT / (of_q * of_k)
    facts = replace(facts, scale=scale, observed=recorded)
    return diagnose(Subject(q, k, "float64", facts, (evidence,), np.arange(TOKENS, dtype=np.intp)))


@for_each(
    ("of_q", "of_k", "multiplier", "cause", "whole"),
    [
        (1.2, 1.2, ROOT, "prescale-extra", 1.44 * ROOT),
        (0.5, 1.0, ROOT, "prescale-extra", 0.5 * ROOT),
        (1.2, 1.0, ROOT, "prescale-extra", 1.2 * ROOT),
        (math.sqrt(D_K), 1.0, ROOT, "scale-missing", 1.0),
        (ROOT, 1.0, ROOT, "scale-twice", 1 / D_K),
        (D_K**-0.25, D_K**-0.25, ROOT, "scale-twice", 1 / D_K),
        (D_K**-0.25, 1.0, ROOT, "scale-twice", D_K**-0.75),
    ],
)
@pytest.mark.parametrize("kind", ["lse", "weights", "o"])
def test_a_factor_inside_is_told_with_the_whole_product(
    of_q: float, of_k: float, multiplier: float, cause: str, whole: float, kind: Kind
) -> None:
    verdict = found(of_q, of_k, multiplier, kind)
    assert verdict.cause == cause
    assert f"{whole:.4g}" in str(verdict.says)
    assert ("scale-twice" in (verdict.cause, *verdict.also)) == (cause == "scale-twice")


def test_what_q_and_k_carry_is_said() -> None:
    assert "q and k carry × 1.2 each" in str(found(1.2, 1.2, ROOT).says)
    assert "q carries × 0.5" in str(found(0.5, 1.0, ROOT).says)
    assert "k carries × 1.2" in str(found(1.0, 1.2, ROOT).says)


def test_a_recorded_factor_that_is_not_the_scale_accuses_nobody() -> None:
    """As in nanochat, which multiplies q and k by 1.2 each."""
    verdict = found(1.2, 1.2, ROOT, recorded=True)
    assert verdict.word == "undecided"
    assert verdict.also[0] == "prescale-extra"
    assert f"× {1.44 * ROOT:.4g}" in str(verdict.says)
    assert "twice" not in str(verdict.says)


def test_the_cause_that_explains_most_layers_comes_first() -> None:
    """Scores of every layer are divided by layer + 1: by 2, which is 1/√d_model here, by 3, and by 4, the scale."""
    rng = np.random.default_rng(3)
    q, k = rng.standard_normal((2, 1, TOKENS, 16))
    wholes = [0.25 / (layer + 1) for layer in range(4)]
    for layer in range(1, 4):
        lse = np.log(np.exp(wholes[layer] * q @ k.mT).sum(axis=-1))
        others = tuple((each, wholes[each]) for each in range(4) if each != layer)
        facts = StatedFacts(
            16, scale=wholes[layer], observed=True, layer=layer, heads=4, n_heads=4, d_model=64, others=others
        )
        evidence = Evidence("lse", lse, "float32")
        subject = Subject(q, k, "float64", facts, (evidence,), np.arange(TOKENS, dtype=np.intp))
        assert diagnose(subject).also[0] == "scale-layer"
        alone = replace(subject, facts=replace(facts, others=()))
        assert layer == 2 or diagnose(alone).also[0] != "scale-layer"
