"""What all printed programs share: pieces said once, numbers that are read back unchanged, and filled lines."""

import pytest
from attn_tui.core.program.text import Piece, assembled, code_of, filled, in_torch, number
from cases import for_each
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


@pytest.mark.parametrize(
    "text", ["'np.max(-1).npz'", '"np.array(axis=0)"', '"it\'s \\"np.x\\""', "# np.max(-1), it's so"]
)
def test_strings_and_comments_stay_as_they_are(text: str) -> None:
    assert in_torch(f"np.exp(x)  {text}") == f"torch.exp(x)  {text}"
    assert code_of(f"x = 1 {text}") == "x = 1 "


@for_each(
    ("numpy", "torch"),
    [
        ("x.max(-1, keepdims=True)", "x.amax(-1, keepdim=True)"),
        ("x.max()", "x.max()"),
        ("x.std() + x.var(-1)", "x.std(correction=0) + x.var(-1, correction=0)"),
        ("np.array([1]).astype(np.float64)", "torch.tensor([1]).double()"),
        ("x.astype(ml_dtypes.bfloat16)", "x.to(torch.bfloat16)"),
        ("np.random.default_rng(np.load(a))", "np.random.default_rng(np.load(a))"),
    ],
)
def test_numpy_becomes_pytorch(numpy: str, torch: str) -> None:
    assert in_torch(numpy) == torch
