"""Heads with finite but extreme numbers: each has statistics that are right, or one line says why not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import LARGEST, SMALLEST, measure_head, named_rule
from attn_tui.core.statistics.measurement import Column
from capture_files import Array, opened
from cases import for_each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXTREMES = [1e308, -1e308, 1e200, 1e155, 1e77, 1e-77, 1e-155, 1e-200, 2.2e-308, 5e-324]


def vectors(seed: int = 0, heads: int = 1) -> Array:
    return np.random.default_rng(seed).normal(size=(2, heads, 5, 4))


def capture(folder: Path, q: Array, k: Array | None = None, **metadata: object) -> CaptureFile:
    return opened(folder, {"q": q, "k": vectors(1, q.shape[1]) if k is None else k}, **{"causal": "no", **metadata})


def measured(found: CaptureFile, rule: str = "file", head: int = 0) -> Column:
    return measure_head(found, found.layers[0], head, [named_rule(rule, found.layers[0])]).columns[0]


def refusal(found: CaptureFile, rule: str = "file", head: int = 0) -> str:
    with pytest.raises(CaptureError) as error:
        measured(found, rule, head)
    assert str(error.value).isprintable()
    return str(error.value)


def values(column: Column) -> dict[str, float]:
    """The statistics that are defined."""
    return {name: value for name, (value, _) in column.measured.items() if value is not None}


def assert_finite_or_refused(found: CaptureFile, rule: str = "file") -> None:
    try:
        column = measured(found, rule)
    except CaptureError as error:
        message = str(error)
    else:
        assert np.isfinite([*values(column).values()]).all()
        assert "max_weight" in values(column)
        assert np.isfinite(column.histograms["logits"].quantiles([0.0, 0.5, 1.0])).all()
        return
    assert "logits overflow float64" in message or "logits underflow float64" in message


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"scale": 1e308}, "overflow float64: the scale must be from 1e-50 to 1e+50, not 1e+308"),
        ({"scale": 5e-324}, "underflow float64: the scale must be from 1e-50 to 1e+50, not 4.94066e-324"),
        ({"scale": 0.5, "softcap": 1e308}, "overflow float64: the soft-cap must be"),
        ({"scale": 0.5, "softcap": 5e-324}, "underflow float64: the soft-cap must be"),
    ],
)
def test_an_extreme_scale_or_soft_cap_is_refused(tmp_path: Path, metadata: dict[str, Any], said: str) -> None:
    for q in (vectors(), np.zeros((2, 1, 5, 4))):
        message = refusal(capture(tmp_path, q, **metadata))
        assert f"opened.safetensors: layer 0, head 0: logits {said}" in message


@for_each("size", EXTREMES)
@for_each("softcap", [0, 5.0])
def test_extreme_queries_are_refused(tmp_path: Path, size: float, softcap: float) -> None:
    message = refusal(capture(tmp_path, np.sign(vectors()) * size, scale=0.5, softcap=softcap))
    fault = "overflow" if abs(size) > 1 else "underflow"
    assert f"logits {fault} float64: the largest score must" in message


def test_scores_of_opposite_infinities_are_refused(tmp_path: Path) -> None:
    q = np.full((1, 1, 2, 2), 1e308)
    assert "not inf" in refusal(capture(tmp_path, q, q * [1, -1], scale=1.0, softcap=30.0))


def test_logits_that_overflow_under_the_scale_are_refused(tmp_path: Path) -> None:
    found = capture(tmp_path, vectors() * 1e30, scale=1e30)
    assert "logits overflow float64: the largest logit must be from 1e-50 to 1e+50" in refusal(found)
    assert "logits underflow" in refusal(capture(tmp_path, vectors() * 1e-30, scale=1e-30))


def test_other_heads_of_the_file_keep_their_numbers(tmp_path: Path) -> None:
    q, k = vectors(heads=2), vectors(1, heads=2)
    expected = values(measured(capture(tmp_path, q, k, scale=0.5)))
    q[:, 1] *= 1e300
    found = capture(tmp_path, q, k, scale=0.5)
    assert values(measured(found)) == expected
    assert "layer 0, head 1: logits overflow float64" in refusal(found, head=1)


@for_each("rule", ["rms_sqrt_d_k", "layer_norm_sqrt_d_k", "cosine_10"])
@for_each("size", [1e300, 1e160, 1e-160, 1e-300])
def test_rules_that_normalise_do_not_depend_on_the_length_of_vectors(tmp_path: Path, rule: str, size: float) -> None:
    usual = values(measured(capture(tmp_path, vectors(), scale=0.5), rule))
    extreme = vectors() * 2.0 ** round(np.log2(size))
    assert values(measured(capture(tmp_path, extreme, scale=0.5), rule)) == usual


@for_each("softcap", [0, 3.0])
@for_each("power", [-160, -80, 80, 160])
def test_statistics_do_not_depend_on_the_unit_of_scores(tmp_path: Path, power: int, softcap: float) -> None:
    usual = capture(tmp_path, vectors(), scale=0.5, softcap=softcap)
    expected = measured(usual)
    found = measured(capture(tmp_path, vectors() * 2.0**power, scale=0.5 * 2.0**-power, softcap=softcap))
    assert values(found) == pytest.approx(values(expected), rel=1e-12)
    for name, histogram in expected.histograms.items():
        assert list(found.histograms[name].counts) == list(histogram.counts)


@for_each("size", [SMALLEST, 1e-20, 1e20, LARGEST])
@for_each("softcap", [0, 1e-50, 1e-20, 1.0, 1e20, 1e50])
def test_every_size_within_the_bounds_has_finite_numbers_or_a_line(
    tmp_path: Path, size: float, softcap: float
) -> None:
    q, k = vectors(), vectors(1)
    k *= size / np.abs(q @ k.mT).max()
    for scale in (SMALLEST, 1e-20, 1.0, 1e20, LARGEST):
        assert_finite_or_refused(capture(tmp_path, q, k, scale=scale, softcap=softcap))


@pytest.mark.parametrize("size", [1e300, 1e308])
def test_numbers_that_a_mask_hides_may_be_extreme(tmp_path: Path, size: float) -> None:
    q, k = vectors()[:, :, :3], vectors(1)
    tensors: dict[str, Array] = {"q": q, "k": k, "mask": np.arange(5) < 4}
    expected = values(measured(opened(tmp_path, tensors, causal="no", scale=0.5, softcap=1e-10)))
    k[:, :, 4] = size
    assert values(measured(opened(tmp_path, tensors, causal="no", scale=0.5, softcap=1e-10))) == expected


def test_lengths_beyond_the_tokens_are_refused(tmp_path: Path) -> None:
    [layer] = capture(tmp_path, vectors(), scale=0.5, lengths=[1, 10**40]).layers
    assert layer.refusal == "the metadata's lengths do not match 2 texts of 5 tokens"


numbers = st.sampled_from([*EXTREMES, 0.0, 1.0, -3.0, SMALLEST, LARGEST]) | st.floats(-1e308, 1e308)


@settings(max_examples=3 * settings().max_examples, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 79), numbers), max_size=6),
    numbers.map(abs),
    numbers.map(abs),
    st.sampled_from(["file", "none", "rms_none", "cosine_10"]),
)
def test_any_finite_numbers_are_measured_or_refused(
    tmp_path: Path, changes: list[tuple[int, float]], scale: float, softcap: float, rule: str
) -> None:
    """Warnings are errors in tests."""
    sides = np.concatenate([vectors().ravel(), vectors(1).ravel()])
    for place, value in changes:
        sides[place] = value
    q, k = sides.reshape(2, 2, 1, 5, 4)
    assert_finite_or_refused(capture(tmp_path, q, k, scale=scale or 1.0, softcap=softcap), rule)
