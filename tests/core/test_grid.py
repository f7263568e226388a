"""The texts of grids of d_k, and of the values of a second axis."""

import itertools

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.grid import parse_grid, parse_values
from attn_tui.core.parameters import FIELD
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st


@for_each(
    ("text", "values"),
    [
        ("64", [64]),
        ("16,64,256", [16, 64, 256]),
        (" 256 , 16,64,16 ", [16, 64, 256]),
        ("1:5", [1, 2, 3, 4, 5]),
        ("7:7", [7]),
        ("1:512", range(1, 513)),
        ("1:20:8", [1, 9, 17]),
        ("8:24:8", [8, 16, 24]),
        ("1:4096:log13", [2**power for power in range(13)]),
        ("64:64:log2", [64]),
        ("1:3:log9", [1, 2, 3]),
        ("16,1:4:log3,100:110:5", [1, 2, 4, 16, 100, 105, 110]),
        ("1:16384", range(1, 16_385)),
        ("8,2k,1k:4k:log3", [8, 1024, 2048, 4096]),
    ],
)
def test_grids(text: str, values: list[int]) -> None:
    assert parse_grid(text) == tuple(values)


@given(st.integers(1, 16_384), st.integers(1, 16_384), st.integers(2, 300))
def test_a_log_grid_holds_both_ends_and_grows_evenly(one: int, other: int, count: int) -> None:
    low, high = sorted((one, other))
    values = parse_grid(f"{low}:{high}:log{count}")
    assert (values[0], values[-1]) == (low, high)
    assert [*values] == sorted(set(values))
    factor = (high / low) ** (1 / (count - 1))
    for before, after in itertools.pairwise(values):
        assert after - before == 1 or (after - 0.5) / (before + 0.5) <= factor * (1 + 1e-9)
    assert len(values) <= count


ACCEPTED = "must be whole numbers from 1 to 16384, such as 16,64,256, 1:512, 1:512:8 or 1:4096:log24, not "
SHAPES = [
    "", " ", ",", "1,", ":5", "1:", "1:64:", "1:64:log", "1:2:3:4", "-4", "16.5", "1e3", "all", "log0", "1_000", "٣",
]  # fmt: skip
BOUNDS = {
    "0": "must be from 1 to 16384", "20000": "must be from 1 to 16384", "1:16385": "must be from 1 to 16384",
    "5:1": "must not end below its start", "1:64:0": "must have a step of 1 or more",
    "1:64:log0": "must start at 1 or more and have log2 to log16384",
    "1:64:log1": "must start at 1 or more and have log2 to log16384",
    "1:64:log99999": "must start at 1 or more and have log2 to log16384",
    "1:1e9": ACCEPTED, "9" * 40: ACCEPTED, "1:5\n7": ACCEPTED, **dict.fromkeys(SHAPES, ACCEPTED),
}  # fmt: skip


@for_each("text", BOUNDS)
def test_an_invalid_grid_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_grid(text)
    message = str(error.value)
    assert message.startswith("d_k: ")
    assert BOUNDS[text] in message
    assert "\n" not in message
    assert len(message) < 200


def test_a_grid_has_the_bounds_of_its_field() -> None:
    assert parse_grid("0:2", FIELD["seed"]) == (0, 1, 2)
    for text in ("0:8:log2", "0:4294967295", "0:16383,20000"):
        with pytest.raises(InputError, match="seed: "):
            parse_grid(text, FIELD["seed"])


def test_a_second_axis_accepts_what_its_field_accepts() -> None:
    assert parse_values("64:256:64", FIELD["n_keys"]) == (64, 128, 192, 256)
    assert parse_values("sqrt_d_k, none", FIELD["scale"]) == ("sqrt_d_k", "none")
    assert parse_values("0.5,-0.5,0.5", FIELD["correlation"]) == (0.5, -0.5)
    with pytest.raises(InputError, match="one of none, sqrt_d_k"):
        parse_values("sqrt", FIELD["scale"])
    with pytest.raises(InputError, match="a number from -1 to 1"):
        parse_values("0.5,", FIELD["correlation"])
