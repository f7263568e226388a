"""A measurement is the same in float32 and in float64, and with components kept or drawn again."""

from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab import scoring
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import Parameters
from measurements import CHANGES, assert_same, cut_into_blocks

SMALL = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4)
MEDIUM = Parameters(n_keys=48, n_queries=40, batch=4)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_float32_agrees_with_float64(change: dict[str, Any]) -> None:
    p = replace(MEDIUM, **change)
    assert_same(run(p), run(replace(p, precision="float64")))


@pytest.mark.parametrize("change", [{}, {"mask": "causal"}, {"sink": "logit", "mean_k": 1.0}, {"d_v": 7}], ids=str)
def test_gradients_agree_in_float32_and_float64_and_if_components_are_made_again(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    p = replace(MEDIUM, d_k=32, **change)
    exact, kept = run(replace(p, precision="float64")), run(p)
    monkeypatch.setattr(scoring, "KEPT", 0)
    for other in (kept, run(p)):
        for one, two in zip(other.columns, exact.columns, strict=True):
            for name in ("grad_q_median", "grad_q_mean", "grad_q_rms", "grad_q_top1_share"):
                assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-3), name


@pytest.mark.parametrize(
    "change", [{"n_keys": 1024, "n_queries": 1024}, {"n_keys": 8192, "n_queries": 64, "d_k": 1}], ids=str
)
def test_heavy_tails_lose_no_digits_in_float32(change: dict[str, Any]) -> None:
    p = Parameters(components="student_t", degrees_of_freedom=3, batch=4, **change)
    for one, two in zip(run(p).columns, run(replace(p, precision="float64")).columns, strict=True):
        for name in ("logit_excess_kurtosis", "logit_variance", "logit_variance_within_row"):
            assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-4), name


@pytest.mark.parametrize("side", ["k", "q"])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_nearly_equal_scores_of_a_row_keep_their_differences(side: str, correlation: float) -> None:
    """The scores lie near 19 200 and differ by 0.0024 within a row, one part in eight million."""
    p = Parameters(mean_q=3.0, mean_k=100.0, correlation=correlation, batch=4).with_value(f"std_{side}", 1e-4)
    for one, two in zip(run(p).columns, run(replace(p, precision="float64")).columns, strict=True):
        for name in ("logit_variance_within_row", "logit_variance", "logit_std"):
            assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-4), name
        for name in ("entropy", "jacobian_norm"):
            assert one.measured[name].value == pytest.approx(two.measured[name].value, rel=1e-4), name
        visible = [1 - (column.measured["row_mean_share"].value or 0) for column in (one, two)]
        assert visible[0] == pytest.approx(visible[1], rel=1e-3)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"d_k": 600},
        {"correlation": -0.5, "mean_q": 2.0, "mean_k": -3.0, "std_q": 3.0, "d_k": 513},
        {"mask": "causal", "components": "laplace"},
        {"n_keys": 1, "n_queries": 1},
    ],
    ids=str,
)
def test_components_too_large_to_keep_give_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    p = replace(SMALL, **change)
    kept = run(p)
    monkeypatch.setattr(scoring, "KEPT", 0)
    assert_same(run(p), kept)
    cut_into_blocks(monkeypatch, 30)
    assert_same(run(p), kept)


def kept_bytes(draws: Draws) -> int:
    return sum(values.nbytes for values in vars(draws)["_sides"].values())


@pytest.mark.parametrize("components_that_fit", [4, 32, 128])
def test_components_that_are_kept_stay_within_the_limit(
    monkeypatch: pytest.MonkeyPatch, components_that_fit: int
) -> None:
    p = Parameters(n_queries=64, n_keys=64, batch=16)
    allowed = components_that_fit * 4 * p.batch * (p.n_queries + p.n_keys)
    monkeypatch.setattr(scoring, "KEPT", allowed)
    draws = Draws()
    for d_k in (1, 2, 4, 20, 32, 33, 64, 65, 128, 200):
        run(replace(p, d_k=d_k), draws)
        assert kept_bytes(draws) <= 2 * allowed, d_k  # twice, because memory doubles when it is full


def test_a_single_component_of_many_vectors_is_not_kept_in_whole_chunks() -> None:
    """One component of each vector takes 32 MiB here, the chunks of 64 that they come in take 2 GiB."""
    draws = Draws()
    next(stream(Parameters(d_k=1, n_queries=4096, n_keys=4096, batch=1024), draws))
    assert kept_bytes(draws) <= scoring.KEPT
