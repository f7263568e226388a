"""How claims are tested: whether readings agree with figures, and the trials behind some, of whole layers too."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from attn_tui.core.arrays import FloatArray
from attn_tui.core.lab.experiment import run
from attn_tui.core.learning import trials
from attn_tui.core.learning.claim import UNCLAIMED, Claim, ClaimFigure, at_least, at_most, value
from attn_tui.core.learning.measure import ResultCache, examine, read
from attn_tui.core.learning.outcome import agrees
from attn_tui.core.learning.sources import Difference, FromLab, Quotient, Reading, figure_text
from attn_tui.core.learning.tour.trials import heads_at_once
from attn_tui.core.learning.trials import input_gradient, mean_cosine, shapes, through_layers
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Estimate
from cases import for_each

integrate, optimize, special = (import_module(f"scipy.{name}") for name in ("integrate", "optimize", "special"))


def test_a_reading_agrees_with_a_claimed_figure_within_its_error() -> None:
    def near(number: float, stderr: float | None, exact: float | None = None) -> Reading:
        return Reading(Estimate(number, stderr), exact)

    assert agrees(value(1), near(1.039, 0.01))
    assert not agrees(value(1), near(1.041, 0.01))
    assert not agrees(value(1), near(1.01, None))
    assert agrees(value(1, within=0.02), near(1.01, None))
    assert agrees(value(1), near(1.03, 0.01, 1.0))
    assert not agrees(value(1), near(1.03, 0.01, 1.001))  # the exact value decides
    assert not agrees(value(1), near(1.05, 0.01, 1.0))  # and the measured one has to agree too
    assert agrees(value(0.3), Reading(None, 0.1 + 0.2))
    assert agrees(at_least(2), Reading(None, 2.0))
    assert not agrees(at_least(2), Reading(None, 1.99))
    assert agrees(at_most(2), Reading(None, -5.0))
    assert not agrees(at_most(2), Reading(None, 2.01))
    assert agrees(UNCLAIMED, near(17.0, None))
    assert not agrees(value(1), Reading(None, None))
    assert not agrees(value(1), Reading(Estimate(None, None), None))
    assert not agrees(value(1), near(math.nan, None))


def test_claimed_figures_are_shown_as_people_write_them() -> None:
    assert [bounds.words for bounds in (value(1_048_576), value(0.1, within=0.05), at_least(0.99), at_most(1))] == [
        "1048576", "0.1", "at least 0.99", "at most 1",
    ]  # fmt: skip
    assert value(1 / 64, words="1/64").words == "1/64"


def constant(number: float, stderr: float | None = None) -> ClaimFigure:
    return ClaimFigure("a number", value(number), Reading(Estimate(number, stderr), number))


def made_up(name: str, *figures: ClaimFigure) -> Claim:
    return Claim(name, "It is so.", "study note 000", "It just is.", figures=figures)


def test_measures_that_disagree_decide_the_verdict_and_those_that_agree_do_not() -> None:
    """The reason gives the exact value, here 1, where it is known, and not the measured 1.01."""

    def figure(agrees: bool, measure: str = "") -> ClaimFigure:
        reading = Reading(Estimate(1.01, 0.1), 1.0)
        return ClaimFigure("a number", at_most(1) if agrees else at_least(2), reading, measure=measure)

    by_both = examine(made_up("a", figure(True, "time"), figure(True, "operations"), figure(False)))
    assert by_both.verdict == "does not hold"
    assert by_both.reason == "1 of 3 figures is off: the claim says at least 2 for a number; it is 1."
    by_one = examine(made_up("b", figure(True, "time"), figure(False, "operations"), figure(False)))
    assert by_one.verdict == "depends on the measure"
    assert by_one.reason.startswith("True by time: 1 for a number. False by operations: ")
    assert examine(made_up("c", figure(False, "time"), figure(False, "operations"))).verdict == "does not hold"


def test_a_claim_is_true_in_a_limit_if_all_its_limiting_figures_agree() -> None:
    def outcome(*agree: bool) -> str:
        limiting = [ClaimFigure(f"number {at}", value(1), Reading(None, 1.0 if each else 2.0), in_the_limit=True)
                    for at, each in enumerate(agree)]  # fmt: skip
        off = ClaimFigure("a number", value(1), Reading(None, 3.0))
        return examine(replace(made_up("a", off, *limiting), limit="as d_k grows")).verdict

    assert outcome(True, True) == "holds in the limit"
    assert outcome(True, False) == outcome() == "does not hold"


SIX, TWO = Estimate(6.0, 0.3), Estimate(2.0, 0.2)
JOINT = math.hypot(0.3, 0.2)


@for_each(
    ("one", "other", "quotient", "difference"),
    [
        ((SIX, 6.0), (TWO, 2.0), (Estimate(3, 0.45), 3), (Estimate(4, JOINT), 4)),  # relative errors are added
        ((Estimate(-6, 0.3), -6), (TWO, 2), (Estimate(-3, 0.45), -3), (Estimate(-8, JOINT), -8)),
        ((Estimate(6, None), 6), (Estimate(2, None), 2), (Estimate(3, 0), 3), (Estimate(4, 0), 4)),
        ((Estimate(0, 0.3), 0), (TWO, 2), (Estimate(0, 0), 0), (Estimate(-2, JOINT), -2)),
        ((SIX, 6), (Estimate(0, 0.2), 0), (None, None), (Estimate(6, JOINT), 6)),
        ((SIX, None), (TWO, 2), (Estimate(3, 0.45), None), (Estimate(4, JOINT), None)),
        ((SIX, 6), (TWO, None), (Estimate(3, 0.45), None), (Estimate(4, JOINT), None)),
        ((None, 6), (TWO, 2), (None, 3), (None, 4)), ((SIX, 6), (None, 2), (None, 3), (None, 4)),
        ((Estimate(None, None), 6), (TWO, 2), (None, 3), (None, 4)),
        ((SIX, 6), (Estimate(None, None), 2), (None, 3), (None, 4)),
    ],
)  # fmt: skip
def test_a_quotient_and_a_difference_of_readings_have_their_joint_error_or_are_unknown(
    one: tuple[Any, Any], other: tuple[Any, Any], quotient: tuple[Any, Any], difference: tuple[Any, Any]
) -> None:
    sources: Any = Reading(*one), Reading(*other)  # which `read` takes for sources
    for kind, (measured, exact) in ((Quotient, quotient), (Difference, difference)):
        found = read(kind(*sources), ResultCache())
        assert found.measured == (None if measured is None else pytest.approx(measured))
        assert found.exact == exact


@for_each("scaled", [False, True])
def test_a_figure_of_the_lab_is_that_of_its_column(scaled: bool) -> None:
    p = Parameters(n_keys=16, n_queries=8)
    measured, exact = read(FromLab("logit_std", p, scaled), ResultCache())
    assert exact == (1 if scaled else 8)
    assert measured == run(p).columns[int(scaled)].measured["logit_std"]


def test_work_shared_by_several_figures_is_done_once() -> None:
    calls: list[int] = []

    def work(number: int) -> int:
        calls.append(number)
        return 2 * number

    results = ResultCache()
    assert [results.cached(work, number) for number in (1, 2, 1)] == [2, 4, 2]
    assert calls == [1, 2]


def measured_by(measure: str, number: float) -> ClaimFigure:
    return ClaimFigure(f"by {measure}", at_least(0, "more"), Reading(None, number), measure=measure)


@for_each(
    ("numbers", "verdict"),
    [((1, 1, 1), "holds"), ((1, -1, 1), "depends on the measure"), ((1, 1, -1), "depends on the measure"),
     ((-1, -1, -1), "does not hold"), ((-1, -1, 1), "depends on the measure"), ((1, -1, -1), "does not hold")],
)  # fmt: skip
def test_a_claim_depends_on_the_measure_if_one_agrees_in_full_and_another_does_not(
    numbers: tuple[float, ...], verdict: str
) -> None:
    figures = [measured_by(name, number) for name, number in zip(("size", "size", "speed"), numbers, strict=True)]
    outcome = examine(made_up("two", *figures))
    assert outcome.verdict == verdict
    if verdict.startswith("depends"):
        right, wrong = ("speed", "size") if numbers[2] > 0 else ("size", "speed")
        assert f"True by {right}: 1 for by {right}. False by {wrong}: the claim says more" in outcome.reason
        assert outcome.reason.endswith("it is −1.")


def test_query_gradients_agree_with_finite_differences() -> None:
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((5, width)) for width in (4, 4, 3, 3))
    c = 0.7

    def loss(queries: np.ndarray) -> float:
        weights = np.exp(c * queries @ k.T)
        return float((g * (weights / weights.sum(axis=1, keepdims=True) @ v)).sum())

    exact = trials.query_gradients(q, k, v, g, c)
    for place in np.ndindex(q.shape):
        step = np.zeros_like(q)
        step[place] = 1e-5
        assert exact[place] == pytest.approx((loss(q + step) - loss(q - step)) / 2e-5, abs=1e-7)


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    each = np.random.default_rng(1).standard_normal((40, 1))
    plain = trials.mean_over_draws(each[:, 0])
    assert trials.jackknife(lambda mean: float(mean[0]), each) == pytest.approx(plain, rel=1e-12)


def test_the_spread_of_additive_scores_of_wide_layers() -> None:
    """q and k enter each tanh as two independent N(0, 1): E Var(tanh(x + y) | x) for each of d units."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    values = np.tanh(nodes[:, None] + nodes)
    within = float(weights @ (values**2 @ weights - (values @ weights) ** 2))
    std = trials.additive(256, 1.0)["std"].measured
    assert std is not None
    assert std.value is not None
    assert std.stderr is not None
    assert abs(std.value - math.sqrt(256 * within)) < 4 * std.stderr + 0.1


