"""Further forms of what changes a captured head's logits, each against attention written out in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import read_head
from attn_tui.core.captures.heads import file_rule, measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, has_note, opened, refusal, save
from cases import for_each

BATCH, HEADS, TOKENS, D_K = 2, 3, 11, 6
SCALE = 0.4
NO = -np.inf
rng = np.random.default_rng(6)
Q, K = (rng.normal(0.1, 1.3, (BATCH, HEADS, TOKENS, D_K)) for _ in range(2))
SCORES = Q @ K.mT
ROW, KEY = np.arange(TOKENS)[:, np.newaxis], np.arange(TOKENS)
CAUSAL = KEY <= ROW
LENGTHS = np.array([11, 7])
REAL = LENGTHS[:, np.newaxis] > KEY  # [batch, tokens]


def tensors(**beside: Array) -> dict[str, Array]:
    return {f"layers.0.attn.{name}": array for name, array in {"q": Q, "k": K, **beside}.items()}


def captured(folder: Path, beside: dict[str, Array] | None = None, **metadata: Any) -> Any:
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE, **metadata}
    told = {key: value for key, value in told.items() if value is not None}
    return opened(folder, tensors(**(beside or {})), **told)


def test_sinks_in_the_metadata_take_weight(tmp_path: Path) -> None:
    sinks = [0.5, -1.25, 3.0]
    several: list[dict[str, Any]] = [{"sinks": sinks}, {"layers": [{"sinks": sinks}]}]
    for told in several:
        capture = captured(tmp_path, **told)
        assert (capture.notes, capture.unused, capture.layers[0].sinks) == ((), (), "sinks")
        for head in range(HEADS):
            assert_measured(capture, head, Expected(SCALE * SCORES[:, head], sink=sinks[head]))


def test_sinks_of_all_layers_in_an_npz_file_take_weight(tmp_path: Path) -> None:
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE}
    arrays: dict[str, Any] = tensors(sinks=np.array([0.5, -1.25, 3.0])) | told
    np.savez(tmp_path / "x.npz", **{name.replace("layers.0.attn.s", "s"): array for name, array in arrays.items()})
    capture = open_capture(tmp_path / "x.npz")
    assert_measured(capture, 1, Expected(SCALE * SCORES[:, 1], sink=-1.25))
    assert has_note(capture, "'sinks' is used for every layer without its own")


@pytest.mark.parametrize("in_file", ["metadata", "tensor of all layers", "layers"])
def test_positions_of_sampled_queries_may_be_in_the_metadata(tmp_path: Path, in_file: str) -> None:
    rows = [1, 4, 10]
    sampled = tensors() | {"layers.0.attn.q": Q[:, :, rows]}
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "true", "scale": SCALE}
    if in_file == "metadata":
        told["rows"] = rows
    elif in_file == "layers":
        told["layers"] = [{"rows": rows}]
    else:
        sampled["rows"] = np.array(rows)
    capture = opened(tmp_path, sampled, **told)
    assert len(capture.notes) == (in_file == "tensor of all layers")
    assert_measured(capture, 1, Expected(np.where(CAUSAL[rows], SCALE * SCORES[:, 1, rows], NO)))


def test_positions_beyond_the_keys_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "x.safetensors", tensors(), causal="true", rows=[*range(10), 11])
    assert "metadata 'rows' must hold positions from 0 to 10" in refusal(path)


WINDOWS = [
    ("[3, 2]", (ROW - KEY <= 3) & (KEY - ROW <= 2)),
    ("(3, 2)", (ROW - KEY <= 3) & (KEY - ROW <= 2)),
    ("(3, -1)", ROW - KEY <= 3),
    ([3, 0], (ROW - KEY <= 3) & (KEY <= ROW)),
    ("(-1, -1)", ROW >= 0),
]


@pytest.mark.parametrize(("window", "visible"), WINDOWS, ids=[str(window) for window, _ in WINDOWS])
def test_windows_are_read_as_flash_attention_writes_them(tmp_path: Path, window: object, visible: Array) -> None:
    capture = captured(tmp_path, window_size=window)
    assert capture.notes == ()
    visible = np.broadcast_to(visible, (TOKENS, TOKENS))
    assert_measured(capture, 2, Expected(np.where(visible, SCALE * SCORES[:, 2], NO)))


def test_a_window_of_the_last_queries_is_aligned_as_in_flash_attention(tmp_path: Path) -> None:
    last = tensors() | {"layers.0.attn.q": Q[:, :, -4:]}
    shown = np.where((ROW - KEY <= 3) & (KEY - ROW <= 2), SCALE * SCORES[:, 1], NO)
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE}
    assert_measured(flash := opened(tmp_path, last, window_size="(3, 2)", **told), 1, Expected(shown[:, -4:]))
    assert has_note(flash, "window_size is taken as flash-attention's")
    said = opened(tmp_path, last, window=[3, 2], alignment="bottom-right", **told)
    assert_measured(said, 1, Expected(shown[:, -4:]))
    assert said.notes == ()
    first = opened(tmp_path, last, window=[3, 2], alignment="top-left", **told)
    logits = SCALE * SCORES[:, 1, -4:]
    assert_measured(first, 1, Expected(np.where(((ROW - KEY <= 3) & (KEY - ROW <= 2))[:4], logits, NO)))
    neither = opened(tmp_path, last, window=[3, 2], **told)
    refused = neither.layers[0].refusal
    assert "'alignment' is missing for a window, chunks or slopes, with 4 queries and 11 keys" in refused


def test_two_names_of_one_key_are_refused(tmp_path: Path) -> None:
    several: list[dict[str, Any]] = [
        {"window_size": "[3, 2]", "sliding_window": "4"},
        {"layers": [{"window": 3, "sliding_window": 4}]},
        {"scale": [0.5] * 3, "head_scales": [0.5] * 3},
    ]
    for told in several:
        assert "keep one of them" in refusal(save(tmp_path / "x.safetensors", tensors(), causal="true", **told))


def test_a_window_and_chunks_hide_keys_together(tmp_path: Path) -> None:
    visible = CAUSAL & (ROW - KEY < 3) & (ROW // 4 == KEY // 4)
    capture = captured(tmp_path, causal="true", window=3, chunk=4)
    assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1], NO)))


def test_the_type_of_a_layer_says_whether_the_file_s_window_or_chunks_are_its(tmp_path: Path) -> None:
    near, chunks = ROW - KEY < 3, ROW // 4 == KEY // 4
    types: dict[str, Array] = {
        "full_attention": CAUSAL,
        "global": CAUSAL,
        "sliding_attention": CAUSAL & near,
        "chunked_attention": CAUSAL & chunks,
        "other": CAUSAL & near & chunks,
    }
    for kind, visible in types.items():
        capture = captured(tmp_path, causal="true", window=3, chunk=4, layers=[{"layer_type": kind}])
        assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1], NO)))
    own = captured(tmp_path, causal="true", chunk=4, layers=[{"layer_type": "full_attention", "window": 3}])
    assert_measured(own, 1, Expected(np.where(CAUSAL & near, SCALE * SCORES[:, 1], NO)))


def test_a_list_of_scales_has_one_for_each_head(tmp_path: Path) -> None:
    scales = [0.2, 0.4, 0.8]
    arrays: dict[str, Any] = {**tensors(), "schema": "attn-tui/qk-2", "causal": "false", "scale": np.array(scales)}
    np.savez(tmp_path / "x.npz", **arrays)
    for capture in (captured(tmp_path, scale=scales), open_capture(tmp_path / "x.npz")):
        for head in range(HEADS):
            assert_measured(capture, head, Expected(scales[head] * SCORES[:, head]))


@for_each("shape", [(3,), (1, 3), (3, 1, 1), (1, 3, 1, 1)])
@for_each("name", ["alibi", "alibi_slopes", "metadata"])
def test_a_slope_for_each_head_is_multiplied_by_distances(tmp_path: Path, shape: tuple[int, ...], name: str) -> None:
    slopes = np.array([0.5, 0.25, 0.125], np.float32)
    if name == "metadata":
        capture = captured(tmp_path, alibi_slopes=slopes.tolist(), causal="true")
    else:
        capture = captured(tmp_path, {name: slopes.reshape(shape)}, causal="true")
    for head in range(HEADS):
        logits = SCALE * SCORES[:, head] - slopes[head] * np.abs(ROW - KEY)
        assert_measured(capture, head, Expected(np.where(CAUSAL, logits, NO)))


def test_negative_slopes_are_refused(tmp_path: Path) -> None:
    capture = captured(tmp_path, {"alibi": -np.ones(3, np.float32)})
    with pytest.raises(CaptureError, match=r"alibi': head 0 has -1; must be a number from 0 up"):
        read_head(capture, capture.layers[0], 0)


SCALES: list[Array] = [
    np.array([0.2, 0.7]),  # of each text
    np.array([0.2, 0.7]).reshape(2, 1, 1, 1),
    rng.uniform(0.1, 1, (2, 3, 1, 1)),
    rng.uniform(0.1, 1, (2, 3)),
    rng.uniform(0.1, 1, (2, 3, 11)),
    rng.uniform(0.1, 1, (2, 1, 11, 1)),
    rng.uniform(0.1, 1, (2, 11)),
    rng.uniform(0.1, 1, (3, 11, 1)),
]


@for_each("scales", SCALES)
def test_each_text_head_and_query_may_have_its_own_scale(tmp_path: Path, scales: Array) -> None:
    capture = captured(tmp_path, {"scale": scales}, scale=None, causal="true")
    shape = {(2,): (2, 1, 1), (2, 3): (2, 3, 1), (2, 11): (2, 1, 11), (3, 11, 1): (1, 3, 11)}.get(scales.shape)
    whole = np.broadcast_to(scales.reshape(shape or scales.shape[:3]), (2, 3, 11))
    assert capture.notes == ()
    for head in range(HEADS):
        logits = whole[:, head, :, np.newaxis] * SCORES[:, head]
        assert_measured(capture, head, Expected(np.where(CAUSAL, logits, NO)))


def test_the_axes_of_a_scale_that_fit_twice_are_assumed_aloud(tmp_path: Path) -> None:
    few = {f"layers.0.attn.{side}": each[:, :2] for side, each in (("q", Q), ("k", K))}
    scales = np.array([[0.2, 0.7], [0.3, 0.9]])  # [batch, heads] if it were not for queries
    for count, own in ((11, scales[:, 1, np.newaxis]), (2, scales[1])):
        tensors = {name: each[:, :, :count] for name, each in few.items()} | {"layers.0.attn.scale": scales}
        capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", causal="false")
        logits = Q[:, 1, :count] @ K[:, 1, :count].mT
        assert has_note(capture, "scale': axes assumed to be [heads, queries]") is (count == 2)
        assert_measured(capture, 1, Expected(own[..., np.newaxis] * logits))


@pytest.mark.parametrize("words", [("pass", "rot"), ("nope", "rope"), ("nope", "pe")])
def test_the_halves_of_a_query_have_several_names(tmp_path: Path, words: tuple[str, str]) -> None:
    rotary_q, rotary_k = rng.normal(size=(BATCH, HEADS, TOKENS, 4)), rng.normal(size=(BATCH, 1, TOKENS, 4))
    halves = {f"q_{words[0]}": Q, f"k_{words[0]}": K, f"q_{words[1]}": rotary_q, f"k_{words[1]}": rotary_k}
    capture = opened(
        tmp_path, {f"layers.0.attn.{name}": array for name, array in halves.items()}, scale=SCALE, causal="false"
    )
    assert_measured(capture, 2, Expected(SCALE * (SCORES[:, 2] + rotary_q[:, 2] @ rotary_k[:, 0].mT)))


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("form", ["flags", "numbers"])
def test_a_causal_mask_is_read_from_its_values(tmp_path: Path, hidden: bool, form: str) -> None:
    mask: Array = np.logical_xor(CAUSAL, hidden)
    if form == "numbers":
        mask = np.where(CAUSAL, 0, -1e9).astype(np.float32)
    capture = captured(tmp_path, {"causal_mask": mask, "mask": REAL})
    shown = np.where(CAUSAL & REAL[:, np.newaxis], SCALE * SCORES[:, 0], NO)
    assert_measured(capture, 0, Expected(shown, left_out=~REAL))
    of_lengths = captured(tmp_path, {"causal_mask": mask}, lengths=LENGTHS.tolist())
    assert_measured(of_lengths, 0, Expected(shown, left_out=~REAL))
    assert has_note(of_lengths, "no mask of padding")


@for_each("name", ["src_key_padding_mask", "tgt_key_padding_mask", "key_padding_mask"])
@for_each("shared", [False, True])
def test_true_is_hidden_in_the_padding_masks_of_a_transformer(tmp_path: Path, name: str, shared: bool) -> None:
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE}
    own = tensors() | {name: ~REAL} if shared else tensors(**{name: ~REAL})
    shown = np.where(REAL[:, np.newaxis], SCALE * SCORES[:, 1], NO)
    capture = opened(tmp_path, own, **told)
    assert_measured(capture, 1, Expected(shown, left_out=~REAL))
    assert has_note(capture, "True is taken as hidden")


def test_the_padding_masks_of_a_transformer_belong_to_its_encoder_decoder_or_memory(tmp_path: Path) -> None:
    prefixes = ("encoder.layers.0.self_attn.", "decoder.layers.0.self_attn.", "decoder.layers.0.multihead_attn.")
    q_and_k = {prefix + side: array for prefix in prefixes for side, array in (("q", Q), ("k", K))}
    masks = {"src_key_padding_mask": ~REAL, "memory_key_padding_mask": np.array([[5], [11]]) <= KEY}
    capture = opened(tmp_path, q_and_k | masks, schema="attn-tui/qk-2", causal="false", scale=SCALE)
    found = {layer.name: layer.mask for layer in capture.layers}
    assert found == {
        "encoder.layers.0.self_attn": "src_key_padding_mask",
        "decoder.layers.0.self_attn": None,
        "decoder.layers.0.multihead_attn": "memory_key_padding_mask",
    }


@for_each("name", ["query_mask", "q_mask"])
@for_each("shape", [(2, 11), (2, 1, 11), (2, 1, 11, 1)])
def test_queries_that_a_mask_hides_are_left_out(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    shown = SCALE * SCORES[:, 1]
    capture = captured(tmp_path, {name: REAL.reshape(shape)}, attention="cross")
    assert_measured(capture, 1, Expected(shown, left_out=~REAL))
    both = captured(tmp_path, {name: REAL, "key_mask": np.array([[9], [11]]) > KEY}, attention="cross")
    shown = np.where(np.array([9, 11])[:, np.newaxis, np.newaxis] > KEY, shown, NO)
    assert_measured(both, 1, Expected(shown, left_out=~REAL))


def test_a_mask_of_queries_holds_no_other_numbers(tmp_path: Path) -> None:
    capture = captured(tmp_path, {"query_mask": np.full((2, 11), 0.5, np.float32)})
    with pytest.raises(CaptureError, match="must be bool or 0 and 1"):
        read_head(capture, capture.layers[0], 0)
    path = save(tmp_path / "x.safetensors", tensors(query_mask=np.ones((2, 10), np.bool_)))
    assert r"must be [queries] or [batch, queries], here [2, 11]" in refusal(path)


def test_the_meaning_of_a_numbered_mask_is_taken_from_its_values(tmp_path: Path) -> None:
    numbered = {"q.3": Q, "k.3": K, "attn_mask.3": ~CAUSAL}
    capture = opened(tmp_path, numbered, schema="attn-tui/qk-2", scale=SCALE, causal="false")
    assert_measured(capture, 0, Expected(np.where(CAUSAL, SCALE * SCORES[:, 0], NO)))


def test_a_mask_that_the_metadata_names_leaves_padding_masks_in_force(tmp_path: Path) -> None:
    beside = {"key_padding_mask": ~REAL, "local": np.abs(ROW - KEY) < 3}
    capture = captured(tmp_path, beside, mask="layers.0.attn.local")
    visible = (np.abs(ROW - KEY) < 3) & REAL[:, np.newaxis]
    assert_measured(capture, 1, Expected(np.where(visible, SCALE * SCORES[:, 1], NO), left_out=~REAL))


@pytest.mark.parametrize("told", [{"causal": "bottom-right"}, {"causal": "true", "alignment": "bottom-right"}])
def test_padding_among_the_last_queries_is_left_out(tmp_path: Path, told: dict[str, Any]) -> None:
    """With a cache, the queries are the last tokens of the text; here the second text ends before its last tokens."""
    last = tensors(mask=REAL) | {"layers.0.attn.q": Q[:, :, -6:]}
    capture = opened(tmp_path, last, schema="attn-tui/qk-2", scale=SCALE, **told)
    shown = np.where(CAUSAL & REAL[:, np.newaxis], SCALE * SCORES[:, 1], NO)[:, -6:]
    assert_measured(capture, 1, Expected(shown, left_out=~REAL[:, -6:]))


def test_a_mask_over_other_counts_of_queries_and_keys_says_that_every_query_counts(tmp_path: Path) -> None:
    some = {"q": Q[:, :, :6], "k": K, "mask": REAL}
    told: dict[str, Any] = {"schema": "attn-tui/qk-2", "scale": SCALE, "causal": "false"}
    capture = opened(tmp_path, some, **told)
    assert has_note(capture, "taken as cross-attention, with 6 queries and 11 keys: every query counts")
    shown = np.where(REAL[:, np.newaxis], SCALE * SCORES[:, 1, :6], NO)
    assert_measured(capture, 1, Expected(shown))
    for said in ({"attention": "cross"}, {"rows": [*range(6)]}, {"causal": "top-left"}, {"attention": "self"}):
        capture = opened(tmp_path, some, **told | said)
        assert not has_note(capture, "taken as cross-attention")
        assert has_note(capture, "6 queries of 11 tokens: every query counts") is (said.get("attention") == "self")


def test_the_range_of_the_multipliers_of_rows_is_told(tmp_path: Path) -> None:
    """SSMax multiplies by 0.43·ln n/√d_k, where n keys are seen; rows of a single key do not count."""
    capture = captured(tmp_path, causal="true", prescaled=[0.5, 1])
    layer = capture.layers[0]
    rules = [file_rule(layer), named_rule("ssmax", layer)]
    of_file, of_rows = measure_head(capture, layer, 0, rules).columns
    assert of_file.multipliers is None
    assert of_rows.multipliers == pytest.approx(0.43 / D_K**0.5 * np.log([2, 11]), rel=1e-12)
    scales = rng.uniform(0.1, 1, (2, 1, 11, 1))
    own = captured(tmp_path, {"scale": scales}, scale=None, causal="true")
    [column] = measure_head(own, own.layers[0], 1, [file_rule(own.layers[0])]).columns
    assert column.multipliers == pytest.approx((scales[:, :, 1:].min(), scales[:, :, 1:].max()), rel=1e-12)
