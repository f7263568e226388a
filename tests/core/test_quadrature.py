"""Expectations of the softmax of n normal logits agree with quadrature, identities, limits and a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from attn_tui.core.parameters import FIELD
from attn_tui.core.theory import curves as curves_module
from attn_tui.core.theory.curves import KEPT_CURVES, causal_lengths, curves
from attn_tui.core.theory.quadrature import Expectations, expectations
from cases import for_each

# These have no type stubs.
integrate, special, stats = (import_module(f"scipy.{name}") for name in ("integrate", "special", "stats"))
SCALES = (0.0, 1e-4, 0.05, 0.3, 0.7, 0.999, 1.0, 1.7, 3.0, 5.5, 9.0, 25.0, 64.0, 1e3, 1e6)
COUNTS = (2, 3, 10, 128, 1024, 10_000, 1_000_000)
# The names of expectations: of curves, and in `expectations`.
_SAME = ("entropy", "max_weight", "sum_squared_weights", "jacobian_norm_squared", "jacobian_along_logits")
NAMES = {name: name for name in _SAME} | {"one_hot_rows": "one_hot"}
_VANISH = ("entropy", "jacobian_norm_squared", "jacobian_along_logits")  # in a row of one key


def exact(n: float, s: float) -> Expectations:
    return expectations(np.array([float(n)]), s)


def largest_of(n: int) -> float:
    """E of the largest of n standard normals."""

    def integrand(z: float) -> float:
        return z * n * stats.norm.pdf(z) * stats.norm.cdf(z) ** (n - 1)

    return integrate.quad(integrand, -10, 12, epsabs=1e-13)[0]


@for_each("n", COUNTS)
def test_weights_sum_to_one(n: int) -> None:
    for s in SCALES:
        assert exact(n, s).total_weight[0] == pytest.approx(1, abs=1e-11)


@for_each("s", [0.28, 0.3, 0.33, 0.36, 0.45, 0.49, 0.5, 0.7, 1.3, 4.6, 4.8, 30.0, 900.0, 1e5])
def test_the_share_of_one_hot_rows_of_two_keys_has_a_closed_form(s: float) -> None:
    assert exact(2, s).one_hot[0] == pytest.approx(math.erfc(math.log(19) / (2 * s)), abs=1e-10)


@for_each("s", [0.05, 0.4, 1.0, 2.5, 8.0, 64.0])
def test_two_keys_agree_with_adaptive_quadrature(s: float) -> None:
    def mean(f: Callable[[float, float], float]) -> float:
        """E f(p, 1 − p), where the logits differ by N(0, 2s²)."""

        def integrand(x: float) -> float:
            weight = math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
            x *= s * math.sqrt(2)
            return f(special.expit(x), special.expit(-x)) * weight

        edges = [-12, -9 / s, -1 / s, 0, 1 / s, 9 / s, 12] if s > 1 else [-12, 0, 12]
        return sum(
            integrate.quad(integrand, *pair, epsabs=1e-13, epsrel=1e-13, limit=400)[0] for pair in pairwise(edges)
        )

    e = exact(2, s)
    assert e.entropy[0] == pytest.approx(mean(lambda p, r: special.entr(p) + special.entr(r)), abs=1e-11)
    assert e.max_weight[0] == pytest.approx(mean(max), abs=1e-11)
    assert e.sum_squared_weights[0] == pytest.approx(mean(lambda p, r: p * p + r * r), abs=1e-11)
    # J is p(1 − p) times [[1, −1], [−1, 1]].
    assert e.jacobian_norm_squared[0] == pytest.approx(mean(lambda p, r: 4 * (p * r) ** 2), abs=1e-11)
    assert e.one_hot[0] == pytest.approx(math.erfc(math.log(19) / (2 * s)), abs=1e-11)

    def along(p: float, r: float) -> float:
        return 2 * (p * r * math.log(p / r) / s) ** 2 if p * r else 0.0

    assert e.jacobian_along_logits[0] == pytest.approx(mean(along), abs=1e-11, rel=1e-8)


@pytest.mark.parametrize("n", [3, 10, 128])
@pytest.mark.parametrize("s", [0.4, 1.0, 3.0, 8.0, 40.0])
def test_expectations_agree_with_a_simulation(n: int, s: float) -> None:
    rows = 20_000
    z = np.random.default_rng(n).standard_normal((rows, n))
    x = s * z
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    squares = (p**2).sum(axis=1)
    samples = {
        "entropy": special.entr(p).sum(axis=1),
        "max_weight": p.max(axis=1),
        "sum_squared_weights": squares,
        "jacobian_norm_squared": squares - 2 * (p**3).sum(axis=1) + squares**2,
        "one_hot": (p.max(axis=1) > 0.95) * 1.0,
        "jacobian_along_logits": ((p * (z - (p * z).sum(axis=1, keepdims=True))) ** 2).sum(axis=1),
    }
    e = exact(n, s)
    for name, values in samples.items():
        least = 0.5 / math.sqrt(rows) if name == "one_hot" else 0
        error = max(values.std(), least) / math.sqrt(rows)
        assert abs(values.mean() - getattr(e, name)[0]) < 4 * error, name


@pytest.mark.parametrize("n", [2, 10, 1024, 1_000_000])
def test_equal_logits_and_the_first_order_around_them(n: int) -> None:
    e = exact(n, 0.0)
    assert e.entropy[0] == pytest.approx(math.log(n), abs=1e-13)
    assert e.max_weight[0] == pytest.approx(1 / n)
    assert e.sum_squared_weights[0] == pytest.approx(1 / n)
    assert e.jacobian_norm_squared[0] == pytest.approx((1 - 1 / n) / n)
    assert e.jacobian_along_logits[0] == pytest.approx((1 - 1 / n) / n)
    assert n > 10_000 or e.one_hot[0] == 0
    s = 1e-3
    e = exact(n, s)
    assert e.entropy[0] == pytest.approx(math.log(n) - s * s / 2 * (1 - 1 / n), abs=1e-11)
    assert e.max_weight[0] * n == pytest.approx(1 + s * largest_of(n), abs=2e-5)


@pytest.mark.parametrize("n", [2, 10, 1024, 10_000])
def test_far_beyond_saturation_only_near_ties_matter(n: int) -> None:
    """The two largest logits are within dx of each other with probability E max · dx/s."""
    s, largest = 1e6, largest_of(n)
    e = exact(n, s)
    assert s * e.entropy[0] == pytest.approx(math.pi**2 / 6 * largest, rel=1e-4)
    assert s * (1 - e.max_weight[0]) == pytest.approx(math.log(2) * largest, rel=1e-4)
    assert s * e.jacobian_norm_squared[0] == pytest.approx(largest / 3, rel=1e-4)
    assert s * (1 - e.one_hot[0]) == pytest.approx(math.log(19) * largest, rel=1e-3)


def test_several_numbers_of_keys_at_once_agree_with_each_alone() -> None:
    counts = np.array([2.0, 3.5, 40.0, 8192.0])
    for s in (0.2, 1.5, 6.0, 300.0):
        together = expectations(counts, s)
        for index, n in enumerate(counts):
            for name in NAMES.values():
                tolerance = 1e-8 if name == "one_hot" else 1e-11
                assert getattr(together, name)[index] == pytest.approx(getattr(exact(n, s), name)[0], abs=tolerance)


@pytest.mark.parametrize(
    ("n", "tolerance"),
    [(2, 1e-10), (10, 1e-10), (100, 1e-10), (256, 1e-10), (300, 1e-10), (8192, 1e-10), (1_000_000, 1e-9)],
)
def test_curves_agree_with_the_quadrature(n: int, tolerance: float) -> None:
    scales = np.concatenate([SCALES, np.exp(np.random.default_rng(7).uniform(math.log(0.01), math.log(1e4), 40))])
    found = curves(n, 1, "none").at(scales)
    assert ("one_hot_rows" in found) == (n <= 10_000)
    for index, s in enumerate(scales):
        e = exact(n, s)
        for name in found.keys() & NAMES.keys():
            allowed = {"one_hot_rows": 2e-9, "jacobian_along_logits": 5e-10}.get(name, tolerance)
            assert found[name][index] == pytest.approx(getattr(e, NAMES[name])[0], abs=allowed), (name, s)
        assert found["entropy_fraction"][index] == pytest.approx(e.entropy[0] / math.log(n), abs=tolerance)
        complement = (1 - e.sum_squared_weights[0]) / n
        assert found["weight_times_complement"][index] == pytest.approx(complement, abs=tolerance)


def test_a_single_key_has_all_the_weight() -> None:
    found = curves(1, 1, "none").at(np.array([0.0, 1.0, 1e9]))
    assert found.keys().isdisjoint({"entropy_fraction", "one_hot_rows"})
    for name, values in found.items():
        assert set(values) == {1.0 if name in ("max_weight", "sum_squared_weights") else 0.0}


@for_each(("n_keys", "n_queries"), [(1, 5), (5, 1), (2, 3), (40, 40), (12, 60), (300, 30)])
def test_causal_curves_average_over_the_visible_keys_of_rows(n_keys: int, n_queries: int) -> None:
    lengths = causal_lengths(n_keys, n_queries)
    assert list(lengths) == [min(i + 1, n_keys) for i in range(n_queries)]
    scales = np.array([0.0, 0.5, 2.0, 5.0, 50.0])
    found = curves(n_keys, n_queries, "causal").at(scales)
    for index, s in enumerate(scales):
        several = expectations(lengths[lengths > 1], s) if (lengths > 1).any() else None
        for name in NAMES.keys() & found.keys():
            counted = 0 if name == "one_hot_rows" else int((lengths == 1).sum())
            alone = np.full(counted, 0.0 if name in _VANISH else 1.0)
            rest = getattr(several, NAMES[name]) if several is not None else np.empty(0)
            mean = np.concatenate([alone, rest]).mean()
            assert found[name][index] == pytest.approx(mean, abs=3e-7 if name == "one_hot_rows" else 3e-9), (name, s)
        if several is None:
            assert "entropy_fraction" not in found
        else:
            fraction = (several.entropy / np.log(lengths[lengths > 1])).mean()
            assert found["entropy_fraction"][index] == pytest.approx(fraction, abs=3e-9)


@pytest.mark.slow
def test_the_curves_in_the_file_are_up_to_date() -> None:
    kept, made = np.load(curves_module.FILE), curves_module.make_curves()
    assert kept.shape == made.shape
    for statistic, name in enumerate(curves_module.NAMES):
        # Processors sum in different orders: differences of 1.4e-13 occur. One-hot shares add up n² roundings.
        allowed = 2e-9 if name == "one_hot_rows" else 1e-12
        np.testing.assert_allclose(kept[..., statistic], made[..., statistic], rtol=0, atol=allowed, err_msg=name)


def test_curves_are_stored_for_every_number_of_keys_reached_by_stepping() -> None:
    reached, n_keys = [2], FIELD["n_keys"]
    while reached[-1] < 8_192:
        reached.append(int(n_keys.stepped(reached[-1], 1)))
    assert tuple(reached) == KEPT_CURVES
