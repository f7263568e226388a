"""Rounding to number formats, attention in these formats, and what it loses."""

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.attention.formats import FORMATS, number_format
from attn_tui.core.attention.precision import Rounded, losses, low_precision_scores, low_precision_weights, round_to
from attn_tui.core.attention.scores import MECHANISMS, BilinearWeights, Mechanism, draw_weights, scores
from attn_tui.core.attention.softmax import softmax
from attn_tui.core.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

every_format = pytest.mark.parametrize("name", FORMATS)
FEW_BITS = [name for name, form in FORMATS.items() if form.bits <= 16]
of_few_bits = pytest.mark.parametrize("name", FEW_BITS)


def dtype_of(name: str) -> Any:
    return np.dtype(getattr(ml_dtypes, name, name))


@every_format
def test_declared_formats_agree_with_ml_dtypes(name: str) -> None:
    form, info = FORMATS[name], cast(Any, ml_dtypes).finfo(dtype_of(name))
    assert (form.name, form.bits, form.mantissa, form.min_exponent) == (name, info.bits, info.nmant, info.minexp)
    assert form.largest == float(info.max)


def test_limits_of_the_naive_exponential_are_the_known_ones() -> None:
    limits = {
        "float16": 11.09, "bfloat16": 88.72, "float32": 88.72, "float8_e5m2": 10.96, "float8_e4m3fn": 6.10,
        "float64": 709.78,
    }  # fmt: skip
    assert {name: round(FORMATS[name].exp_limit, 2) for name in limits} == limits
    for form in FORMATS.values():
        assert math.exp(form.exp_limit * (1 - 1e-12)) <= form.largest


def all_numbers(name: str) -> Any:
    """Every finite number of a format, in order, and whether its last bit is 0."""
    bits = np.arange(1 << FORMATS[name].bits).astype(f"uint{FORMATS[name].bits}")
    with np.errstate(invalid="ignore"):
        numbers = bits.view(dtype_of(name)).astype(np.float64)
    kept = np.isfinite(numbers) & ~((numbers == 0) & np.signbit(numbers))
    order = np.argsort(numbers[kept])
    return numbers[kept][order], (bits[kept][order] & 1) == 0


def nearest(x: float, numbers: Any, even: Any) -> float:
    """The number of a format nearest to x, the even one of two; x is between the smallest and the largest."""
    above = int(np.searchsorted(numbers, x))
    if numbers[above] == x:
        return x
    below = above - 1
    down, up = x - numbers[below], numbers[above] - x
    if down == up:
        return float(numbers[below] if even[below] else numbers[above])
    return float(numbers[below] if down < up else numbers[above])


@of_few_bits
def test_numbers_are_rounded_to_the_nearest_and_ties_to_even(name: str) -> None:
    numbers, even = all_numbers(name)
    largest, rng = FORMATS[name].largest, np.random.default_rng(0)
    finite = numbers[np.abs(numbers) < largest]
    halves = (finite[1:] + finite[:-1]) / 2
    some = rng.choice(halves, 200)
    x = np.concatenate([
        rng.choice(numbers, 50), some, np.nextafter(some.astype(np.float32), np.inf), rng.standard_normal(200),
        rng.uniform(-largest, largest, 100), 2.0 ** rng.uniform(-30, 8, 200), [0, largest, -largest],
    ]).astype(np.float32)  # fmt: skip
    found = round_to(x, name)
    assert found.values.dtype == np.float32
    assert not found.overflow.any()
    assert found.values.tolist() == [nearest(float(each), numbers, even) for each in x]


@every_format
def test_rounding_twice_is_rounding_once(name: str) -> None:
    once = round_to(np.random.default_rng(0).normal(0, 100, 1000), name).values
    assert np.array_equal(round_to(once, name).values, once)


