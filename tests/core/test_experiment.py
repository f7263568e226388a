import itertools
import math
from dataclasses import replace
from typing import Any, cast, get_args

import numpy as np
import pytest
from attn_tui.core.lab import scoring, straight
from attn_tui.core.lab.components import score_mean, score_std
from attn_tui.core.lab.experiment import run, stream
from attn_tui.core.lab.sampling import Draws
from attn_tui.core.parameters import FIELD, ComponentLaw, ParameterError, Parameters, ScaleName
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.catalogue import STATISTIC, STATISTICS
from attn_tui.core.statistics.measurement import HISTOGRAMS, Column, Estimate, Measurement
from hypothesis import given, settings
from hypothesis import strategies as st

SMALL = Parameters(d_k=16, n_keys=12, n_queries=8, batch=4)
LAWS = get_args(ComponentLaw)
SCALES = cast(tuple[ScaleName, ...], FIELD["scale"].choices)


def numbers(measurement: Measurement[Parameters]) -> Any:
    """All numbers of a measurement, to be compared bit for bit."""
    return [
        (
            column.rule,
            column.multiplier,
            dict(column.measured),
            {name: (h.axis, [*h.counts], h.underflow, h.overflow) for name, h in column.histograms.items()},
        )
        for column in measurement.columns
    ]


