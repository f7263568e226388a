"""What True means in masks of padded texts, which tokens are padding, and which queries are of another text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.head import read_head
from capture_files import Array, has_note, opened, refusal, save
from cases import for_each

TOKENS, D_K, SCALE = 6, 4, 0.4
NO = -np.inf
rng = np.random.default_rng(23)
Q, K = (rng.normal(0.1, 1.3, (2, 1, TOKENS, D_K)) for _ in range(2))
CAUSAL = np.tri(TOKENS, dtype=np.bool_)
LENGTHS = [5, 4]
REAL = np.arange(TOKENS) < np.array(LENGTHS)[:, np.newaxis]  # [batch, keys]
KEYS = np.broadcast_to(REAL[:, np.newaxis], (2, TOKENS, TOKENS))
BOTH = KEYS & REAL[..., np.newaxis]  # padded queries see nothing
DISTANCE = np.abs(np.subtract.outer(np.arange(TOKENS), np.arange(TOKENS)))
SELF: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE, "attention": "self"}
CROSS = SELF | {"attention": "cross"}


def tensors(q: Array = Q, **beside: Array) -> dict[str, Array]:
    return {f"layers.0.attn.{name}": array for name, array in {"q": q, "k": K, **beside}.items()}


def expected(shown: Array, q: Array = Q, left_out: Array | None = None) -> Expected:
    return Expected(np.where(shown, SCALE * q[:, 0] @ K[:, 0].mT, NO), left_out=left_out)


@for_each("hidden", [False, True])
@for_each(
    "shown",
    [
        CAUSAL & BOTH,
        CAUSAL & KEYS,
        CAUSAL & BOTH[:, :, ::-1] & REAL[:, ::-1, np.newaxis],  # padded on the left
        (DISTANCE < 2) & BOTH,
        (DISTANCE < 3) & CAUSAL & BOTH,
        (np.arange(TOKENS) // 3 == np.arange(TOKENS)[:, np.newaxis] // 3) & BOTH,
    ],
)
def test_padded_queries_without_keys_do_not_invert_a_mask(tmp_path: Path, shown: Array, hidden: bool) -> None:
    capture = opened(tmp_path, tensors(attn_mask=(shown ^ hidden)[:, np.newaxis]), **SELF)
    assert_measured(capture, 0, expected(shown, left_out=~np.asarray(shown.any(axis=1))))


@for_each("hidden", [False, True])
@for_each(
    "shown",
    [BOTH[:, :3] & (np.arange(3) < 2)[:, np.newaxis], CAUSAL[np.newaxis, 3:], CAUSAL[np.newaxis, [0, 2, 5]]],
)
def test_a_mask_of_queries_of_another_text_is_read_from_how_its_rows_advance(
    tmp_path: Path, shown: Array, hidden: bool
) -> None:
    few = Q[:, :, :3]
    capture = opened(tmp_path, tensors(few, attn_mask=(shown ^ hidden)[:, np.newaxis]), **CROSS)
    assert_measured(capture, 0, expected(shown, few))


@pytest.mark.parametrize("told", [{"alignment": "bottom-right"}, {"rows": [3, 4, 5]}])
def test_the_positions_of_queries_tell_their_own_keys_in_a_mask(tmp_path: Path, told: dict[str, Any]) -> None:
    shown = ((DISTANCE < 2) | (rng.random((TOKENS, TOKENS)) < 0.3))[3:]
    last = Q[:, :, 3:]
    for mask in (shown, ~shown):
        capture = opened(tmp_path, tensors(last, attn_mask=mask), **SELF, **told)
        assert_measured(capture, 0, expected(shown, last, np.broadcast_to(~shown[:, 3:].any(axis=0), (2, 3))))


@pytest.mark.parametrize("told", [SELF, CROSS])
def test_a_mask_of_padded_keys_of_every_text_is_asked_about(tmp_path: Path, told: dict[str, Any]) -> None:
    for mask in (KEYS, ~KEYS):
        path = save(tmp_path / "x.safetensors", tensors(attn_mask=mask[:, np.newaxis]), **told)
        assert "--mask-true visible or hidden" in refusal(path)


def test_integers_in_a_padding_mask_mean_what_their_values_say(tmp_path: Path) -> None:
    """Keras writes 1 for tokens and fairseq True for padding, both under this name."""
    ask = save(tmp_path / "x.safetensors", tensors(padding_mask=REAL.astype(np.int32)), **SELF)
    assert "--mask-true visible or hidden" in refusal(ask)
    one = np.arange(TOKENS) < np.array([[6], [4]])
    for mask in (one, ~one):
        capture = opened(tmp_path, tensors(padding_mask=mask.astype(np.int32)), **SELF)
        assert_measured(capture, 0, expected(one[:, np.newaxis], left_out=~one))
    capture = opened(tmp_path, tensors(padding_mask=~REAL), **SELF)
    assert_measured(capture, 0, expected(KEYS, left_out=~REAL))


def test_a_padding_mask_whose_true_is_said_to_be_visible_is_noted(tmp_path: Path) -> None:
    """The file may say this of another of its masks, and a padding mask keep the meaning that it has in PyTorch."""
    for mask, meaning in ((REAL, "visible"), (~REAL, "hidden")):
        capture = opened(tmp_path, tensors(key_padding_mask=mask), **SELF, mask_true=meaning)
        assert_measured(capture, 0, expected(KEYS, left_out=~REAL))
        assert has_note(capture, "key_padding_mask': True is taken as visible") is (meaning == "visible")


@pytest.mark.parametrize("batch", [1, 2])
def test_lengths_hide_padding_that_no_mask_hides(tmp_path: Path, batch: int) -> None:
    some = {"layers.0.attn.q": Q[:batch], "layers.0.attn.k": K[:batch]}
    logits = np.where(CAUSAL & KEYS, SCALE * Q[:, 0] @ K[:, 0].mT, NO)[:batch]
    causal = np.broadcast_to(CAUSAL, (batch, 1, TOKENS, TOKENS))
    for mask in (causal, CAUSAL & KEYS[:batch, np.newaxis]):
        capture = opened(tmp_path, some | {"layers.0.attn.mask": mask}, **SELF, lengths=LENGTHS[:batch])
        assert_measured(capture, 0, Expected(logits, left_out=~REAL[:batch]))
        understood = read_head(capture, capture.layers[0], 0).extras
        assert understood.lengths == (tuple(LENGTHS[:batch]) if mask is causal else None)
    left = CAUSAL & REAL[:batch, np.newaxis, np.newaxis, ::-1]
    capture = opened(tmp_path, some | {"layers.0.attn.mask": left}, **SELF, lengths=LENGTHS[:batch])
    logits = np.where(left[:, 0], SCALE * Q[:batch, 0] @ K[:batch, 0].mT, NO)
    assert_measured(capture, 0, Expected(logits, left_out=~REAL[:batch, ::-1]))


def test_lengths_of_texts_padded_on_the_left_are_refused(tmp_path: Path) -> None:
    capture = opened(tmp_path, tensors(), **SELF, lengths=LENGTHS, padding_side="left")
    assert capture.layers[0].refusal == "the metadata's lengths are of texts padded on the left; save a mask"
    for told in ({"lengths": LENGTHS, "padding_side": "right"}, {"lengths": [6, 6], "padding_side": "left"}):
        assert opened(tmp_path, tensors(), **SELF, **told).layers[0].refusal == ""
    masked = opened(tmp_path, tensors(mask=REAL[:, ::-1]), **SELF, lengths=LENGTHS, padding_side="left")
    assert_measured(masked, 0, expected(KEYS[:, :, ::-1], left_out=~REAL[:, ::-1]))


@for_each(
    ("module", "cross"),
    [
        ("decoder.layers.0.encoder_attn", True), ("decoder.block.0.layer.1.EncDecAttention", True),
        ("decoder.layers.0.enc_dec_attn", True), ("decoder.layers.0.src_attn", True),
        ("decoder.layers.0.context_attn", True), ("decoder.layers.0.cross", True), ("layers.0.cross_attend", True),
        ("blocks.0.xattn", True), ("transformer_blocks.0.attn2", True), ("decoder.layers.0.multihead_attn", True),
        ("transformer_blocks.0.attn1", False), ("crossformer.layers.0.attn", False), ("blocks.0.max_attn", False),
        ("encoder.layers.0", False), ("model.layers.0.self_attn", False), ("transformer.h.0.attn", False),
    ],
)  # fmt: skip
def test_padding_keys_leave_out_no_query_of_another_text(tmp_path: Path, module: str, cross: bool) -> None:
    named = {f"{module}.{name}": array for name, array in {"q": Q, "k": K, "mask": REAL}.items()}
    capture = opened(tmp_path, named, **{key: value for key, value in SELF.items() if key != "attention"})
    assert_measured(capture, 0, expected(KEYS, left_out=None if cross else ~REAL))
    assert has_note(capture, "taken as self-attention") is ("crossformer" in module or "max" in module)


def test_a_module_of_unknown_name_is_taken_as_self_attention_aloud(tmp_path: Path) -> None:
    named = {f"model.decoder.layers.0.gca.{name}": array for name, array in {"q": Q, "k": K, "mask": REAL}.items()}
    assert has_note(opened(tmp_path, named, causal="false", axes="b,h,t,d"), "taken as self-attention")


@for_each(
    ("key", "value"),
    [
        *[("is_cross_attention", True), ("attention_type", "cross"), ("unidirectional", True), ("n_past", 3)],
        *[("autoregressive", True), ("use_cosine_attention", True), ("linear_attention", True), ("q_start", 3)],
        *[("attention_span", 3), ("tanh_clipping", 10), ("past_kv_length", 3), ("n_tokens", [5, 4])],
    ],
)  # fmt: skip
def test_keys_that_tell_another_attention_by_their_name_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    assert (
        f"metadata '{key}' may change attention"
        in opened(tmp_path, tensors(), **SELF, **{key: value}).layers[0].refusal
    )
    for harmless in ({key: False}, {"n_tokens": 12}, {"cross_entropy": 2.5}, {"is_decoder": True}):
        assert opened(tmp_path, tensors(), **SELF, **harmless).layers[0].refusal == ""


def test_an_entry_for_two_layers_of_one_number_is_refused(tmp_path: Path) -> None:
    stacks = {
        f"{name}.layers.0.attn.{side}": array
        for name in ("decoder", "encoder")
        for side, array in (("q", Q), ("k", K))
    }
    told = {"axes": "b,h,t,d", "scale": SCALE}
    for entries in ([{"index": 0, "causal": True}], [{"causal": True}, {}, {}]):
        path = save(tmp_path / "x.safetensors", stacks, **told, layers=entries)
        assert "'layers' has one entry for several layers with the number 0" in refusal(path)
    capture = opened(tmp_path, stacks, **told, layers=[{"causal": True}, {"causal": False}])
    assert [(layer.name, layer.causal) for layer in capture.layers] == [
        ("decoder.layers.0.attn", "top_left"),
        ("encoder.layers.0.attn", None),
    ]
