"""A linear bias of distances or of columns: softmax ignores the difference, and the log-sum-exp does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from attn_tui.core.diagnosis.judgement.conventions import of_other_offsets
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import Evidence
from attn_tui.core.diagnosis.verdict import diagnose
from cases import for_each, present
from injection import Array, case_of, random_head, subject_of

HEAD = random_head(16, 40, True)
COLUMNS = np.broadcast_to(np.arange(40.0), (40, 40))
DISTANCES = COLUMNS - np.arange(40.0)[:, None]  # −(query − key)


def verdict(said: Array, done: Array, multiplier: float = 0.25) -> Verdict:
    case = case_of(HEAD, "float32")
    case.bias, case.used_bias, case.multiplier = said, done, multiplier
    return diagnose(subject_of(case, "float32", "lse"))


@pytest.mark.parametrize("slope", [0.5, 2**-8])
@pytest.mark.parametrize(("said", "done"), [(DISTANCES, COLUMNS), (COLUMNS, DISTANCES)])
def test_both_conventions_of_alibi_are_healthy(slope: float, said: Array, done: Array) -> None:
    assert verdict(slope * said, slope * done).word == "healthy"


@for_each("tokens", [200, 500])
@for_each("slope", [0.3, 0.0131])
def test_a_bias_that_was_rounded_to_float32_is_linear_however_long_it_is(tokens: int, slope: float) -> None:
    """Steps between distant keys then differ by more than a millionth, unless the slope is a power of two."""
    columns = np.broadcast_to(np.arange(tokens, dtype=np.float32), (tokens, tokens))
    both = [np.float32(slope) * each for each in (columns - columns.T, columns)]
    case = case_of(random_head(16, tokens, True), "float32")
    for case.bias, case.used_bias in (both, both[::-1]):
        found = diagnose(subject_of(case, "float32", "lse"))
        assert (found.word, found.multiplier) == ("healthy", pytest.approx(0.25, rel=1e-4))


def others(said: Array | None, keys: int = 40) -> list[Array]:
    """The biases of the other conventions of the first keys of a head."""
    subject = subject_of(case_of(HEAD, "float32"), "float32", "lse")
    seen = None if subject.seen is None else subject.seen[..., :keys]
    bias = None if said is None else said[np.newaxis, :, :keys]
    found = of_other_offsets(replace(subject, k=subject.k[:, :keys], seen=seen, bias=bias))
    return [present(each.bias)[0] for each in found]


@for_each("slope", [0.5, -2.0])
def test_the_other_offsets_of_a_bias_are_those_of_distances_and_of_columns(slope: float) -> None:
    distances, columns = slope * DISTANCES, slope * COLUMNS
    for said, expected in ((distances, [columns]), (columns, [distances]), (columns + 3, [columns, distances])):
        np.testing.assert_allclose(others(said), expected, atol=1e-9)
    for said in (None, 0 * COLUMNS, COLUMNS**2, DISTANCES * np.arange(40.0)[:, np.newaxis]):
        assert others(said) == []
    assert others(columns, keys=1) == []


def test_a_scale_that_is_missing_is_found_in_the_other_convention() -> None:
    found = verdict(0.25 * DISTANCES, 0.25 * COLUMNS, 1.0)
    assert found.cause == "scale-missing"
    assert found.multiplier == pytest.approx(1.0, rel=1e-4)


def test_another_slope_is_no_convention() -> None:
    assert verdict(0.25 * DISTANCES, 0.5 * DISTANCES).word == "cause"


@pytest.mark.parametrize("values", [0.0, 1.0])
def test_outputs_of_zeros_are_said_to_be_zeros(values: float) -> None:
    """As of a cache whose scale was never set."""
    subject = subject_of(case_of(HEAD, "float32"), "float32", "o")
    [o] = subject.evidence
    assert o.v is not None
    zero = replace(o, values=np.zeros_like(o.values), v=values * o.v)
    found = diagnose(replace(subject, evidence=(zero,)))
    assert (found.word, found.cause) == (("cause", "outputs-scaled") if values else ("undecided", None))
    assert "are all 0" in str(found.says) or "all values are 0" in str(found.says)


def test_keys_of_zeros_are_said_first() -> None:
    subject = subject_of(case_of(HEAD, "float32"), "float32", "o")
    found = diagnose(replace(subject, k=np.zeros_like(subject.k)))
    assert found.word == "undecided"
    assert "all keys are 0" in str(found.says)


def test_one_output_for_all_queries_is_explained_by_no_cause() -> None:
    subject = subject_of(case_of(HEAD, "float32"), "float32", "o")
    [o] = subject.evidence
    same = np.broadcast_to(o.values[:, -1:], o.values.shape)
    found = diagnose(replace(subject, evidence=(Evidence("o", same, o.format, o.v, o.v_format),)))
    assert (found.word, found.cause) == ("unexplained", None)
    assert "same output" in str(found.says)
