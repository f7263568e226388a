"""Scores whose format is too coarse for them change attention, though the scale is right."""

from __future__ import annotations

import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.diagnosis.subject import Evidence, StatedFacts, Subject
from attn_tui.core.diagnosis.verdict import diagnose

D_K, TOKENS = 64, 40


def subject(shift: float, scores: str | None, declared: str | None) -> Subject:
    """A head whose keys share a part along which all queries are long: scores are about shift² · d_k."""
    rng = np.random.default_rng(0)
    q, k = (shift + 0.3 * x for x in rng.standard_normal((2, 1, TOKENS, D_K)))
    q, k = (x.astype(ml_dtypes.bfloat16).astype(np.float64) for x in (q, k))
    s = q @ k.mT
    s = s.astype(ml_dtypes.bfloat16).astype(np.float64) if scores == "bfloat16" else s
    z = s * D_K**-0.5
    z = z.astype(ml_dtypes.bfloat16).astype(np.float64) if scores == "bfloat16" else z
    lse = np.log(np.exp(z - z.max(-1, keepdims=True)).sum(-1)) + z.max(-1)
    facts = StatedFacts(D_K, scale=D_K**-0.5, scores=declared)
    evidence = Evidence("lse", lse.astype(np.float32).astype(np.float64), "float32")
    return Subject(q, k, "bfloat16", facts, (evidence,), np.arange(TOKENS, dtype=np.intp))


def test_scores_in_steps_of_some_nats_are_a_cause_with_the_step_and_the_rows_that_change() -> None:
    found = diagnose(subject(8.0, "bfloat16", "bfloat16"))
    assert "coarse-scores" in {each.cause for each in found.findings}
    says = str(found.says)
    [step] = re.findall(r"steps of up to ([\d.]+) of logit", says)
    largest = float(np.abs(subject(8.0, None, None).scores).max())
    assert float(step) == pytest.approx(2.0 ** (np.floor(np.log2(largest)) - 7) / 8)
    [rows] = re.findall(r"in (\d+) % of rows", says)
    assert 0 < int(rows) <= 100


def test_the_same_scores_in_float32_and_small_scores_are_healthy() -> None:
    assert diagnose(subject(8.0, None, "float32")).word == "healthy"
    assert diagnose(subject(0.0, "bfloat16", "bfloat16")).word == "healthy"


def test_coarse_scores_need_no_evidence() -> None:
    """q, k and the format say it."""
    silent = replace(subject(8.0, "bfloat16", "bfloat16"), evidence=())
    assert diagnose(silent).cause == "coarse-scores"
