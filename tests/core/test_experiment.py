"""One measurement of the lab: its columns, smallest cases, seeds, steps, and the precision of its numbers."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.lab import one_pass, scoring
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import ComponentLaw, MaskName, Parameters
from attn_tui.core.scales import SCALE_RULES
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.catalogue import OF_FIRST_VIEW, OF_GRADIENTS, STATISTIC, STATISTICS
from attn_tui.core.statistics.measurement import HISTOGRAMS, NOTHING, Estimate
from cases import for_each, present
from hypothesis import example, given, settings
from hypothesis import strategies as st
from measurements import CHANGES, LAWS, SCALES, assert_same, cut_into_blocks, numbers

SMALL = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4)


def test_columns_are_the_unscaled_one_and_the_chosen_rule() -> None:
    for scale in SCALES:
        p = replace(SMALL, scale=scale, multiplier=0.3)
        measurement = run(p)
        assert measurement.subject == p
        assert measurement.complete
        assert measurement.draws == p.batch
        unscaled, scaled = measurement.columns
        how = [SCALE_RULES[column.rule].normalise for column in measurement.columns]
        assert (unscaled.multiplier, scaled.rule, how[0]) == (1, scale, how[1])
        for column in measurement.columns:
            assert list(column.measured) == [statistic.name for statistic in STATISTICS]
            assert list(column.histograms) == [*HISTOGRAMS, "gradient"]


@for_each("change", [{}, {"mask": "causal", "mean_k": 0.5}, {"precision": "bfloat16", "against": "softcap=20"}])
def test_a_statistic_is_the_same_whatever_others_are_measured(change: dict[str, Any]) -> None:
    p = replace(SMALL, **change)
    *_, last = stream(p, statistics=OF_FIRST_VIEW)
    for column, whole in zip(present(last.measurement()).columns, run(p, full=False).columns, strict=True):
        for name in STATISTIC:
            assert column.measured[name] == (whole.measured[name] if name in OF_FIRST_VIEW else NOTHING), name


def test_a_rule_without_a_multiplier_is_refused() -> None:
    with pytest.raises(ValueError, match="no value at d_k = 1"):
        run(replace(SMALL, d_k=1, scale="log_d_k"))


def test_a_causal_query_sees_the_keys_up_to_its_own() -> None:
    unscaled, _ = run(replace(SMALL, mask="causal")).columns
    visible = 4 * sum(range(1, 9))  # of 8 queries, in 4 draws; no query sees the last 4 of 12 keys
    assert unscaled.histograms["logits"].total == visible
    assert unscaled.histograms["weights"].total == visible


@for_each("correlation", [0.0, 0.5, -1.0])
@for_each("law", LAWS)
def test_the_axis_of_logits_holds_nearly_all_of_them(law: ComponentLaw, correlation: float) -> None:
    """Even if the law has no standard deviation to size the axis by."""
    p = replace(SMALL, d_k=64, components=law, degrees_of_freedom=3, correlation=correlation)
    for column in run(p).columns:
        logits = column.histograms["logits"]
        assert logits.underflow + logits.overflow < logits.total / 20


def test_logits_without_a_standard_deviation_have_the_axis_of_normal_ones() -> None:
    p = replace(SMALL, d_k=64, components="student_t", degrees_of_freedom=3, correlation=0.5, n_keys=256)
    unscaled, scaled = run(p).columns
    normal, _ = run(replace(p, components="normal")).columns
    assert unscaled.histograms["logits"].axis == normal.histograms["logits"].axis
    for column in (unscaled, scaled):
        logits = column.histograms["logits"]
        low, high = logits.quantiles([0.25, 0.75])
        assert (high - low) * logits.axis.bins > 10 * (logits.axis.high - logits.axis.low)  # half of them, in 10 bins


EXIST_IN_THE_SMALLEST_CASES = (
    "logit_mean", "logit_variance", "logit_std", "logit_min", "logit_max", "logit_within_3sd",
    "logit_variance_within_row", "entropy", "effective_keys", "max_weight", "sum_squared_weights",
    "first_key_weight", "first_key_over_uniform", "jacobian_norm", "jacobian_norm_squared", "weight_times_complement",
    "grad_q_median", "grad_q_mean", "grad_q_rms", "grad_logits_median", "grad_logits_rms", "score_overflow",
    "naive_exp_overflow", "weight_error",
)  # fmt: skip
OF_SEVERAL_KEYS = ("saturation", "entropy_fraction", "one_hot_rows", "dead_rows")


@for_each("mask", ["none", "causal"])
@for_each("std_q", [0.0, 1.0])
@for_each("shape", [(1, 1), (1, 5), (5, 1), (3, 5)])
@for_each("d_k", [1, 2])
def test_the_smallest_cases_are_measured(d_k: int, shape: tuple[int, int], std_q: float, mask: MaskName) -> None:
    p = Parameters(d_k=d_k, n_queries=shape[0], n_keys=shape[1], batch=2, std_q=std_q, mask=mask)
    with np.errstate(all="raise", under="ignore"):
        for column in run(p).columns:
            for name in EXIST_IN_THE_SMALLEST_CASES:
                assert column.measured[name].value is not None, name
            several = shape[1] > 1 and (mask == "none" or shape[0] > 1)
            for name in OF_SEVERAL_KEYS:
                assert (column.measured[name].value is not None) == several, name
            for name in HISTOGRAMS:
                assert column.histograms[name].total > 0


def test_without_spread_all_weights_are_equal() -> None:
    for column in run(replace(SMALL, std_q=0.0, std_k=0.0, mean_q=3.0, mean_k=-100.0)).columns:
        assert column.measured["logit_mean"] == Estimate(-4800 * column.multiplier, 0.0)
        assert column.measured["logit_variance"] == Estimate(0.0, 0.0)
        assert column.measured["entropy_fraction"].value == pytest.approx(1)
        assert column.measured["row_mean_share"].value is None


WITHOUT_SPREAD: dict[str, dict[str, Any]] = {
    "next to no multiplier": {},
    "zero queries": {"std_q": 0.0},
    "zero queries with a mean of keys": {"std_q": 0.0, "mean_k": 3.0},
    "nothing but means": {"std_q": 0.0, "std_k": 0.0, "mean_q": 3.0, "mean_k": -100.0},
    "one key": {"n_keys": 1},
    "one key and no scores": {"n_keys": 1, "std_q": 0.0},
    "next to no scores": {"std_q": 1e-6},
    "equal keys": {"std_k": 0.0, "mean_k": 1.0},
}


@for_each("mask", ["none", "causal"])
@for_each("n_keys", [2, 3, 7, 100, 8192])
@for_each("change", WITHOUT_SPREAD.values())
def test_values_at_the_end_of_an_axis_are_not_rounded_off_it(
    change: dict[str, Any], n_keys: int, mask: MaskName
) -> None:
    """Without spread, entropies are ln n and weights 1/n, up to rounding."""
    p = replace(SMALL, scale="custom", multiplier=1e-6, **({"n_keys": n_keys, "mask": mask} | change))
    unscaled, scaled = run(p).columns
    for column in (unscaled, scaled) if change else (scaled,):
        for name in HISTOGRAMS:
            assert (column.histograms[name].underflow, column.histograms[name].overflow) == (0, 0), name


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.sampled_from([0, 0, 1]), st.sampled_from([0.0, 0.0, 0.5])),
        min_size=1,
        max_size=6,
    )
)
@example([(64, 0, 0.0), (512, 0, 0.0), (64, 0, 0.0), (64, 1, 0.0), (64, 0, 0.0)])
def test_numbers_do_not_depend_on_earlier_runs(walk: list[tuple[int, int, float]]) -> None:
    draws = Draws()
    for d_k, seed, correlation in walk:
        p = replace(SMALL, d_k=d_k, seed=seed, correlation=correlation)
        assert numbers(run(p, draws).columns) == numbers(run(p).columns)


@pytest.mark.parametrize("steps", range(12))
def test_a_run_dropped_halfway_changes_no_later_one(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    cut_into_blocks(monkeypatch, 128)
    p = Parameters(d_k=300, n_keys=16, n_queries=16, batch=6)
    draws = Draws()
    for _ in itertools.islice(stream(p, draws), steps):
        pass
    for later in (replace(p, d_k=70), p):
        assert numbers(run(later, draws).columns) == numbers(run(later).columns)


def test_other_seeds_give_other_numbers() -> None:
    entropies = {run(replace(SMALL, seed=seed)).columns[0].measured["entropy"] for seed in range(20)}
    assert len(entropies) == 20


P = Parameters(d_k=300, n_keys=16, n_queries=16, batch=6)


@pytest.fixture(params=["kept", "made again"])
def _small_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of half a draw, from components that are kept or drawn again."""
    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(one_pass, "STRIDE", 64)
    if request.param == "made again":
        monkeypatch.setattr(scoring, "KEPT", 0)


