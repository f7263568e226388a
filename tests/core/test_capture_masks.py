"""What hides keys from queries in a capture: masks, what True means in them, lengths and causal attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, every_head, has_note, layered, named, numbers, opened, pair, refusal, save, visible
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


def test_a_mask_that_hides_nothing_counts_as_no_mask(tmp_path: Path) -> None:
    assert every_head(opened(tmp_path, masked(np.zeros((2, 6), np.float32))))[0].visibility is None


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_a_mask_of_padding_keys_without_any_hides_nothing(tmp_path: Path, dtype: str) -> None:
    q, k = pair()
    capture = opened(tmp_path, {"q": q, "k": k, "key_padding_mask": np.zeros((2, 6), dtype)})
    assert every_head(capture)[0].visibility is None or visible(capture).all()


def test_a_mask_may_hide_every_key_of_a_row(tmp_path: Path) -> None:
    assert not visible(opened(tmp_path, masked(np.full((5, 6), -np.inf, np.float32)))).any()


@for_each(
    ("shape", "batch", "axes"),
    [
        ((5, 6), 5, "[batch, keys]"), ((1, 6), 5, ""), ((5, 6), 2, ""), ((2, 6), 2, ""),
        ((4, 5, 6), 4, "[batch, queries, keys]"), ((1, 5, 6), 4, ""), ((2, 5, 6), 2, ""),
    ],
)  # fmt: skip
def test_the_axes_assumed_for_an_ambiguous_mask_are_noted(
    tmp_path: Path, shape: tuple[int, ...], batch: int, axes: str
) -> None:
    capture = opened(tmp_path, masked(np.ones(shape, bool), batch=batch))
    assert has_note(capture, f"'mask': axes assumed to be {axes}") is bool(axes)


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


def test_a_mask_has_a_bounded_size_for_each_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(tmp_path / "x.npz", **masked(np.ones((2, 4, 5, 6), bool)))
    monkeypatch.setattr("attn_tui.core.captures.masks.LARGEST", 59)
    assert "must have at most 59 numbers per head" in refusal(tmp_path / "x.npz")
    monkeypatch.setattr("attn_tui.core.captures.masks.LARGEST", 60)
    assert open_capture(tmp_path / "x.npz").layers[0].mask == "mask"


@for_each(
    ("mask", "queries", "reason"),
    [
        ({"mask": np.ones((3, 5, 6), bool)}, 5, "must be [keys], [batch, keys]"),
        ({"mask": np.ones((2, 5, 6), bool)}, 5, "as in Swin"),
        ({"query_mask": np.ones((3, 5), bool)}, 5, "must be [queries] or [batch, queries], here [4, 5]"),
        ({"query_mask": np.ones((4, 1), bool)}, 1, ""), ({"query_mask": np.ones((4, 5, 1), bool)}, 5, ""),
        ({"query_mask": np.ones((1, 1, 5), bool)}, 5, ""), ({"bias": np.ones((5, 6), np.float32)}, 5, ""),
    ],
)  # fmt: skip
def test_the_first_axis_of_a_mask_is_named_if_it_does_not_fit(
    tmp_path: Path, mask: dict[str, Array], queries: int, reason: str
) -> None:
    tensors = named({"q": numbers(4, 2, queries, 8), "k": numbers(4, 2, 6, 8, seed=1), **mask})
    path = save(tmp_path / "x.safetensors", tensors, schema="attn-tui/qk-2", causal="false")
    assert (reason in refusal(path)) if reason else open_capture(path).unused == ()


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


# The meaning of True, with self-attention over two texts of six tokens, the second of which ends in padding.
Q, K = numbers(2, 1, 6, 4), numbers(2, 1, 6, 4, seed=1)
SQUARE = np.tri(6, dtype=np.bool_)
NEAR = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) < 2
REAL = np.arange(6) < np.array([[6], [4]])  # [batch, keys]
SHORT = np.arange(6) < np.array([[5], [4]])
EYE = np.eye(6, dtype=np.bool_)
SELF = {"schema": "attn-tui/qk-2", "causal": "false", "scale": 0.4, "attention": "self"}
ODD = (numbers(2, 1, 1, 6) > 0) | (np.arange(6) == 0)


def square(folder: Path, masks: dict[str, Array], schema: str = "attn-tui/qk-2") -> Path:
    told = SELF | {"schema": schema} if schema else {}
    return save(folder / "x.safetensors", named({"q": Q, "k": K} | masks), **told)


@for_each(
    "shown",
    [SQUARE[np.newaxis], (SQUARE & ~np.tri(6, k=-3, dtype=bool))[np.newaxis], NEAR[np.newaxis], REAL[:, None]],
)
@for_each("hidden", [False, True])
@for_each("dtype", [np.bool_, np.uint8, np.float32])
def test_the_values_of_an_attn_mask_tell_what_true_means(
    tmp_path: Path, shown: Array, hidden: bool, dtype: type[Any]
) -> None:
    capture = open_capture(square(tmp_path, {"attn_mask": (shown ^ hidden)[:, np.newaxis].astype(dtype)}))
    np.testing.assert_array_equal(visible(capture), np.broadcast_to(shown, visible(capture).shape))


@for_each(
    ("name", "mask", "both"),
    [
        *((name, mask, False) for name in ("mask", "attention_mask") for mask in (~SQUARE, SQUARE & False, ~EYE)),
        *(("attn_mask", mask, True) for mask in (~EYE, EYE, SHORT, np.tile(SHORT[:, None, None], (1, 1, 6, 1)), ODD)),
        ("padding_mask", SHORT.astype(np.int32), False),
    ],
)
def test_a_mask_with_two_possible_meanings_is_asked_about(tmp_path: Path, name: str, mask: Array, both: bool) -> None:
    for stored in (mask, ~mask) if both else (mask,):
        path = square(tmp_path, {name: stored}, "attn-tui/qk-2" if "pad" in name or both else "")
        assert "--mask-true visible or hidden" in refusal(path)
        for meaning in ("visible", "hidden") if both else ():
            shown = stored if meaning == "visible" else ~stored
            whole = shown[:, np.newaxis] if shown.shape == (2, 6) else shown[:, 0] if shown.ndim == 4 else shown
            found = visible(open_capture(path, mask_true=meaning))  # pyright: ignore[reportArgumentType]
            np.testing.assert_array_equal(found, np.broadcast_to(whole, found.shape))


def test_masks_of_padding_have_their_usual_meaning(tmp_path: Path) -> None:
    for name, mask in (("key_padding_mask", ~REAL), ("padding_mask", ~REAL), ("mask", ODD), ("attention_mask", ODD)):
        found = visible(open_capture(square(tmp_path, {name: mask})))
        shown = ODD[:, 0] if mask is ODD else REAL[:, np.newaxis]
        np.testing.assert_array_equal(found, np.broadcast_to(shown, found.shape))
    for integers in (REAL, ~REAL):
        found = visible(open_capture(square(tmp_path, {"padding_mask": integers.astype(np.int32)})))
        np.testing.assert_array_equal(found[:, 0], REAL)
    both = open_capture(square(tmp_path, {"key_padding_mask": ~REAL, "attn_mask": ~SQUARE}))
    np.testing.assert_array_equal(visible(both), SQUARE & REAL[:, np.newaxis])


def test_the_mask_of_a_single_query_may_hide_its_own_key(tmp_path: Path) -> None:
    tensors = named({"q": Q[:, :, -1:], "k": K, "mask": np.arange(6) != 5})
    for schema in ({"schema": "attn-tui/qk-2"}, {}):
        capture = opened(tmp_path, tensors, **schema, causal="bottom-right")
        np.testing.assert_array_equal(visible(capture)[0], [[True] * 5 + [False]])


CROSS_MODULES = """
    decoder.layers.0.encoder_attn decoder.block.0.layer.1.EncDecAttention decoder.layers.0.enc_dec_attn
    decoder.layers.0.src_attn decoder.layers.0.context_attn decoder.layers.0.cross layers.0.cross_attend
    layers.0.cross_attn blocks.0.xattn transformer_blocks.0.attn2 decoder.layers.0.multihead_attn
    decoder.layer.0.crossattention.self