@pytest.mark.parametrize("d_k", [1, 2, 16, 64])
def test_the_distance_from_normal_is_the_largest_there_is(d_k: int) -> None:
    """Against the variance-gamma density of a score of normal components."""
    order, root = (d_k - 1) / 2, math.sqrt(d_k)

    def density(x: float) -> float:
        log_scale = order * math.log(x / 2) - x - math.lgamma(d_k / 2) - 0.5 * math.log(math.pi)
        return float(special.kve(order, x)) * math.exp(log_scale)

    def gap(x: float) -> float:
        return abs(float(integrate.quad(density, 0, x * root, limit=200)[0]) - math.erf(x / math.sqrt(2)) / 2)

    def negative(x: float) -> float:
        return -gap(x)

    exact = trials.distance_from_normal(d_k).exact
    gaps = [gap(x) for x in np.linspace(0.01, 4, 400)]
    largest = 0.01 + 0.01 * int(np.argmax(gaps))
    near = (largest - 0.01, largest + 0.01)
    found = optimize.minimize_scalar(negative, bounds=near, method="bounded")
    assert exact is not None
    assert exact >= max(gaps) - 1e-12
    assert exact == pytest.approx(-float(found.fun), rel=1e-6)


def test_figures_are_whole_or_have_four_digits() -> None:
    shown = [figure_text(number) for number in (1_048_576, -0.25, 0.99999917, 2 / 3, 1e-9, 1.23456e13, 63.987)]
    assert shown == ["1048576", "-0.25", "1", "0.6667", "1e-9", "1.235e13", "63.99"]
    assert figure_text(0.0123456, 2) == "0.012"


