"""What all printed programs share: pieces said once, numbers that are read back unchanged, and filled lines."""

import pytest
from attn_tui.core.program.text import Piece, assembled, filled, number
from hypothesis import given
from hypothesis import strategies as st


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_back_unchanged(value: float) -> None:
    assert float(number(value)) == value


def test_a_round_number_is_short() -> None:
    assert [number(value) for value in (0.5, 64.0, 1 / 3)] == ["0.5", "64", "0.3333333333333333"]


@pytest.mark.parametrize(("width", "lines"), [(12, ["some, words,"]), (11, ["some,", "words,"])])
def test_lines_are_filled_to_the_width(width: int, lines: list[str]) -> None:
    assert filled(["some", "words"], width) == lines


@pytest.mark.parametrize(("value", "defines", "times"), [("1", False, 1), ("2", False, 2), ("2", True, 1)])
def test_a_piece_is_said_again_if_it_computes_from_one_that_changed(value: str, defines: bool, times: int) -> None:
    blocks = [[Piece(f"a = {each}"), Piece("b = a", defines)] for each in ("1", value)]
    assert assembled([], blocks, []).count("b = a") == times
