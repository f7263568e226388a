"""Random components: nested in d_k, determined by the seed, and made in small steps."""

import itertools
import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from attn_tui.core.lab import sampling
from attn_tui.core.lab.sampling import CHUNK, Draws, Side, chunks, components, vectors
from attn_tui.core.parameters import Parameters
from cases import for_each
from hypothesis import example, given
from hypothesis import strategies as st

P = Parameters(n_queries=5, n_keys=3, batch=4)
SIDES: tuple[Side, ...] = ("query", "key", "shared")


def grown(p: Parameters, draws: Draws | None = None) -> dict[Side, Any]:
    """Copies of all components of p."""
    draws = draws or Draws()
    for _ in draws.grow(p, SIDES):
        pass
    return {side: draws.of(side, slice(0, p.batch), p.d_k).copy() for side in SIDES}


def assert_equal(one: dict[Side, Any], two: dict[Side, Any]) -> None:
    for side in SIDES:
        assert np.array_equal(one[side], two[side]), side


def test_the_shapes_of_each_side() -> None:
    shapes = {side: values.shape for side, values in grown(P).items()}
    assert shapes == {"query": (4, 64, 5), "key": (4, 64, 3), "shared": (4, 64, 1)}
    assert {side: vectors(P, side) for side in SIDES} == {"query": 5, "key": 3, "shared": 1}


def test_the_number_of_chunks() -> None:
    assert [chunks(d_k) for d_k in (1, CHUNK, CHUNK + 1, 200, 16_384)] == [1, 1, 2, 4, 256]


def test_every_seed_side_draw_and_chunk_has_a_separate_stream() -> None:
    square = replace(P, n_queries=7, n_keys=7)
    chunks = [
        components(replace(square, seed=seed), side, draw, chunk)
        for seed, side, draw, chunk in itertools.product((0, 1, 2**32 - 1), ("query", "key"), range(3), range(3))
    ]
    correlations = np.corrcoef([chunk.ravel() for chunk in chunks])
    assert np.abs(correlations - np.eye(len(chunks))).max() < 5 / (7 * CHUNK) ** 0.5


def test_the_law_is_that_of_queries_and_keys_alone() -> None:
    changed = {side: components(replace(P, components="rademacher"), side, 0, 0) for side in get_args(Side)}
    assert {side for side, values in changed.items() if {*np.unique(values)} == {-1, 1}} == {*SIDES}


def test_students_t_has_a_fourth_moment_from_5_degrees_of_freedom_on() -> None:
    assert [sampling.LAWS["student_t"].fourth_moment(degrees) for degrees in (4, 5, 6)] == [math.inf, 9, 6]


def test_every_side_of_a_draw_is_independent_of_the_others() -> None:
    """As many queries as keys, so that a side drawn from another's stream would be equal to it."""
    square = replace(P, n_queries=64, n_keys=64)
    drawn = {side: components(square, side, 0, 0) for side in get_args(Side)}
    first = np.corrcoef([values[:, 0] for values in drawn.values()])
    assert np.abs(first - np.eye(len(drawn))).max() < 4.5 / CHUNK**0.5
    whole = np.corrcoef([values.ravel() for side, values in drawn.items() if side != "shared"])
    assert np.abs(whole - np.eye(4)).max() < 4.5 / 64
    starts = [components(square, side, 0, 0).ravel()[:1] for side in drawn]
    assert len(np.unique(starts)) == len(starts)


def test_numbers_are_the_same_on_every_machine() -> None:
    """Signs are exact on every machine, so they fix the generator and its seeding."""
    signs = components(replace(P, components="rademacher", seed=7), "key", 2, 1)[:4]
    assert signs.tolist() == [[-1, 1, -1], [-1, -1, -1], [-1, 1, 1], [-1, 1, -1]]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=6))
@example([1, 63, 64, 65, 128, 200])
@example([200, 128, 65, 64, 63, 1])
def test_narrower_vectors_are_the_first_components_of_wider_ones(widths: list[int]) -> None:
    draws, fresh = Draws(), grown(replace(P, d_k=300))
    for d_k in widths:
        assert_equal(grown(replace(P, d_k=d_k), draws), {side: values[:, :d_k] for side, values in fresh.items()})


def test_components_are_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = Draws()
    grown(replace(P, d_k=130), draws)
    monkeypatch.setattr(sampling, "components", None)
    for d_k in (130, 1, 192):
        assert list(draws.grow(replace(P, d_k=d_k, mean_q=3.0, scale="none", mask="causal"), SIDES)) == []


@for_each(
    ("name", "value"),
    [
        ("seed", 1),
        ("components", "uniform"),
        ("degrees_of_freedom", 9),
        ("n_keys", 4),
        ("n_queries", 6),
        ("batch", 5),
    ],
)
def test_other_parameters_start_over_and_leave_no_trace(name: str, value: Any) -> None:
    p, draws = replace(P, components="student_t"), Draws()
    first, other = grown(p, draws), p.with_value(name, value)
    assert_equal(grown(other, draws), grown(other))
    assert_equal(grown(p, draws), first)


@for_each("steps", [0, 1, 2, 12, 13, 40])  # 12 in each chunk
def test_growth_dropped_halfway_does_no_harm(steps: int) -> None:
    draws, wide = Draws(), replace(P, d_k=300)
    for _ in itertools.islice(draws.grow(wide, SIDES), steps):
        pass
    assert_equal(grown(replace(P, d_k=100), draws), grown(replace(P, d_k=100)))
    assert_equal(grown(wide, draws), grown(wide))