def test_rounding_to_the_format_an_array_has_keeps_the_array() -> None:
    x = np.random.default_rng(0).normal(size=100)
    single = x.astype(np.float32)
    assert round_to(x, "float64").values is x
    assert round_to(single, "float32").values is single
    assert np.array_equal(round_to(x, "float32").values, single)
    assert round_to(single, "float64").values.dtype == np.float64
    assert round_to(np.array([1e39]), "float32").overflow.tolist() == [True]
    assert round_to(np.array([1e39]), "float64").overflow.tolist() == [False]


@pytest.mark.parametrize(
    ("name", "holds", "overflows", "becomes"),
    [
        ("float16", 65_519.0, 65_520.0, math.inf),
        ("bfloat16", 3.396e38, 3.397e38, math.inf),
        ("float8_e5m2", 61_439.0, 61_440.0, 57_344.0),
        ("float8_e4m3fn", 464.0, 464.1, 448.0),
        ("float8_e4m3fn", 464.0, 1e30, 448.0),
        ("float8_e4m3fn", 464.0, math.inf, 448.0),
        ("float32", 3.4028235e38, math.inf, math.inf),
    ],
)
def test_numbers_that_round_beyond_the_largest_one_overflow(
    name: str, holds: float, overflows: float, becomes: float
) -> None:
    found = round_to(np.array([holds, overflows, -holds, -overflows], np.float32), name)
    assert found.overflow.tolist() == [False, True, False, True]
    assert found.values.tolist() == pytest.approx([FORMATS[name].largest, becomes, -FORMATS[name].largest, -becomes])


@every_format
def test_a_single_number_is_rounded_like_an_array(name: str) -> None:
    assert round_to(np.array(0.3), name).values == round_to(np.array([0.3]), name).values[0]


@every_format
def test_nan_stays_nan_and_counts_as_overflow(name: str) -> None:
    found = round_to(np.array([np.nan, 1.0]), name)
    assert np.isnan(found.values).tolist() == [True, False]
    assert found.overflow.tolist() == [True, False]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    functions: list[Callable[[str], Any]] = [number_format, lambda name: round_to(np.ones(1), name)]
    for function in functions:
        with pytest.raises(InputError, match=r"must be one of float64, float32, float16, bfloat16, .*, not 'fp16'"):
            function("fp16")


@pytest.mark.parametrize("mechanism", MECHANISMS)
@of_few_bits
def test_inputs_and_scores_are_rounded(name: str, mechanism: Mechanism) -> None:
    rng = np.random.default_rng(0)
    q, k = (rng.standard_normal((5, 16), dtype=np.float32) for _ in range(2))
    weights = draw_weights(mechanism, 16, rng, gain=4.0)
    found = low_precision_scores(q, k, name, mechanism, weights)
    numbers, _ = all_numbers(name)
    assert np.isin(found.values, numbers).all()
    exact = scores(q.astype(np.float64), k.astype(np.float64), mechanism, weights)
    error = np.abs(found.values - exact).max() / np.abs(exact).max()
    assert 2.0 ** -(FORMATS[name].mantissa + 4) < error < 2.0 ** -(FORMATS[name].mantissa - 2)


def test_a_dot_product_in_bfloat16_by_hand() -> None:
    q, k = np.array([[1.0, 1.0, 2.0**-9]]), np.array([[1.0, 2.0**-8, 1.0]])
    # In float32 it is 1 + 2⁻⁸ + 2⁻⁹; in bfloat16 the next number above 1 is 1 + 2⁻⁷, and ¾ of that is nearer to it.
    assert low_precision_scores(q, k, "bfloat16").values.tolist() == [[1 + 2.0**-7]]


