"""A boolean mask that is added to the logits as 1 and 0 hides nothing: the file's bias says so by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.diagnosis.subject import Evidence, Subject
from attn_tui.core.diagnosis.verdict import diagnose
from injection import Array, case_of, random_head, subject_of

HEAD = random_head(32, 24, False)
PLACES = np.arange(24)
CAUSAL = (PLACES[:, None] >= PLACES).astype(float)
PADDING = np.broadcast_to((PLACES < 17).astype(float), (24, 24))


def subject(bias: Array, seen: Array | None = None) -> Subject:
    """A head whose file says this bias, and whose evidence has it."""
    case = case_of(HEAD, "float32")
    case.bias = case.used_bias = bias
    if seen is not None:
        case.seen = case.used_seen = seen
    return subject_of(case, "float32", "lse")


@pytest.mark.parametrize(
    "bias", [CAUSAL, 1 - CAUSAL, PADDING, 1 - PADDING], ids=["tril", "triu", "padding", "hidden"]
)
def test_a_mask_of_true_and_false_that_was_added_is_a_cause(bias: Array) -> None:
    found = diagnose(subject(bias))
    assert (found.word, found.cause) == ("cause", "mask-added")
    without = replace(subject(bias), evidence=())
    assert diagnose(without).cause == "mask-added"  # the file has it exactly


def test_other_biases_are_no_masks() -> None:
    rng = np.random.default_rng(0)
    random = (rng.random((24, 24)) < 0.5).astype(float)
    for bias in (random, 2 * CAUSAL, CAUSAL - 1, np.ones((24, 24)), np.zeros((24, 24)), 0.5 * PADDING):
        assert diagnose(subject(bias)).word == "healthy"


def test_a_mask_that_is_added_where_keys_are_hidden_as_well_changes_nothing() -> None:
    assert diagnose(subject(CAUSAL, CAUSAL > 0)).word == "healthy"


def test_a_scale_that_is_missing_is_found_beside_it() -> None:
    wrong = subject(CAUSAL)
    z = wrong.scores + CAUSAL
    evidence = Evidence("lse", np.log(np.exp(z).sum(axis=-1)), "float32")
    found = diagnose(replace(wrong, evidence=(evidence,)))
    assert {each.cause for each in found.findings} == {"scale-missing", "mask-added"}