def cut_into_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let a run make its scores so many at a time."""
    blocks = tally.blocks
    monkeypatch.setattr(tally, "blocks", lambda shape, size=size: blocks(shape, size))


# What a measurement is


def test_columns_are_the_unscaled_one_and_the_chosen_rule() -> None:
    for scale in SCALES:
        p = replace(SMALL, scale=scale, multiplier=0.3)
        measurement = run(p)
        assert measurement.subject == p
        assert measurement.complete
        assert measurement.draws == p.batch
        assert [column.rule for column in measurement.columns] == ["none", scale]
        for column in measurement.columns:
            assert list(column.measured) == [statistic.name for statistic in STATISTICS]
            assert list(column.histograms) == [*HISTOGRAMS, "gradient"]


def test_a_rule_without_a_multiplier_is_refused() -> None:
    with pytest.raises(ValueError, match="no value at d_k = 1"):
        run(replace(SMALL, d_k=1, scale="log_d_k"))


def test_a_causal_query_sees_the_keys_up_to_its_own() -> None:
    unscaled, _ = run(replace(SMALL, mask="causal")).columns
    visible = 4 * sum(range(1, 9))  # of 8 queries, in 4 draws; no query sees the last 4 of 12 keys
    assert unscaled.histograms["logits"].total == visible
    assert unscaled.histograms["weights"].total == visible


@pytest.mark.parametrize("correlation", [0.0, 0.5, -1.0])
@pytest.mark.parametrize("law", LAWS)
def test_the_axis_of_logits_shows_nearly_all_of_them(law: ComponentLaw, correlation: float) -> None:
    """Also where no standard deviation exists to measure the axis by."""
    p = replace(SMALL, d_k=64, components=law, degrees_of_freedom=3, correlation=correlation)
    for column in run(p).columns:
        logits = column.histograms["logits"]
        assert logits.underflow + logits.overflow < logits.total / 20


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("std_q", [0.0, 1.0])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 5)])
@pytest.mark.parametrize("d_k", [1, 2])
def test_the_smallest_questions_have_answers(d_k: int, shape: tuple[int, int], std_q: float, mask: Any) -> None:
    p = Parameters(d_k=d_k, n_queries=shape[0], n_keys=shape[1], batch=2, std_q=std_q, mask=mask)
    with np.errstate(all="raise", under="ignore"):
        for column in run(p).columns:
            missing = {name for name, estimate in column.measured.items() if estimate.value is None}
            assert missing <= {"entropy_fraction", "logit_excess_kurtosis", "row_mean_share", "grad_q_top1_share"}
            for name in HISTOGRAMS:
                assert column.histograms[name].total > 0


def test_without_spread_all_weights_are_equal() -> None:
    for column in run(replace(SMALL, std_q=0.0, std_k=0.0, mean_q=3.0, mean_k=-100.0)).columns:
        assert column.measured["logit_mean"] == Estimate(-4800 * column.multiplier, 0.0)
        assert column.measured["logit_variance"] == Estimate(0.0, 0.0)
        assert column.measured["entropy_fraction"].value == pytest.approx(1)
        assert column.measured["row_mean_share"].value is None


WITHOUT_SPREAD: dict[str, dict[str, Any]] = {
    "zero queries": {"std_q": 0.0},
    "zero queries with a mean of keys": {"std_q": 0.0, "mean_k": 3.0},
    "nothing but means": {"std_q": 0.0, "std_k": 0.0, "mean_q": 3.0, "mean_k": -100.0},
    "one key": {"n_keys": 1},
    "one key and no scores": {"n_keys": 1, "std_q": 0.0},
    "next to no scores": {"std_q": 1e-6},
    "keys alike": {"std_k": 0.0, "mean_k": 1.0},
}


@pytest.mark.parametrize("mask", ["none", "causal"])
@pytest.mark.parametrize("n_keys", [2, 3, 7, 100, 8192])
@pytest.mark.parametrize("change", WITHOUT_SPREAD.values(), ids=WITHOUT_SPREAD)
def test_where_there_is_no_spread_everything_lies_on_the_axes(change: Any, n_keys: int, mask: Any) -> None:
    p = replace(SMALL, scale="custom", multiplier=1e-6, **({"n_keys": n_keys, "mask": mask} | change))
    for column in run(p).columns:
        for name in HISTOGRAMS:
            assert (column.histograms[name].underflow, column.histograms[name].overflow) == (0, 0), name


@pytest.mark.parametrize("n_keys", [2, 3, 7, 100, 8192])
def test_with_next_to_no_multiplier_everything_lies_on_the_axes(n_keys: int) -> None:
    """Entropies are ln n then, and weights 1/n, but for rounding that may take them beyond."""
    _, scaled = run(replace(SMALL, n_keys=n_keys, scale="custom", multiplier=1e-6)).columns
    for name in HISTOGRAMS:
        assert (scaled.histograms[name].underflow, scaled.histograms[name].overflow) == (0, 0), name


def test_the_axis_of_logits_is_measured_where_no_standard_deviation_exists() -> None:
    p = replace(SMALL, d_k=64, components="student_t", degrees_of_freedom=3, correlation=0.5, n_keys=256)
    unscaled, scaled = run(p).columns
    normal, _ = run(replace(p, components="normal")).columns
    assert unscaled.histograms["logits"].axis == normal.histograms["logits"].axis
    for column in (unscaled, scaled):
        logits = column.histograms["logits"]
        low, high = logits.quantiles([0.25, 0.75])
        assert (high - low) * logits.axis.bins > 10 * (logits.axis.high - logits.axis.low), "the middle has a shape"


# The same seed, the same numbers


def test_going_away_and_coming_back_shows_the_same_numbers() -> None:
    draws, p = Draws(), replace(SMALL, d_k=64)
    first = numbers(run(p, draws))
    run(replace(p, d_k=512), draws)
    assert numbers(run(p, draws)) == first
    run(replace(p, seed=1), draws)
    assert numbers(run(p, draws)) == first


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.sampled_from([0, 0, 1]), st.sampled_from([0.0, 0.0, 0.5])),
        min_size=1,
        max_size=6,
    )
)
def test_numbers_do_not_depend_on_what_was_asked_before(walk: list[tuple[int, int, float]]) -> None:
    draws = Draws()
    for d_k, seed, correlation in walk:
        p = replace(SMALL, d_k=d_k, seed=seed, correlation=correlation)
        assert numbers(run(p, draws)) == numbers(run(p))


def test_other_seeds_give_other_numbers() -> None:
    entropies = {run(replace(SMALL, seed=seed)).columns[0].measured["entropy"] for seed in range(20)}
    assert len(entropies) == 20


# However it is computed


def assert_close(one: Column, two: Column, p: Parameters, tolerance: float = 1e-4) -> None:
    """Values and standard errors agree within a tolerance.

    It is relative to the value, and to 1 for what is of order 1 (weights, entropies, shares), which may vanish.
    Logits have no scale of their own: where they lie is measured by their standard deviation, and the variance within
    rows, which is nothing but rounding when all scores of a draw are the same, by a hundredth of the whole variance.
    A single row on the brink of one-hot or dead may fall to the other side, and so may a pair at three standard
    deviations. Gradients, which may be nothing but rounding, are compared in a test of their own.
    """
    rows = p.batch * p.n_queries
    floors = dict.fromkeys(two.measured, 1.0)
    std = two.measured["logit_std"].value or 0.0
    floors |= dict.fromkeys(("logit_mean", "logit_min", "logit_max", "logit_std"), std)
    floors |= {"logit_variance": std**2, "logit_variance_within_row": std**2 / 100}
    brink = dict.fromkeys(("one_hot_rows", "dead_rows"), 1 / rows) | {"logit_within_3sd": 2 / rows / p.n_keys}
    for name, expected in two.measured.items():
        if STATISTIC[name].optional:
            continue
        for actual, wanted in zip(one.measured[name], expected, strict=True):
            if actual is None or wanted is None:
                assert actual is wanted, name
            else:
                allowed = tolerance * max(abs(expected.value or 0), floors[name]) + brink.get(name, 0)
                assert abs(actual - wanted) <= allowed, f"{name}: {actual} is not {wanted}"


GRID: dict[str, Any] = {
    **{law: {"components": law} for law in LAWS},
    **{f"scale {scale}": {"scale": scale, "multiplier": 0.3} for scale in SCALES},
    **{
        f"means {q} {k}": {"mean_q": q, "mean_k": k}
        for q, k in itertools.product((-100.0, 0.0, 1.0, 100.0), repeat=2)
    },
    **{f"correlation {rho}": {"correlation": rho} for rho in (-1.0, -0.5, 0.05, 0.5, 1.0)},
    "aligned means": {"correlation": -0.5, "mean_q": 2.0, "mean_k": -3.0, "std_q": 3.0, "std_k": 0.5},
    "causal": {"mask": "causal"},
    "causal and wide": {"mask": "causal", "n_keys": 100, "correlation": 0.5, "mean_k": 3.0},
    "one key": {"n_keys": 1},
    "one query": {"n_queries": 1},
    "d_k 1": {"d_k": 1},
    "d_k 1 of signs": {"d_k": 1, "components": "rademacher"},
    "d_k 4096": {"d_k": 4096},
    "d_k 4096 with a correlation": {"d_k": 4096, "correlation": 0.5},
    "d_k 4096 with means": {"d_k": 4096, "mean_q": 1.0, "mean_k": 100.0, "scale": "d_k"},
    "zero queries": {"std_q": 0.0},
    "zero keys": {"std_k": 0.0, "mean_q": 3.0, "mean_k": 100.0},
    "small components": {"std_q": 0.01, "std_k": 0.01},
    "large components": {"std_q": 100.0, "std_k": 100.0},
    "large components and many keys": {"std_q": 100.0, "std_k": 100.0, "n_keys": 8192, "n_queries": 4},
    "a large multiplier": {"scale": "custom", "multiplier": 1000.0},
    "a large multiplier of large scores": {"scale": "custom", "multiplier": 1000.0, "std_q": 100.0, "std_k": 100.0},
    "a small multiplier": {"scale": "custom", "multiplier": 1e-6},
    "many keys": {"n_keys": 8192, "n_queries": 8},
    "heavy tails": {"components": "student_t", "degrees_of_freedom": 3, "n_keys": 1024},
    "heavy tails of one component": {"components": "student_t", "degrees_of_freedom": 3, "n_keys": 8192, "d_k": 1},
}


@pytest.mark.parametrize("change", [{}, {"mask": "causal"}, {"sink": "logit", "mean_k": 1.0}, {"d_v": 7}], ids=str)
def test_gradients_in_float32_agree_with_float64_and_with_components_made_anew(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    p = replace(Parameters(n_keys=48, n_queries=40, batch=4, d_k=32), **change)
    exact = run(replace(p, precision="float64"))
    kept = run(p)
    monkeypatch.setattr(scoring, "KEPT", 0)
    for other in (kept, run(p)):
        for one, two in zip(other.columns, exact.columns, strict=True):
            for name in ("grad_q_median", "grad_q_mean", "grad_q_rms", "grad_q_top1_share"):
                assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-3), name


@pytest.mark.parametrize("change", GRID.values(), ids=GRID)
def test_float32_agrees_with_float64(change: dict[str, Any]) -> None:
    p = replace(Parameters(n_keys=48, n_queries=40, batch=4), **change)
    for one, two in zip(run(p).columns, run(replace(p, precision="float64")).columns, strict=True):
        assert_close(one, two, p)


@pytest.mark.parametrize(
    "change", [{"n_keys": 1024, "n_queries": 1024}, {"n_keys": 8192, "n_queries": 64, "d_k": 1}], ids=str
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_heavy_tails_cost_float32_no_digits(change: dict[str, Any], seed: int) -> None:
    p = Parameters(components="student_t", degrees_of_freedom=3, batch=4, seed=seed, **change)
    for one, two in zip(run(p).columns, run(replace(p, precision="float64")).columns, strict=True):
        for name in ("logit_excess_kurtosis", "logit_variance", "logit_variance_within_row"):
            assert one.measured[name] == pytest.approx(two.measured[name], rel=1e-4), name


@pytest.mark.parametrize("side", ["k", "q"])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_row_whose_scores_are_nearly_alike_keeps_their_differences(side: str, correlation: float) -> None:
    """The scores lie near 19 200 and differ by 0.0024 in a row, a tenth of a million of that."""
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
def test_what_is_too_large_to_keep_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch, change: Any) -> None:
    p = replace(SMALL, **change)
    kept = run(p)
    monkeypatch.setattr(scoring, "KEPT", 0)
    forgotten = run(p)
    cut_into_blocks(monkeypatch, 30)
    in_blocks = run(p)
    for other in (forgotten, in_blocks):
        for one, two in zip(other.columns, kept.columns, strict=True):
            assert_close(one, two, p)


@pytest.mark.parametrize("components_that_fit", [4, 32, 128])
def test_components_that_are_kept_fit_in_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, components_that_fit: int
) -> None:
    p = Parameters(n_queries=64, n_keys=64, batch=16)
    allowed = components_that_fit * 4 * p.batch * (p.n_queries + p.n_keys)
    monkeypatch.setattr(scoring, "KEPT", allowed)
    draws = Draws()
    for d_k in (1, 2, 4, 20, 32, 33, 64, 65, 128, 200):
        run(replace(p, d_k=d_k), draws)
        made = sum(values.nbytes for values in vars(draws)["_sides"].values())
        assert made <= 2 * allowed, d_k  # twice, because room doubles when it is full


def test_a_narrow_question_with_many_vectors_is_not_kept_in_whole_chunks() -> None:
    """One component of each vector would be 32 MiB here, the chunks of 64 that they come in are 2 GiB."""
    draws = Draws()
    next(stream(Parameters(d_k=1, n_queries=4096, n_keys=4096, batch=1024), draws))
    assert sum(values.nbytes for values in vars(draws)["_sides"].values()) <= scoring.KEPT


# In steps

IN_STEPS = Parameters(d_k=300, n_keys=16, n_queries=16, batch=6)


@pytest.fixture(params=["kept", "forgotten"])
def in_small_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of half a draw, from components that are kept or made anew."""
    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(straight, "STRIDE", 64)
    if request.param == "forgotten":
        monkeypatch.setattr(scoring, "KEPT", 0)


