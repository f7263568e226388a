"""Rounding to number formats, and tensors as they are stored in them."""

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.attention import precision
from attn_tui.core.attention.formats import FORMATS, number_format
from attn_tui.core.attention.precision import nan_rows, round_to, stored
from attn_tui.core.errors import InputError
from cases import for_each
from number_formats import all_numbers, dtype_of

every_format = for_each("name", FORMATS)
FEW_BITS = [name for name, form in FORMATS.items() if form.bits <= 16]
of_few_bits = for_each("name", FEW_BITS)


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


@for_each(
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


def test_rows_have_no_softmax_for_either_of_two_causes() -> None:
    """A visible +∞ or NaN, or nothing visible above −∞; with a sink, only the first."""
    low, high, nan = -np.inf, np.inf, np.nan
    logits = np.array(
        [[0.0, high], [low, low], [0.0, nan], [0.0, low], [0.0, 1.0], [high, 0.0], [low, 0.0], [low, nan]]
    )
    hidden = np.zeros(logits.shape, bool)
    hidden[5, 0] = hidden[6, 1] = hidden[7] = True
    assert np.flatnonzero(nan_rows(logits, hidden, False)).tolist() == [0, 1, 2, 6]
    assert np.flatnonzero(nan_rows(logits, hidden, True)).tolist() == [0, 2]
    assert np.flatnonzero(nan_rows(logits, None, False)).tolist() == [0, 1, 2, 5, 7]


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    functions: list[Callable[[str], Any]] = [number_format, lambda name: round_to(np.ones(1), name)]
    for function in functions:
        with pytest.raises(InputError, match=r"must be one of float64, float32, float16, bfloat16, .*, not 'fp16'"):
            function("fp16")


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_a_float8_tensor_has_a_scale_of_its_own(name: str) -> None:
    """Its size does not matter, and no element overflows; another tensor's elements do not matter either."""
    x = np.random.default_rng(0).standard_normal((2, 30, 8)).astype(np.float32)
    x[1] *= 1e6
    found = stored(x, name)
    for tensor, own in zip(x, found, strict=True):
        assert np.array_equal(stored(tensor, name), own)
        assert np.array_equal(stored(tensor * 1024, name), own * 1024)
        assert np.abs(own).max() == pytest.approx(np.abs(tensor).max(), rel=1e-6)
        numbers, _ = all_numbers(name)
        units = own / (np.abs(tensor).max() / np.float32(FORMATS[name].largest))
        assert np.abs(units[..., np.newaxis] - numbers).min(axis=-1).max() < 1e-4
    assert not stored(np.zeros((3, 4)), name).any()


@pytest.mark.parametrize("name", ["float16", "float8_e4m3fn"])
def test_tensors_are_rounded_in_parts_as_they_are_whole(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 7, 3)).astype(np.float32)
    whole = stored(x, name)
    monkeypatch.setattr(precision, "_AT_ONCE", 6)
    assert np.array_equal(stored(x, name), whole)


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[False, False, False, False, True]"
