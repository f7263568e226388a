"""What hides keys from queries in a capture: masks, lengths and causal attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, every_head, has_note, layered, opened, pair, refusal, save, visible
from cases import for_each

VISIBLE = np.arange(6) < np.array([6, 2])[:, np.newaxis]  # [batch, keys]
TO_QUERIES = np.broadcast_to(VISIBLE[:, np.newaxis], (2, 5, 6))
LOWEST = float(np.finfo(np.float32).min)
LOWEST_BFLOAT16 = -3.3895313892515355e38


def masked(mask: Array, **sizes: int) -> dict[str, Any]:
    q, k = pair(**sizes)
    return {"q": q, "k": k, "mask": mask}


@for_each("shape", [(2, 6), (2, 1, 1, 6), (2, 1, 6), (2, 1, 5, 6), (2, 5, 6), (2, 4, 5, 6)])
@for_each(
    ("hidden", "shown", "dtype"),
    [
        (False, True, "bool"), (0, 1, "int64"), (0, 1, "uint8"), (0, 1, "float32"),
        (-np.inf, 0, "float32"), (-np.inf, 0, "float16"), (LOWEST, 0, "float32"), (LOWEST, 0, "float64"),
        (-65504, 0, "float16"), (-1e9, 0, "float32"), (-10_000, 0, "float32"),
        (LOWEST_BFLOAT16, 0, "bfloat16"),
    ],
)  # fmt: skip
def test_masks_of_every_shape_and_type(
    tmp_path: Path, shape: tuple[int, ...], hidden: float, shown: float, dtype: str
) -> None:
    spread = np.broadcast_to(VISIBLE.reshape(2, *(1,) * (len(shape) - 2), 6), shape)
    mask = np.where(spread, shown, hidden).astype(getattr(ml_dtypes, dtype, dtype))
    capture = opened(tmp_path, {**layered(1), "layers.0.attn.mask": mask})
    assert capture.layers[0].mask == "layers.0.attn.mask"
    for head in range(4):
        np.testing.assert_array_equal(visible(capture, head=head), TO_QUERIES)


def test_a_mask_of_keys_alone_holds_for_every_text(tmp_path: Path) -> None:
    found = visible(opened(tmp_path, masked(VISIBLE[1])))
    np.testing.assert_array_equal(found, np.broadcast_to(VISIBLE[1], (1, 5, 6)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("batch", [2, None])
def test_each_head_may_have_its_own_mask(tmp_path: Path, order: Literal["C", "F"], batch: int | None) -> None:
    mask = np.random.default_rng(0).random((2, 4, 5, 6) if batch else (4, 5, 6)) < 0.5
    np.savez(tmp_path / "x.npz", **masked(np.array(mask, order=order)))
    capture = open_capture(tmp_path / "x.npz")
    for head in range(4):
        np.testing.assert_array_equal(visible(capture, head=head), mask[:, head] if batch else mask[None, head])


def test_the_metadata_names_the_mask_of_each_layer(tmp_path: Path) -> None:
    tensors = layered(3) | {"local": np.tri(5, 6, dtype=bool), "mask": VISIBLE}
    capture = opened(tmp_path, tensors, layers=[{"mask": "local"}, {"mask": None}, {}])
    assert [layer.mask for layer in capture.layers] == ["local", None, "mask"]
    np.testing.assert_array_equal(visible(capture, 0), np.tri(5, 6, dtype=bool)[np.newaxis])
    assert every_head(capture, 1)[0].visibility is None
    np.testing.assert_array_equal(visible(capture, 2), TO_QUERIES)
    assert has_note(capture, "'mask' is used as the mask of every layer")
    named = opened(tmp_path, tensors, layers=[{"mask": "local"}] * 3)
    assert not has_note(named, "is used as the mask of every layer")


def test_lengths_hide_padding_if_there_is_no_mask(tmp_path: Path) -> None:
    q, k = pair()
    capture = opened(tmp_path, {"q": q, "k": k}, lengths=[6, 2])
    np.testing.assert_array_equal(visible(capture), TO_QUERIES)
    assert has_note(capture, "padding")


def test_a_mask_that_hides_nothing_counts_as_no_mask(tmp_path: Path) -> None:
    assert every_head(opened(tmp_path, masked(np.zeros((2, 6), np.float32))))[0].visibility is None


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_a_mask_of_padding_keys_without_any_hides_nothing(tmp_path: Path, dtype: str) -> None:
    q, k = pair()
    capture = opened(tmp_path, {"q": q, "k": k, "key_padding_mask": np.zeros((2, 6), dtype)})
    assert every_head(capture)[0].visibility is None or visible(capture).all()


def test_a_mask_may_hide_every_key_of_a_row(tmp_path: Path) -> None:
    assert not visible(opened(tmp_path, masked(np.full((5, 6), -np.inf, np.float32)))).any()


def test_the_axes_assumed_for_an_ambiguous_mask_are_noted(tmp_path: Path) -> None:
    capture = opened(tmp_path, masked(np.ones((5, 6), bool), batch=5))
    assert "'mask': axes assumed to be [batch, keys]" in capture.notes


@for_each(
    ("mask", "reason"),
    [
        (np.full((2, 6), np.nan, np.float32), "holds NaN"),
        (np.full((2, 6), np.inf, np.float32), "holds NaN or +∞"),
        (np.full((2, 6), 2, np.int32), "values that are not a mask's"),
        *(
            (np.ones(shape, bool), "here [2, 4, 5, 6]")
            for shape in ((), (2, 7), (3, 6), (2, 3, 5, 6), (1, 2, 4, 5, 6))
        ),
        (np.ones((2, 6), np.complex64), "holds complex64"),
    ],
)
def test_tensors_that_are_not_masks_are_refused(tmp_path: Path, mask: Array, reason: str) -> None:
    np.savez(tmp_path / "x.npz", **masked(mask))
    assert reason in refusal(tmp_path / "x.npz")


def test_metadata_that_names_a_missing_mask_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", layered(1), layers=[{"mask": "padding"}])
    assert "names the mask 'padding', which is not in the file" in refusal(path)


@for_each(
    ("causal", "corner"),
    [
        ("top-left", "top_left"), ("upper_left", "top_left"), ("Bottom-Right", "bottom_right"),
        ("lower right", "bottom_right"), ("false", None), (False, None), ("none", None),
    ],
)  # fmt: skip
def test_causal_attention_has_a_corner(tmp_path: Path, causal: str | bool, corner: str | None) -> None:
    q, k = pair(queries=3, keys=6)
    for metadata in ({"causal": causal}, {"layers": [{"causal": causal}]}):
        capture = opened(tmp_path, {"q": q, "k": k}, **metadata)
        assert capture.layers[0].causal == corner
        if corner is None:
            assert every_head(capture)[0].visibility is None
        else:
            offset = 0 if corner == "top_left" else 3
            np.testing.assert_array_equal(visible(capture), np.tri(3, 6, offset, dtype=bool)[np.newaxis])


def test_the_corner_assumed_for_unequal_numbers_of_queries_and_keys_is_noted(tmp_path: Path) -> None:
    q, k = pair(queries=6)
    square = opened(tmp_path, {"q": q, "k": k}, causal="true")
    wide = opened(tmp_path, layered(1), causal=True)
    assert square.layers[0].causal == wide.layers[0].causal == "top_left"
    assert not has_note(square, "causal")
    assert has_note(wide, "assuming top-left")


def test_causal_attention_and_padding_hide_together(tmp_path: Path) -> None:
    capture = opened(tmp_path, masked(VISIBLE), causal="top-left")
    np.testing.assert_array_equal(visible(capture), VISIBLE[:, np.newaxis] & np.tri(5, 6, dtype=bool))