@pytest.mark.usefixtures("in_small_steps")
def test_progress_rises_and_is_complete_once() -> None:
    steps = list(stream(IN_STEPS))
    fractions, draws = [step.fraction for step in steps], [step.draws for step in steps]
    assert fractions == sorted(set(fractions))
    assert fractions[0] > 0
    assert fractions[-1] == 1
    assert draws == sorted(draws)
    assert {done for done in draws if done == int(done)} == set(range(7))
    assert len(steps) > 12


def test_no_step_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps: the components of one side of a draw and stride at most, or one block of scores."""
    work: list[str] = []

    def told(name: str, function: Any) -> Any:
        def tell(*arguments: Any, **named: Any) -> Any:
            work.append(name)
            return function(*arguments, **named)

        return tell

    cut_into_blocks(monkeypatch, 128)
    monkeypatch.setattr(scoring, "KEPT", 0)
    monkeypatch.setattr(straight, "STRIDE", 128)
    monkeypatch.setattr(straight, "components", told("components", straight.components))
    monkeypatch.setattr(np, "matmul", told("scores", np.matmul))
    monkeypatch.setattr(tally, "add", told("statistics", tally.add))
    for _ in stream(replace(IN_STEPS, correlation=0.5)):
        done = {name: work.count(name) for name in ("components", "scores", "statistics")}
        if done["statistics"]:  # itself made of products of matrices
            assert done["components"] == 0
            assert done["statistics"] == 1
        else:
            assert done["components"] <= 2
            assert done["scores"] <= 1
        work.clear()


@pytest.mark.usefixtures("in_small_steps")
def test_an_early_result_is_that_of_fewer_draws() -> None:
    """In the midst of a draw there may be none, but never one that holds a part of that draw."""
    of_batches = {draws: run(replace(IN_STEPS, batch=draws)) for draws in range(2, 7)}
    complete = 0
    for step in stream(IN_STEPS):
        early = step.measurement()
        another, complete = int(step.draws) > complete, int(step.draws)
        if complete < 2:
            assert early is None
            continue
        if early is None:
            assert not another
            continue
        assert (early.draws, early.asked, early.complete) == (complete, 6, step.fraction == 1)
        for one, two in zip(early.columns, of_batches[complete].columns, strict=True):
            assert_close(one, two, IN_STEPS)
            totals = {name: one.histograms[name].total for name in HISTOGRAMS}
            rows, pairs = 16 * complete, 16 * 16 * complete
            assert totals == {"logits": pairs, "weights": pairs, "entropy": rows, "jacobian_norm": rows}


def test_an_early_result_does_not_change_when_the_run_goes_on() -> None:
    p = replace(IN_STEPS, n_keys=1024, n_queries=1024, batch=3, d_k=1)  # blocks of one draw
    steps = stream(p)
    early = next(filter(None, (step.measurement() for step in steps)))
    before = numbers(early)
    for _ in steps:
        pass
    assert early.draws == 2
    for one, two in zip(numbers(early), before, strict=True):
        assert one[2] == two[2]
        for name in HISTOGRAMS:
            assert one[3][name] == two[3][name], name


@pytest.mark.parametrize("taken", range(12))
def test_a_run_that_is_dropped_midway_does_no_harm(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    cut_into_blocks(monkeypatch, 128)
    draws = Draws()
    for _ in itertools.islice(stream(IN_STEPS, draws), taken):
        pass
    narrower = replace(IN_STEPS, d_k=70)
    assert numbers(run(narrower, draws)) == numbers(run(narrower))
    assert numbers(run(IN_STEPS, draws)) == numbers(run(IN_STEPS))


# Honest standard errors

SEEDS, BATCH = 1000, 16
D, N = 16, 24


@pytest.fixture(scope="module")
def repeated() -> dict[tuple[str, str], Any]:
    """Values and standard errors of every statistic over many seeds; (rule, name) -> (2, SEEDS)."""
    p = Parameters(d_k=D, n_keys=N, n_queries=N, batch=BATCH)
    columns = [run(replace(p, seed=seed)).columns for seed in range(SEEDS)]
    estimates = {
        (first.rule, name): np.array([column[index].measured[name] for column in columns], float).T
        for index, first in enumerate(columns[0])
        for name in first.measured
    }
    return {key: values for key, values in estimates.items() if not np.isnan(values).any()}


def assert_honest(values: Any, stderr: Any, exact: float) -> None:
    """Deviations in units of their standard errors are centred on 0 with the spread of Student's t.

    The error of a mean over 16 draws has 15 degrees of freedom and so a spread of √(15/13) = 1.07; a skewed quantity
    has a little more, and a centre a little below 0 because small values come with small errors.
    """
    z = (values - exact) / stderr
    assert abs(z.mean()) < 0.2, z.mean()
    assert 1.0 < z.std() < 1.25, z.std()
    assert abs(values.mean() - exact) < 3.5 * values.std() / math.sqrt(len(values))


EXACT = {
    "logit_mean": 0.0,
    "logit_variance": D,
    "logit_std": math.sqrt(D),
    "logit_excess_kurtosis": 6 / D,
    "logit_variance_within_row": D * (1 - 1 / N),
    "row_mean_share": 1 / N,
}


@pytest.mark.parametrize("name", EXACT)
def test_standard_errors_are_honest_about_exact_values(repeated: Any, name: str) -> None:
    assert_honest(*repeated["none", name], EXACT[name])


def test_every_standard_error_is_the_spread_over_seeds(repeated: Any) -> None:
    assert len(repeated) > 30
    for key, (values, stderr) in repeated.items():
        spread, claimed = values.std(ddof=1), math.sqrt(np.square(stderr).mean())
        assert claimed == pytest.approx(spread, rel=0.1), key


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("mean_q", "mean_k", "correlation"), [(0, 0, 0), (1.5, -0.5, 0), (0, 0, 0.6), (1, 1, -0.5)])
def test_every_law_has_the_mean_and_variance_of_its_closed_form(
    law: ComponentLaw, mean_q: float, mean_k: float, correlation: float
) -> None:
    p = Parameters(
        d_k=8, n_keys=8, n_queries=8, batch=BATCH, components=law, degrees_of_freedom=13, std_q=1.5,
        mean_q=mean_q, mean_k=mean_k, correlation=correlation,
    )  # fmt: skip
    seeds = [run(replace(p, seed=seed)).columns[0].measured for seed in range(100)]
    for name, exact in (("logit_mean", score_mean(p)), ("logit_variance", score_std(p) ** 2)):
        values, stderr = np.array([measured[name] for measured in seeds], float).T
        assert abs(values.mean() - exact) < 4 * values.std() / math.sqrt(len(values)), name
        assert math.sqrt(np.square(stderr).mean()) == pytest.approx(values.std(ddof=1), rel=0.35), name


def test_parameters_are_checked_before_anything_is_drawn() -> None:
    with pytest.raises(ParameterError):
        replace(SMALL, batch=1)
