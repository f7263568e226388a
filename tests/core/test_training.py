"""The training race and its code: gradients are those of the loss; the scale does to learning what is said of it."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.program.text import Dialect
from attn_tui.core.program.training import training_code
from attn_tui.core.scales import Normalise, ScaleName
from attn_tui.core.training.race import (
    Examples,
    LearningCurves,
    RaceWeights,
    draw,
    initial,
    optimiser,
    pass_over,
    results,
    run,
)
from attn_tui.core.training.settings import (
    OPTIMISERS,
    RACE_FIELD,
    RACE_FIELDS,
    RATES,
    Race,
    RecallTask,
    changed,
    fault_of,
    parse_rules,
)
from attn_tui.core.training.snapshot import QUANTITIES, snapshot
from cases import for_each, present
from printed_code import INSTALLED, compared, expected_in, printed_by

TASK = RecallTask(width=5, pairs=4, labels=3, batch=2)


def doubled(d_k: int = 6, runs: int = 2) -> tuple[RaceWeights, Examples]:
    """Weights and examples in float64."""
    rng = np.random.default_rng(0)
    each = [initial(TASK, d_k, rng) for _ in range(runs)]
    weights = RaceWeights(*(np.concatenate(part).astype(np.float64) for part in zip(*each, strict=True)))
    drawn = [draw(TASK, rng) for _ in range(runs)]
    keys = np.stack([one.keys for one in drawn]).astype(np.float64)
    return weights, Examples(keys, np.stack([one.labels for one in drawn]))


def raced(*rules: ScaleName, **settings: object) -> LearningCurves:
    *_, last = run(Race(rules=rules, **settings))  # pyright: ignore[reportArgumentType]
    return last


@pytest.mark.parametrize("how", ["none", "rms", "layer_norm", "l2"])
def test_gradients_are_finite_differences_of_the_loss(how: Normalise) -> None:
    weights, examples = doubled()
    multipliers = np.array([0.7, 2.0])
    gradients = pass_over(weights, examples, multipliers, how).gradients
    rng = np.random.default_rng(1)
    for part, gradient in zip(weights, gradients, strict=True):
        for _ in range(8):
            place = tuple(map(int, rng.integers(0, np.array(part.shape))))
            was, h = part[place], 1e-6
            losses: list[float] = []
            for moved in (was + h, was - h):
                part[place] = moved
                losses.append(float(pass_over(weights, examples, multipliers, how).loss[place[0]]))
            part[place] = was
            assert gradient[place] == pytest.approx((losses[0] - losses[1]) / (2 * h), abs=1e-8, rel=1e-5)


def test_the_loss_is_that_of_a_plain_computation() -> None:
    weights, examples = doubled(runs=1)
    x, labels = examples.keys[0], examples.labels[0]
    losses: list[float] = []
    for b, i in np.ndindex(labels.shape):
        q, k = weights.query[0] @ x[b, i], x[b] @ weights.key[0].T
        p = np.exp(0.5 * k @ q)
        o = weights.value[0][:, labels[b]] @ (p / p.sum())
        losses.append(math.log(np.exp(o).sum()) - float(o[labels[b, i]]))
    found = pass_over(weights, examples, np.array([0.5]), "none")
    assert found.loss[0] == pytest.approx(np.mean(losses))


def test_the_first_entropy_is_that_of_the_lab() -> None:
    curves = raced("none", "sqrt_d_k", d_k=64, steps=1, seeds=40)
    assert results(curves)[1].entropy_before == pytest.approx(0.85, abs=0.01)  # 16 normal logits of variance 1
    assert results(curves)[0].entropy_before < 0.2


def test_optimisers_take_the_steps_of_their_papers() -> None:
    found = {name: RaceWeights(*(np.zeros((1, 2, 2)) for _ in range(3))) for name in OPTIMISERS}
    optimisers = {name: optimiser("adam" if name == "adam" else "sgd", weights) for name, weights in found.items()}
    gradients = np.random.default_rng(0).normal(size=(5, 2, 2))
    m, v, expected = 0.0, 0.0, np.zeros((2, 2))
    for t, g in enumerate(gradients, 1):
        for name, weights in found.items():
            optimisers[name].step(weights, RaceWeights(g, g, g), 0.01)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected -= 0.01 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert np.allclose(found["adam"], expected)
    assert np.allclose(found["sgd"], -0.01 * gradients.sum(axis=0))


def test_a_rule_has_learned_once_the_median_run_recalls_enough() -> None:
    curves, recalled = raced("none", "sqrt_d_k", d_k=2, steps=60, seeds=3, task=TASK), np.zeros((2, 3, 60))
    recalled[0, 0, 20:] = recalled[0, 1, 30:] = recalled[1, 2, 20:] = 0.95
    assert [each.steps_to_learn for each in results(replace(curves, recalled=recalled))] == [40, None]
    assert results(replace(curves, recalled=recalled[:, 1:]))[0].steps_to_learn is None  # half of them


def test_without_learning_what_is_recalled_depends_on_the_rule_used_alone() -> None:
    used = present(raced("none", "d_k", d_k=64, steps=1, seeds=4, rate=1e-12).used)
    assert np.array_equal(used[0], used[1])
    assert not np.array_equal(used[:, 0], used[:, 1])


def test_runs_are_those_of_their_seeds_alone() -> None:
    both = raced("none", "sqrt_d_k", d_k=8, steps=12, seeds=3)
    alone = raced("sqrt_d_k", d_k=8, steps=12, seeds=2)
    assert np.allclose(both.loss[1, :2], alone.loss[0], rtol=1e-4)
    later = raced("sqrt_d_k", d_k=8, steps=12, seeds=1, seed=1)
    assert np.allclose(both.loss[1, 1], later.loss[0, 0], rtol=1e-4)


@for_each(
    ("loss", "error", "text"),
    [(0.0619, 0.0033, "0.062 ±0.003"), (1.476, 0.43, "1.48 ±0.43"), (0.00471, 4.9e-5, "0.00471 ±0.00005"),
     (0.000612, 3.4e-6, "0.00061 ±<1e-05"), (0.5, None, "0.500"), (2.0, 0.0, "2.00000 ±<1e-05")],
)  # fmt: skip
def test_a_loss_has_the_decimals_of_its_error(loss: float, error: float | None, text: str) -> None:
    found = replace(results(raced("none", d_k=2, steps=1, seeds=1, task=TASK))[0], loss=loss, loss_error=error)
    assert found.loss_text == text


def test_a_warm_up_starts_slowly() -> None:
    warm, fast = (raced("sqrt_d_k", d_k=8, steps=6, seeds=2, warm_up=steps) for steps in (1000, 0))
    assert np.array_equal(warm.loss[..., 0], fast.loss[..., 0])
    unmoved = raced("sqrt_d_k", d_k=8, steps=6, seeds=2, rate=1e-6)
    assert np.abs(warm.loss - unmoved.loss).max() < 0.1 * np.abs(fast.loss - unmoved.loss).max()


def test_a_rule_without_a_multiplier_is_refused() -> None:
    with pytest.raises(InputError):
        raced("custom", d_k=8, steps=1, seeds=1)


def test_a_long_step_comes_in_parts_and_its_runs_are_those_of_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attn_tui.core.training.race._PART", 1024)
    race = Race(64, ("sqrt_d_k", "rms_sqrt_d_k"), rate=2.0, steps=2, seeds=20)
    seen = list(run(race))
    assert [curves.done for curves in seen] == sorted(curves.done for curves in seen)
    assert len(seen) > 2 * race.steps
    assert [curves.used is not None for curves in seen] == [False] * (len(seen) - 1) + [True]
    *_, alone = run(replace(race, seed=17, seeds=1))
    assert seen[-1].used is not None
    assert alone.used is not None
    assert np.array_equal(seen[-1].loss[:, 17], alone.loss[:, 0])
    assert np.array_equal(seen[-1].gradient[:, 17], alone.gradient[:, 0])
    assert np.array_equal(seen[-1].used[:, :, 17], alone.used[:, :, 0])


def test_a_race_takes_numbers_and_formulas() -> None:
    assert parse_rules("none, sqrt-d-k,0.05, max(1/d, 0.1),×0.25,none") == (
        "none", "sqrt_d_k", "0.05", "max(1/d, 0.1)", "0.25",
    )  # fmt: skip
    curves = raced("1/sqrt(d)", "sqrt_d_k", "0.125", d_k=64, steps=3, seeds=2)
    found = results(curves)
    assert [each.multiplier for each in found] == [0.125] * 3
    assert np.array_equal(curves.loss[0], curves.loss[1])
    assert np.array_equal(curves.loss[1], curves.loss[2])


@pytest.mark.parametrize("text", ["custom", "sqrt_dk", "", "none,,d_k", "log("])
def test_what_is_no_rule_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_rules(text)


def test_a_rule_without_a_multiplier_at_this_width_is_named() -> None:
    assert fault_of(Race(d_k=64, rules=("log_d_k",))) == ""
    assert "1/ln d_k" in fault_of(Race(d_k=1, rules=("none", "log_d_k")))


def test_another_optimiser_has_its_own_learning_rate() -> None:
    race = changed(Race(rate=5.0), "optimiser", "adam")
    assert (race.optimiser, race.rate) == ("adam", RATES["adam"])
    assert changed(race, "optimiser", "adam") == race
    assert changed(race, "d_k", 8).rate == race.rate


def test_a_snapshot_has_the_medians_of_the_curves() -> None:
    curves = raced("none", "sqrt_d_k", d_k=8, steps=7, seeds=3)
    found = snapshot(curves)
    assert found.complete
    assert [point.step for point in found.curves["loss"][1]] == [1, 2, 3, 4, 5, 6, 7]
    for quantity in QUANTITIES:
        values = getattr(curves, quantity.name)
        for rule in (0, 1):
            points = found.curves[quantity.name][rule]
            assert [point.middle for point in points] == pytest.approx(np.median(values[rule], axis=0).tolist())
            assert points[-1].stderr == pytest.approx(values[rule, :, -1].std(ddof=1) / math.sqrt(3))
    assert found.used is not None
    assert curves.used is not None
    assert np.array_equal(found.used, curves.used.mean(axis=2))


BOUNDS: dict[str, tuple[float, float]] = {
    "d_k": (1, 1024), "rate": (1e-6, 1e4), "warm_up": (0, 100_000), "steps": (1, 100_000), "seeds": (1, 1000),
    "seed": (0, 2**32 - 1),
}  # fmt: skip


def test_settings_of_a_race_have_bounds() -> None:
    """A width and a seed are those of the Lab; a race may begin at its full rate."""
    assert {field.name: (field.low, field.high) for field in RACE_FIELDS if field.name in BOUNDS} == BOUNDS
    for name, (low, high) in BOUNDS.items():
        for value in (low, high):
            RACE_FIELD[name].check(value)
        for value in (low - 1, high + 1):
            with pytest.raises(InputError):
                RACE_FIELD[name].check(value)


def test_a_result_is_the_mean_of_the_runs_that_did_not_diverge() -> None:
    curves, shape = raced("none", d_k=2, steps=60, seeds=4, task=TASK), (1, 4, 60)
    loss = np.broadcast_to(np.array([0.5, 0.7, 1.2, math.nan])[:, np.newaxis], shape).copy()
    loss[..., :50] = 9.0  # earlier steps do not count
    [found] = results(replace(curves, loss=loss))
    assert (found.loss, found.diverged) == (pytest.approx(0.8), 0.25)
    assert found.loss_error == pytest.approx(np.std([0.5, 0.7, 1.2], ddof=1) / math.sqrt(3))
    loss[:, 1:] = math.inf
    [found] = results(replace(curves, loss=loss))
    assert (found.loss, found.loss_error, found.diverged) == (pytest.approx(0.5), None, 0.75)


def test_a_snapshot_of_long_runs_is_short() -> None:
    found = snapshot(raced("none", d_k=2, steps=600, seeds=1, task=TASK))
    steps = [point.step for point in found.curves["loss"][0]]
    assert len(steps) == 237  # 234 evenly spaced, and 6 with an error, 3 of which are the same
    assert (steps[0], steps[-1]) == (1, 600)


def test_runs_that_diverge_leave_the_curves() -> None:
    found = snapshot(raced("none", d_k=16, steps=40, seeds=3, rate=1e4, task=TASK))
    assert found.results[0].diverged == 1
    assert all(math.isfinite(point.middle) for points in found.curves["loss"] for point in points)


SHORT = {"steps": 25, "seeds": 3}
NORMS = ("rms_sqrt_d_k", "layer_norm_sqrt_d_k", "cosine_10")


def program(dialect: Dialect, *d_ks: int, **settings: Any) -> str:
    found: list[Any] = []
    for d_k in d_ks:
        race = Race(d_k, **settings)
        *_, curves = run(race)
        found.append(snapshot(curves))
    return training_code(found, dialect, "attn-tui train")


@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"optimiser": "adam", "rate": 0.02, "warm_up": 10, "seed": 5},
        {"rules": NORMS, "rate": 2.0},
        {"rules": ("layer_norm_none", "log(n)/sqrt(d)", "0.05")},
        {"rules": ("sqrt_d_k", "rms_sqrt_d_k"), "optimiser": "adam", "rate": 0.01},
        {"rules": ("inverse_layer", "yarn")},
        {"steps": 5, "seeds": 1},
        {"rate": 1e4, "task": RecallTask(width=5, pairs=4, labels=3, batch=2), "rules": ("sqrt_d_k",)},
    ],
    ids=str,
)
def test_the_code_of_a_race_trains_to_the_same_losses(settings: dict[str, Any], dialect: Dialect) -> None:
    text = program(dialect, 6, 40, **(SHORT | settings))
    assert len(expected_in(text)) == 2 * len(settings.get("rules", Race.rules))
    if settings.get("rate") != 1e4:
        assert compared(text) == ""
    else:  # what such runs recall is noise
        assert [line.split()[-1] for line in printed_by(text)] == ["1", "1"]


@pytest.mark.soak
@pytest.mark.parametrize("dialect", INSTALLED)
@pytest.mark.parametrize("settings", [{"rate": 5.0}, {"rate": 0.01, "optimiser": "adam"}], ids=str)
def test_a_whole_race_is_reproduced(settings: dict[str, Any], dialect: Dialect) -> None:
    text = program(dialect, 64, 256, rules=("none", "sqrt_d_k"), **settings)
    for line, (name, wanted) in zip(printed_by(text), expected_in(text).items(), strict=True):
        loss, _, steps, diverged = (float(word) for word in line.removeprefix(name).split())
        if re.match("sqrt", name):
            assert loss == pytest.approx(wanted[0].value, rel=1e-3)
            assert steps == wanted[2].value
        else:  # chaotic: rounding alone, which is a machine's own, changes the loss, and few seeds have wild tails
            assert wanted[0].value / 3 < loss < wanted[0].value * 3
            assert steps == pytest.approx(wanted[2].value, rel=0.5)
        assert diverged == wanted[3].value
