"""Files that have two readings, or name what changes attention in their own words: asked about, not guessed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, opened, refusal, save
from cases import for_each

TOKENS, D_K = 6, 4
SCALE = 0.4
NO = -np.inf
rng = np.random.default_rng(17)
Q, K = (rng.normal(0.1, 1.3, (4, 2, TOKENS, D_K)) for _ in range(2))
CAUSAL = np.tril(np.ones((TOKENS, TOKENS), np.bool_))
SAID = {"schema": "attn-tui/qk-2", "causal": "false", "scale": SCALE}


def tensors(q: Array = Q, k: Array = K, **beside: Array) -> dict[str, Array]:
    return {f"layers.0.attn.{name}": array for name, array in {"q": q, "k": k, **beside}.items()}


@pytest.mark.parametrize("added", [False, True])
def test_a_mask_of_heads_or_of_the_windows_of_an_image_is_asked_about(tmp_path: Path, added: bool) -> None:
    shown = np.tril(rng.random((2, TOKENS, TOKENS)) < 0.7) | np.eye(TOKENS, dtype=np.bool_)
    mask = np.where(shown, 0, -100).astype(np.float32) if added else shown
    said = refusal(save(tmp_path / "x.safetensors", tensors(mask=mask), **SAID))
    assert "'layers.0.attn.mask' has shape [2, 6, 6]; its first axis may be that of heads or, as in Swin" in said
    logits = SCALE * Q[:, 1] @ K[:, 1].mT
    of_heads = opened(tmp_path, tensors(mask=mask[np.newaxis]), **SAID)
    assert_measured(of_heads, 1, Expected(logits + mask[1] if added else np.where(shown[1], logits, NO)))
    windows = np.tile(mask, (2, 1, 1))  # of the first image, then of the second
    of_windows = opened(tmp_path, tensors(mask=windows[:, np.newaxis]), **SAID)
    assert_measured(of_windows, 1, Expected(logits + windows if added else np.where(windows, logits, NO)))


@pytest.mark.parametrize("name", ["bias", "attn_bias"])
def test_a_bias_of_0_and_1_may_be_a_mask(tmp_path: Path, name: str) -> None:
    """nanoGPT's buffer `attn.bias` is a causal mask of ones and zeros, and no bias."""
    buffer = CAUSAL.astype(np.float32)[np.newaxis, np.newaxis]
    foreign = {"axes": "batch,head,token,d_k", "causal": "false", "scale": SCALE}
    assert "holds only 0 and 1, like a mask" in refusal(
        save(tmp_path / "x.safetensors", tensors(**{name: buffer}), **foreign)
    )
    logits = SCALE * Q[:, 0] @ K[:, 0].mT + buffer[0]
    assert_measured(opened(tmp_path, tensors(**{name: buffer}), **SAID), 0, Expected(logits))
    logits = np.where(CAUSAL, SCALE * Q[:, 0] @ K[:, 0].mT, NO)
    assert_measured(opened(tmp_path, tensors(causal_mask=buffer), **SAID), 0, Expected(logits))


def test_slopes_of_fewer_queries_than_keys_need_their_alignment(tmp_path: Path) -> None:
    few, slopes = Q[:, :, :4], np.array([0.5, 0.25])
    capture = opened(tmp_path, tensors(few, alibi_slopes=slopes), **SAID)
    assert "'alignment' is missing for a window, chunks or slopes, with 4 queries" in capture.layers[0].refusal
    for corner, first in (("top-left", 0), ("bottom-right", 2)):
        capture = opened(tmp_path, tensors(few, alibi_slopes=slopes), **SAID, alignment=corner)
        away = np.abs(np.arange(first, first + 4)[:, np.newaxis] - np.arange(TOKENS))
        assert_measured(capture, 1, Expected(SCALE * few[:, 1] @ K[:, 1].mT - 0.25 * away))


@for_each(
    ("name", "array"),
    [
        ("query_positions", np.arange(TOKENS)),
        ("row_index", np.arange(TOKENS)),
        ("cache_position", np.arange(TOKENS)),
        ("input_pos", np.arange(TOKENS)),
        ("num_tokens", np.array([6, 5, 4, 3])),
        ("valid_len", np.array([6, 5, 4, 3])),
        ("kv_head_map", np.array([1, 0])),
        ("softmax_offset", np.zeros(4, np.float32)),
        ("distance_embedding.weight", np.zeros((11, D_K), np.float32)),
        ("rel_embeddings.weight", np.zeros((11, D_K), np.float32)),
        ("linear_pos.weight", np.zeros((8, 8), np.float32)),
        ("nonpad", np.ones((4, TOKENS), np.bool_)),
    ],
)
@for_each("prefix", ["layers.0.attn.", ""])
def test_further_tensors_that_may_change_attention_are_refused(
    tmp_path: Path, prefix: str, name: str, array: Array
) -> None:
    capture = opened(tmp_path, tensors() | {prefix + name: array}, **SAID)
    assert f"tensor '{prefix}{name}'" in capture.layers[0].refusal
    assert "may change attention" in capture.layers[0].refusal


@for_each(
    ("key", "value"),
    [
        ("past_key_values_length", 3),
        ("past_length", 3),
        ("start_pos", 3),
        ("q_offset", 2),
        ("kv_offset", 2),
        ("left_padding", [0, 2]),
        ("valid_length", [6, 5]),
        ("shift_size", 2),
        ("attn_clip", 50.0),
        ("kv_head_map", [1, 0]),
        ("gqa_layout", "interleaved"),
        ("bidirectional", "false"),
        ("attn", {"softcap": 30}),
    ],
)
def test_further_keys_that_may_change_attention_are_refused(tmp_path: Path, key: str, value: Any) -> None:
    capture = opened(tmp_path, tensors(), **SAID, **{key: value})
    assert f"metadata '{key}' may change attention" in capture.layers[0].refusal


@pytest.mark.parametrize(
    ("key", "value"),
    [("final_logit_softcapping", 30.0), ("bidirectional", "true"), ("past_length", 0), ("position_offset", 4)],
)
def test_keys_of_what_follows_or_precedes_attention_are_named_only(tmp_path: Path, key: str, value: Any) -> None:
    capture = opened(tmp_path, tensors(), **SAID, **{key: value})
    assert capture.unused == (key,)
    assert_measured(capture, 0, Expected(SCALE * Q[:, 0] @ K[:, 0].mT))


def test_all_metadata_may_be_one_object(tmp_path: Path) -> None:
    whole = json.dumps({"causal": True, "scale": SCALE, "softcap": 1.5, "axes": "batch,head,token,d_k"})
    path = tmp_path / "x.npz"
    np.savez(path, q=Q, k=K, metadata=np.array(whole))
    capture = open_capture(path)
    assert capture.notes == ()
    logits = 1.5 * np.tanh(SCALE * Q[:, 1] @ K[:, 1].mT / 1.5)
    assert_measured(capture, 1, Expected(np.where(CAUSAL, logits, NO)))
    np.savez(path, q=Q, k=K, metadata=np.array(whole), scale=0.5)
    assert "metadata has 'scale' twice, once in 'metadata'" in refusal(path)


def test_a_missing_half_of_queries_is_named(tmp_path: Path) -> None:
    halves = {f"layers.0.attn.{name}": Q for name in ("q_nope", "k_nope", "k_pe")}
    said = refusal(save(tmp_path / "x.safetensors", halves))
    assert "no queries and keys: 'layers.0.attn.q_nope' is ignored: there is no 'layers.0.attn.q_pe'" in said
