"""Comparing measurements: number by number, or up to rounding; and many kinds of questions to measure."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import pytest
from attn_tui.core.parameters import FIELD, ComponentLaw, Parameters
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Column, Measurement

LAWS = get_args(ComponentLaw)
SCALES = FIELD["scale"].choices

# Changes of the parameters, by what they are.
CHANGES: dict[str, dict[str, Any]] = {
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


def cut_into_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Make a run work on at most `size` scores at a time."""
    blocks = tally.blocks

    def smaller(shape: tally.Shape, usual: int = tally.BLOCK) -> Iterator[tuple[slice, slice]]:
        return blocks(shape, min(size, usual))

    monkeypatch.setattr(tally, "blocks", smaller)


def numbers(columns: Sequence[Column]) -> list[Any]:
    """All numbers of some columns, to be compared bit for bit."""
    return [
        (
            column.rule,
            column.multiplier,
            dict(column.measured),
            {name: (h.axis, [*h.counts], h.underflow, h.overflow) for name, h in column.histograms.items()},
        )
        for column in columns
    ]


def assert_equal(one: Sequence[Column], two: Sequence[Column], tolerance: float) -> None:
    """Columns agree: histograms exactly, estimates within a tolerance, relative and absolute."""
    for (*names, found, counts), (*wanted, expected, exact) in zip(numbers(one), numbers(two), strict=True):
        assert (names, counts) == (wanted, exact)
        for name, each in expected.items():
            for left, right in zip(found[name], each, strict=True):
                assert left == (None if right is None else pytest.approx(right, rel=tolerance, abs=tolerance)), name


def assert_same(one: Measurement[Parameters], two: Measurement[Parameters], tolerance: float = 1e-4) -> None:
    """All columns agree as in `assert_close`."""
    for a, b in zip(one.columns, two.columns, strict=True):
        assert_close(a, b, two.subject, tolerance)


def assert_close(one: Column, two: Column, p: Parameters, tolerance: float = 1e-4) -> None:
    """Values and standard errors agree within a tolerance relative to the value.

    Quantities of order 1 (weights, entropies, shares) may vanish: for them the tolerance is relative to 1 at least.
    Logits have no fixed scale: their mean and extremes are compared in units of their standard deviation, and
    the variance within rows, which is only rounding if all scores of a draw are equal, in hundredths of the variance.
    A single row on the edge of one-hot or dead may fall to the other side, and so may a pair at three standard
    deviations. Optional statistics are not compared.
    """
    rows = p.batch * p.n_queries
    floors = dict.fromkeys(two.measured, 1.0)
    std = two.measured["logit_std"].value or 0.0
    floors |= dict.fromkeys(("logit_mean", "logit_min", "logit_max", "logit_std"), std)
    floors |= {"logit_variance": std**2, "logit_variance_within_row": std**2 / 100}
    edge = dict.fromkeys(("one_hot_rows", "dead_rows"), 1 / rows) | {"logit_within_3sd": 2 / rows / p.n_keys}
    for name, expected in two.measured.items():
        if STATISTIC[name].optional:
            continue
        for actual, wanted in zip(one.measured[name], expected, strict=True):
            if actual is None or wanted is None:
                assert actual is wanted, name
            else:
                allowed = tolerance * max(abs(expected.value or 0), floors[name]) + edge.get(name, 0)
                assert abs(actual - wanted) <= allowed, f"{name}: {actual} is not {wanted}"
