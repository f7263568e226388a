"""Numbers in tables: constant width, aligned decimal points, correct rounding."""

import math

import pytest
from attn_tui.core.tables.formats import binary, metric
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.numbers import (
    POINT,
    STDERR,
    VALUE,
    aligned,
    error,
    minus_signs,
    percent,
    short,
    short_in_unit,
)
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st

finite = st.floats(-1e300, 1e300)
both = st.sampled_from([UNICODE, ASCII])


def read(text: str) -> float:
    """Return the number that a text shows."""
    return float(text.replace("−", "-"))


@given(value=finite, glyphs=both)
def test_a_value_has_always_the_same_width_three_digits_and_five_places(value: float, glyphs: Glyphs) -> None:
    assert len(aligned(value, glyphs)) == VALUE
    shown = read(aligned(value, glyphs))
    assert shown == pytest.approx(value, rel=1e-3, abs=6e-6)
    assert (shown == 0) == (value == 0)


@given(value=st.floats(-9_999, 9_999), glyphs=both)
def test_decimal_points_are_aligned(value: float, glyphs: Glyphs) -> None:
    text = aligned(value, glyphs)
    if "e" in text:
        assert 0 < abs(value) < 1e-4
    elif "." in text:
        assert text.index(".") == POINT
    else:  # the last digit of an integer is where it would be before a point
        assert text[POINT - 1].isdigit()
        assert not text[POINT:].strip()


def test_ends_of_the_aligned_range() -> None:
    shown = {
        0.0: "    0      ",
        1.0: "    1.000  ",
        0.5: "    0.5000 ",
        0.094_999: "    0.09500",
        0.095: "    0.0950 ",
        0.000_095: "    0.00010",
        0.000_094_9: "  9.490e−5 ",
        9_999.0: " 9999      ",
        -1_234.5: "−1234      ",
        10_000.0: "   1.000e4 ",
        -1e-9: " −1.000e−9 ",
        5e-324: "4.941e−324 ",
    }
    assert {value: aligned(value, UNICODE) for value in shown} == shown
    assert aligned(-0.0, UNICODE) == shown[0.0]
    assert aligned(-0.25, ASCII) == "   -0.2500 "


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
def test_a_missing_value_is_a_dash_in_the_units_place(glyphs: Glyphs) -> None:
    dash = glyphs.say("—")
    assert aligned(None, glyphs) == f"    {dash}      "
    assert short(None, glyphs) == dash
    assert error(None, glyphs) == " " * STDERR


@given(value=finite)
def test_a_short_number_has_at_most_four_digits_and_no_trailing_zeros(value: float) -> None:
    text = short(value, UNICODE)
    mantissa = text.partition("e")[0]
    assert sum(character.isdigit() for character in mantissa.lstrip("−").lstrip("0.")) <= 4
    assert not ("." in mantissa and "e" not in text and text.endswith(("0", ".")))
    assert read(text) == pytest.approx(value, rel=6e-2)


def test_ends_of_short_numbers() -> None:
    shown = {
        0.0: "0",
        8.0: "8",
        0.125: "0.125",
        0.088_388: "0.0884",
        12.86: "12.9",
        99.96: "100",
        128.4: "128",
        9_999.0: "9999",
        16_384.0: "1.64e4",
        0.000_99: "0.001",
        0.000_1: "1.00e−4",
        -2.5: "−2.5",
    }
    assert {value: short(value, UNICODE) for value in shown} == shown


@given(stderr=st.just(0.0) | st.floats(1e-9, 9e9), glyphs=both)
def test_a_standard_error_always_has_the_same_width(stderr: float, glyphs: Glyphs) -> None:
    assert len(error(stderr, glyphs)) == STDERR


@given(stderr=st.floats(1e-9, 9e-4) | st.floats(1e-3, 9e9), glyphs=both)
def test_a_standard_error_has_two_digits(stderr: float, glyphs: Glyphs) -> None:
    assert read(error(stderr, glyphs)) == pytest.approx(stderr, rel=5.1e-2)


@pytest.mark.parametrize("stderr", [2.2e-16, 1.5e-10])
def test_an_extreme_standard_error_is_not_wider(stderr: float) -> None:
    assert len(error(stderr, UNICODE)) == STDERR


def test_a_standard_error_is_rounded_as_wide_as_any_and_a_plain_zero() -> None:
    assert error(0.000_99, UNICODE) == "0.0010"
    assert error(0.0, UNICODE) == "0     "
    assert error(0.005, UNICODE) == "0.0050"
    assert error(12.0, UNICODE) == "12    "


def test_a_value_that_rounds_up_out_of_the_range_keeps_the_point() -> None:
    text = aligned(-9_999.7, UNICODE)
    assert "e" in text or not text[POINT:].strip()


def test_percentages_are_0_or_100_only_if_exact() -> None:
    shown = {
        0.0: "0 %",
        1e-12: "< 0.1 %",
        0.001: "0.1 %",
        0.0994: "9.9 %",
        0.0996: "10 %",
        0.5: "50 %",
        0.985: "98 %",
        0.9973: "99.7 %",
        0.9995: "> 99.9 %",
        math.nextafter(1, 0): "> 99.9 %",
        1.0: "100 %",
    }
    assert {share: percent(share) for share in shown} == shown


@given(share=st.floats(0, 1))
def test_the_percentage_of_a_part_is_never_0_or_100(share: float) -> None:
    assert (percent(share) in ("0 %", "100 %")) == (100 * share in (0, 100))


@given(value=finite)
def test_negative_numbers_have_a_minus_sign_except_in_ascii(value: float) -> None:
    for show in (aligned, short):
        assert "-" not in show(value, UNICODE)
        assert show(value, ASCII).isascii()
        assert show(value, ASCII) == show(value, UNICODE).replace("−", "-")


@for_each(
    ("number", "text"),
    [
        (0, "0"), (7, "7"), (999, "999"), (1000, "1 k"), (999_949, "999.9 k"), (999_950, "1.000 M"),
        (8_589_934_592, "8.590 G"), (2_684_354_560, "2.684 G"), (21_990_232_555_520, "21.99 T"), (10**30, "1 Q"),
        (10**37, "1.000e+07 Q"),
    ],
)  # fmt: skip
def test_a_large_count_has_four_digits_and_a_prefix(number: int, text: str) -> None:
    assert metric(number) == text


@for_each(
    ("count", "text"),
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1 KiB"), (131_072, "128 KiB"), (516_096, "504 KiB"),
        (2**20 - 1, "1.000 MiB"), (4_718_592, "4.5 MiB"), (2**30, "1 GiB"), (2**82, "4 YiB"),
    ],
)  # fmt: skip
def test_bytes_are_in_powers_of_1024(count: int, text: str) -> None:
    assert binary(count) == text


def test_a_sentence_has_minus_signs_before_its_numbers_and_keeps_its_hyphens() -> None:
    said = "cos(q, k) 0.57; -0.18 on average; one-hot, d-1 and 1e-3"
    assert minus_signs(said, UNICODE) == "cos(q, k) 0.57; −0.18 on average; one-hot, d-1 and 1e-3"
    assert minus_signs(said, ASCII) == said


@pytest.mark.parametrize(("value", "unit", "text"), [(0.0, "share", "none"), (0.25, "share", "25 %"), (0.0, "", "0")])
def test_a_short_share_is_a_percentage_or_none(value: float, unit: str, text: str) -> None:
    assert short_in_unit(value, unit, UNICODE) == text