@pytest.mark.parametrize(
    "turns",
    [
        [(130, 18), (450, 99), (130, 99)],
        [(130, 18), (450, 20), (130, 99), (450, 99)],
        [(130, 18), (200, 99), (450, 1), (130, 99), (450, 99)],
    ],
    ids=str,
)
def test_callers_can_grow_by_turns(turns: list[tuple[int, int]]) -> None:
    """Each turn is a d_k and a number of steps towards it."""
    draws, fresh = Draws(), grown(replace(P, d_k=450))
    growing = {d_k: draws.grow(replace(P, d_k=d_k), SIDES) for d_k, _ in turns}
    complete: set[int] = set()
    for d_k, steps in turns:
        if len([*itertools.islice(growing[d_k], steps)]) < steps:
            complete.add(d_k)
        for side, known in itertools.product(SIDES, complete):
            assert np.array_equal(draws.of(side, slice(0, P.batch), known), fresh[side][:, :known])
    assert complete == {*growing}


FIRST_KEY = {"first_key_weight", "first_key_over_uniform"}
OF_LOGITS = {"logit_variance", "logit_std", "logit_variance_within_row", "saturation"}
OF_TAILS = {"logit_excess_kurtosis", "grad_q_top1_share"}
OF_FEW_SCORES = OF_TAILS | FIRST_KEY | {"row_mean_share"}
TURNED = {"logit_excess_kurtosis", "logit_within_3sd"} | FIRST_KEY
OF_SHARED = {"logit_variance", "logit_std", "row_mean_share"}
HEAVY = TURNED | OF_SHARED | {"sum_squared_weights", "weight_times_complement", "grad_q_top1_share"}


def students(degrees: int, d_k: int = 4096) -> dict[str, Any]:
    return {"components": "student_t", "degrees_of_freedom": degrees, "d_k": d_k}


@for_each(
    ("changed", "rule", "draws", "rough"),
    [
        ({}, "none", 16, set()), ({"n_queries": 5}, "none", 4, set()),
        ({"n_queries": 5}, "none", 3, {"row_mean_share"}),
        ({"n_queries": 4}, "none", 4, set()), (students(9), "none", 16, set()), (students(8), "none", 16, OF_TAILS),
        (students(5), "none", 16, OF_TAILS),
        (students(4), "none", 16, OF_FEW_SCORES | OF_LOGITS | {"grad_q_rms"}),
        (students(4), "cosine_10", 16, FIRST_KEY | {"grad_q_top1_share", "grad_q_rms"}),
        (students(4) | {"softcap": 9.0}, "none", 16, FIRST_KEY | {"grad_q_top1_share", "grad_q_rms"}),
        (students(8) | {"mechanism": "cosine"}, "none", 16, {"grad_q_top1_share"}),
        (students(8) | {"mechanism": "additive"}, "none", 16, {"grad_q_top1_share"}),
        ({"components": "laplace", "d_k": 5}, "none", 16, OF_FEW_SCORES),
        ({"components": "laplace", "d_k": 6}, "none", 16, set()), ({"d_k": 1}, "none", 16, OF_FEW_SCORES),
        ({"d_k": 2}, "none", 16, set()), ({"d_k": 1}, "cosine_10", 16, set()),
        ({"mean_q": 1.0}, "none", 16, FIRST_KEY), ({"mean_q": -1.0}, "none", 16, FIRST_KEY),
        ({"mean_q": 0.9}, "none", 16, set()), ({"mean_q": 1.0, "std_k": 0.0}, "none", 16, set()),
        ({"correlation": 0.5}, "none", 16, TURNED), ({"correlation": 0.5}, "none", 15, TURNED | OF_SHARED),
        ({"correlation": 0.5, "std_q": 0.0}, "none", 15, FIRST_KEY),
        ({"correlation": 0.5, "std_k": 0.0}, "none", 15, set()),
        ({"correlation": 0.5, "components": "laplace"}, "none", 16, HEAVY),
        ({"correlation": 0.5} | students(9), "none", 16, HEAVY),
    ],
)  # fmt: skip
def test_errors_are_rough_where_few_draws_or_a_few_scores_decide(
    changed: dict[str, Any], rule: str, draws: int, rough: set[str]
) -> None:
    assert sampling.rough_statistics(replace(Parameters(n_queries=64), **changed), rule, draws) == rough


def test_progress_rises_to_one() -> None:
    fractions = list(Draws().grow(replace(P, d_k=300), SIDES))
    assert fractions == sorted(set(fractions))
    assert fractions[0] > 0
    assert fractions[-1] == 1


def test_no_step_makes_more_than_one_chunk_of_one_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that work on thousands of draws can be dropped as quickly as work on a few."""
    made: list[int] = []

    def counted(p: Parameters, side: Side, draw: int, chunk: int) -> Any:
        made.append(draw)
        return components(p, side, draw, chunk)

    monkeypatch.setattr(sampling, "components", counted)
    for step, _ in enumerate(Draws().grow(replace(P, d_k=130, batch=50), SIDES), start=1):
        assert len(made) <= step
    assert len(made) == 3 * 50 * len(SIDES)