@pytest.mark.usefixtures("_small_steps")
def test_progress_rises_to_one_through_every_draw() -> None:
    steps = list(stream(P))
    fractions, draws = [step.fraction for step in steps], [step.draws for step in steps]
    assert fractions == sorted(set(fractions))
    assert fractions[0] > 0
    assert fractions[-1] == 1
    assert draws == sorted(draws)
    assert {done for done in draws if done == int(done)} == set(range(7))
    assert len(steps) > 12


def test_a_step_makes_the_components_of_one_stride_or_measures_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def note(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return function(*arguments, **named)

        return note

    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(scoring, "KEPT", 0)
    monkeypatch.setattr(one_pass, "STRIDE", 128)
    monkeypatch.setattr(one_pass, "components", noted("components", one_pass.components))
    monkeypatch.setattr(np, "matmul", noted("scores", np.matmul))
    monkeypatch.setattr(tally, "add", noted("statistics", tally.add))
    for _ in stream(replace(P, correlation=0.5)):
        done = {name: calls.count(name) for name in ("components", "scores", "statistics")}
        if done["statistics"]:  # which multiply matrices too
            assert (done["components"], done["statistics"]) == (0, 1)
        else:
            assert done["components"] <= 2
            assert done["scores"] <= 1
        calls.clear()


@pytest.mark.usefixtures("_small_steps")
def test_an_early_result_is_that_of_fewer_draws() -> None:
    """During a draw there may be no result, but there is never one with a part of that draw."""
    of_batches = {draws: run(replace(P, batch=draws)) for draws in range(2, 7)}
    complete = 0
    for step in stream(P):
        early = step.measurement()
        begun, complete = int(step.draws) > complete, int(step.draws)
        if complete < 2:
            assert early is None
            continue
        if early is None:
            assert not begun
            continue
        assert (early.draws, early.asked, early.complete) == (complete, 6, step.fraction == 1)
        assert_same(early, of_batches[complete])
        rows, pairs = 16 * complete, 16 * 16 * complete
        for column in early.columns:
            totals = {name: column.histograms[name].total for name in HISTOGRAMS}
            assert totals == {"logits": pairs, "weights": pairs, "entropy": rows, "jacobian_norm": rows}


def test_an_early_result_does_not_change_as_the_run_continues() -> None:
    p = replace(P, n_keys=1024, n_queries=1024, batch=3, d_k=1)  # blocks of one draw
    steps = stream(p)
    early = next(filter(None, (step.measurement() for step in steps)))
    before = numbers(early.columns)
    for _ in steps:
        pass
    assert early.draws == 2
    assert numbers(early.columns) == before


TINY = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4)
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
            for name in OF_GRADIENTS:
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
    p = replace(TINY, **change)
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