"""
SELF_MODULES = """
    transformer_blocks.0.attn1 crossformer.layers.0.attn blocks.0.max_attn encoder.layers.0 model.layers.0.self_attn
    transformer.h.0.attn encoder.layer.0.attention.self model.decoder.layers.0.gca
"""


@for_each("module", [*CROSS_MODULES.split(), *SELF_MODULES.split()])
def test_padding_keys_leave_out_no_query_of_another_text(tmp_path: Path, module: str) -> None:
    tensors = {f"{module}.{name}": array for name, array in {"q": Q, "k": K, "mask": REAL}.items()}
    of_name = {"layers.0.attn" + name.removeprefix(module): array for name, array in tensors.items()}
    told = {key: value for key, value in SELF.items() if key != "attention"}
    cross = module in CROSS_MODULES.split()
    for of, entries in ((tensors, None), (of_name, [{"name": module, "index": 0}])):
        capture = opened(tmp_path, of, **told | ({"layers": entries} if entries else {}))
        assert capture.layers[0].cross is cross
        hidden = read_head(capture, capture.layers[0], 0).visibility
        assert hidden is not None
        queries = ~hidden.hidden(slice(None), slice(None)).all(axis=-1)
        np.testing.assert_array_equal(queries, np.ones_like(REAL) if cross else REAL)
        unsaid = any(word in module for word in ("crossformer", "max", "gca"))
        assert has_note(capture, "taken as self-attention") is unsaid or entries


@for_each("count", [1, 2])
def test_lengths_hide_padding_that_no_mask_hides(tmp_path: Path, count: int) -> None:
    lengths = [5, 4][:count]
    for mask, used in ((SQUARE[np.newaxis], True), (SQUARE & SHORT[:count, np.newaxis], False)):
        stored = np.broadcast_to(mask[:, np.newaxis], (count, 1, 6, 6))
        capture = opened(tmp_path, named({"q": Q[:count], "k": K[:count], "mask": stored}), **SELF, lengths=lengths)
        assert read_head(capture, capture.layers[0], 0).extras.lengths == (tuple(lengths) if used else None)
        np.testing.assert_array_equal(visible(capture), SQUARE & SHORT[:count, np.newaxis])


def test_lengths_of_texts_padded_on_the_left_are_refused(tmp_path: Path) -> None:
    tensors, left = named({"q": Q, "k": K}), {"lengths": [5, 4], "padding_side": "left"}
    masked = tensors | named({"mask": SHORT[:, ::-1]})
    for of, told, refused in (
        (tensors, left, True), (tensors, left | {"padding_side": "right"}, False),
        (tensors, left | {"lengths": [6, 6]}, False), (masked, left, False),
    ):  # fmt: skip
        assert bool(opened(tmp_path, of, **SELF, **told).layers[0].refusal) is refused