def test_queries_keys_weights_and_sinks_are_rounded_before_they_are_used() -> None:
    """Three times 85 (1 + 3·2⁻¹⁰) is 255.75 and would become 256; but 1 + 3·2⁻¹⁰ is rounded to 1 before."""
    more, one, many = np.array([[1 + 3 * 2.0**-10]]), np.array([[1.0]]), np.array([[85.0]])
    rows = [np.tile(each, (1, 3)) for each in (more, many)]
    assert (rows[0] @ rows[1].T)[0, 0] > 255.5
    for q, k in (rows, rows[::-1]):
        assert low_precision_scores(q, k, "bfloat16").values.tolist() == [[255.0]]
    weights = BilinearWeights(np.diag([1 + 3 * 2.0**-10] * 3))
    ones = np.tile(one, (1, 3))
    assert low_precision_scores(ones, rows[1], "bfloat16", "bilinear", weights).values.tolist() == [[255.0]]
    assert low_precision_weights(np.zeros(2, np.float32), "bfloat16", sink=20.04) == pytest.approx(
        low_precision_weights(np.zeros(2, np.float32), "bfloat16", sink=20.0), rel=1e-12
    )


@of_few_bits
def test_weights_are_numbers_of_the_format(name: str) -> None:
    logits = np.random.default_rng(0).normal(0, 3, (20, 30)).astype(np.float32)
    found, (numbers, _) = low_precision_weights(logits, name), all_numbers(name)
    assert np.isin(found, numbers).all()
    assert found == pytest.approx(softmax(logits), rel=2.0 ** -(FORMATS[name].mantissa + 1), abs=2.0**-10)
    assert low_precision_weights(np.zeros(3, np.float32), "float8_e4m3fn").tolist() == [0.34375] * 3


def test_sums_are_made_in_float32() -> None:
    ones = np.ones((1, 4096))
    assert low_precision_scores(ones, ones, "bfloat16").values.tolist() == [[4096.0]]  # bfloat16 sums stop at 256


def report(q: Any, k: Any, name: str, **how: Any) -> Any:
    return losses(scores(q, k), low_precision_scores(q, k, name), name, **how)


def test_float64_loses_nothing() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((8, 32)), rng.standard_normal((10, 32))
    found = report(q, k, "float64", multiplier=0.3, softcap=20.0, sink=0.0)
    assert np.all(found.weight_error == 0)
    assert not found.score_overflow.any()
    assert not found.exp_overflow.any()


def test_fewer_bits_lose_more() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((64, 64)), rng.standard_normal((128, 64))
    order = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
    error = {name: report(q, k, name).weight_error.mean() for name in order}
    assert sorted(error, key=lambda name: error[name]) == order
    assert error["float32"] < 1e-5
    assert 1e-4 < error["float16"] < error["bfloat16"] / 4 < 0.05