DEPTH, WIDTH, TOKENS = 3, 4, 5


def output(x: FloatArray, weights: FloatArray, multiplier: float) -> FloatArray:
    """LayerNorm of the output of a stack, token by token."""
    for w_q, w_k, w_v in weights:
        h = [(row - row.mean()) / row.std() for row in x]
        added: list[FloatArray] = []
        for one in h:
            logits = np.array([multiplier * (one @ w_q) @ (other @ w_k) for other in h])
            p = np.exp(logits) / np.exp(logits).sum()
            added.append(sum((each * (other @ w_v) for each, other in zip(p, h, strict=True)), np.zeros(WIDTH)))
        x = x + np.array(added)
    return np.array([(row - row.mean()) / row.std() for row in x])


@pytest.mark.parametrize("multiplier", [1.0, 0.5])
def test_the_gradient_through_a_stack_is_that_of_finite_differences(multiplier: float) -> None:
    rng = np.random.default_rng(0)
    x, grad = rng.standard_normal((2, TOKENS, WIDTH))
    weights = rng.standard_normal((DEPTH, 3, WIDTH, WIDTH)) / 2
    found, end = input_gradient(x, weights, multiplier, grad)
    assert end == pytest.approx(output(x, weights, multiplier))
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-5
        up, down = ((grad * output(x + sign * step, weights, multiplier)).sum() for sign in (1, -1))
        assert found[at] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7)


def test_the_mean_cosine_is_that_of_all_pairs() -> None:
    x = np.random.default_rng(1).standard_normal((4, 3))
    pairs = [x[a] @ x[b] / np.linalg.norm(x[a]) / np.linalg.norm(x[b]) for a in range(4) for b in range(4) if a != b]
    assert mean_cosine(x) == pytest.approx(np.mean(pairs))


def test_a_stack_of_one_layer_has_the_ratio_of_one_layer() -> None:
    found = through_layers(1, 8, 4)
    assert found["over_one"].measured == (1, 0)
    unscaled, scaled, ratio = (found[name].measured for name in ("unscaled", "scaled", "ratio"))
    assert unscaled is not None
    assert scaled is not None
    assert ratio is not None
    assert ratio.value == pytest.approx((unscaled.value or 0) / (scaled.value or 1))


def test_scores_have_a_number_for_every_pair_of_every_batch_and_head() -> None:
    found = {name: reading.exact for name, reading in shapes(2, 3, 5, 4).items()}
    assert found == {"scores": 2 * 3 * 5 * 5, "output": 2 * 3 * 5 * 4, "sum": 1, "apart": 0}


def test_heads_look_at_several_keys_and_near_and_far() -> None:
    found = {name: reading.measured for name, reading in heads_at_once().items()}
    values = {name: each.value or 0.0 for name, each in found.items() if each is not None}
    assert 1 < values["keys"] < 12
    assert 0 < values["near"] < values["far"] < 70
    assert (values["rank"], values["full"]) == (32, 70)