@given(st.sampled_from(FEW_BITS), st.floats(0.01, 1), st.sampled_from([None, 5.0]), st.booleans(), st.integers(0, 99))
def test_weight_error_is_total_variation(
    name: str, multiplier: float, cap: float | None, sink: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    q, k = rng.standard_normal((2, 3, 16)), rng.standard_normal((2, 5, 16))
    hidden = rng.random((2, 3, 5)) < 0.3
    sinks = 0.3 if sink else None
    found = report(q, k, name, multiplier=multiplier, softcap=cap, hidden=hidden, sink=sinks)
    low = low_precision_scores(q, k, name).values.astype(np.float64)

    def weights(raw: Any) -> Any:
        logits = multiplier * raw
        return softmax(cap * np.tanh(logits / cap) if cap else logits, hidden, sinks)

    p, rounded = weights(q @ k.mT), round_to(weights(low), name).values
    expected = np.abs(p - rounded).sum(axis=-1) / 2
    # A softmax in float32 may move a weight between two numbers to the other one.
    assert found.weight_error == pytest.approx(expected, abs=2 * 2.0 ** -FORMATS[name].mantissa / 4)
    assert np.all(found.weight_error[hidden.all(axis=-1)] == 0)


def test_only_visible_overflows_are_counted() -> None:
    q = np.array([[300.0], [1.0], [-300.0]])
    k = np.array([[300.0], [1.0], [11.0], [0.0]])
    found = report(q, k, "float16")
    assert found.score_overflow.tolist() == [1, 0, 1]
    assert found.exp_overflow.tolist() == [3, 1, 0]
    hidden = np.array([[True, False, False, False]])
    seen = report(q, k, "float16", hidden=hidden)
    assert seen.score_overflow.tolist() == [0, 0, 0]
    assert seen.exp_overflow.tolist() == [2, 0, 0]
    scaled = report(q, k, "float16", multiplier=0.01)
    assert scaled.score_overflow.tolist() == [1, 0, 1]
    assert scaled.exp_overflow.tolist() == [2, 0, 0]


def test_a_row_with_an_infinite_score_has_no_weights_left() -> None:
    q, k = np.array([[300.0], [-300.0]]), np.array([[300.0], [1.0], [0.0]])
    with np.errstate(all="raise", under="ignore"):
        found = report(q, k, "float16")
        assert np.isnan(low_precision_weights(low_precision_scores(q, k, "float16").values, "float16")[0]).all()
    assert found.weight_error.tolist() == [1, pytest.approx(0)]  # the score −∞ has weight 0, as it should
    assert report(q, k, "bfloat16").weight_error == pytest.approx(0)


def test_a_row_with_nothing_above_minus_infinity_has_no_weights_left() -> None:
    q, k = np.array([[-300.0]] * 3), np.array([[300.0], [1.0], [400.0]])
    hidden = np.array([[False, True, False], [True, True, True], [False, False, False]])
    with np.errstate(all="raise", under="ignore"):
        assert report(q, k, "float16", hidden=hidden).weight_error.tolist() == [1, 0, pytest.approx(0)]
        assert report(q, k, "float16", hidden=hidden, sink=0.0).weight_error.tolist() == [0, 0, pytest.approx(0)]


def test_a_saturated_score_still_has_weights() -> None:
    q, k = np.array([[30.0]]), np.array([[30.0], [20.0], [0.0]])
    found = report(q, k, "float8_e4m3fn")
    assert found.score_overflow.tolist() == [2]
    assert found.weight_error.tolist() == [0.5]  # 900 and 600 become the same number


def test_a_soft_cap_keeps_exponentials_from_overflowing() -> None:
    q, k = np.array([[30.0]]), np.array([[30.0], [20.0], [0.0]])
    assert report(q, k, "float16").exp_overflow.tolist() == [2]
    assert report(q, k, "float16", softcap=10.0).exp_overflow.tolist() == [0]


def test_naive_exponentials_overflow_as_often_as_the_law_of_scores_predicts() -> None:
    """At d_k 64 the share of scores beyond float16's 11.09 is 0.082 for normal components."""
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((200, 16, 64)), rng.standard_normal((200, 32, 64))
    each = report(q, k, "float16").exp_overflow.mean(axis=1) / 32
    assert each.mean() == pytest.approx(0.082, abs=4 * each.std() / math.sqrt(200) + 5e-4)


@pytest.mark.parametrize("overflow", [math.inf, math.nan])
def test_losses_take_scores_that_were_rounded_elsewhere(overflow: float) -> None:
    rounded = Rounded(np.array([[1.0, overflow]], np.float32), np.array([[False, True]]))
    found = losses(np.array([[1.0, 2.0]]), rounded, "float16")
    assert [each.tolist() for each in found] == [[1], [1], [1]]


def test_formats_load_neither_numpy_nor_ml_dtypes_before_they_need_them() -> None:
    code = """if True:
        import sys, attn_tui.core.attention.formats
        loaded = ["numpy" in sys.modules]
        import numpy as np
        from attn_tui.core.attention.precision import round_to
        for name in ("float64", "float32", "float16", "bfloat16"):
            round_to(np.ones(3), name)
            loaded.append("ml_dtypes" in sys.modules)
        print(loaded)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[False, False, False, False, True]"
