"""Files that people have: usual names are read, and what cannot be read is refused with what to do about it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.reader import open_capture
from attn_tui.tui.cli.main import main
from capture_files import Array, assert_holds, numbers, opened, pair, refusal, refused, save
from cases import for_each

Q, K = pair(1, 4, 4, 6, 6, 8)
CONFIG = {"hidden_size": 32, "num_attention_heads": 4}


NAMES = """
    q q_proj to_q wq W_q xq q_lin q_heads attn_q linear_q q_after_rope Q query queries Wq query_states query_layer
    mixed_query_layer queryStates query_proj blk.0.attn_q layer0_Q /layers.0/attn/q_proj/MatMul_output_0
    params/layers_0/attention/query encoder/layer_0/attention/query/__call__ layers.0.attention.self.query
"""  # of the queries of transformers, diffusers, Llama, llama.cpp, fairseq, ESPnet, ONNX and Flax
KEYS_OF = {"queries": "keys", "query": "key", "Q": "K", "q": "k"}


@for_each("q", NAMES.split())
def test_names_that_differ_in_a_word_for_queries_and_keys_are_a_pair(tmp_path: Path, q: str) -> None:
    word = next(each for each in ("queries", "query", "Q") if each in q) if re.search("quer|Q", q) else "q"
    at = q.rindex(word)
    k = q[:at] + KEYS_OF[word] + q[at + len(word) :]
    for prefix in ("", "layers.0.attn."):
        names = (prefix + q, prefix + k)
        capture = opened(tmp_path, {names[0]: Q, names[1]: K, q + "_norm.weight": numbers(8)}, scale=0.5, causal=True)
        assert_holds(capture, Q, K)
        assert capture.layers[0].index == 0
        assert capture.notes, "what was assumed is said"


@for_each(
    ("q", "k", "linear"),
    [
        ("query", "key", True), ("q_lin", "k_lin", True), ("query_states", "key_states", False),
        ("q_heads", "k_heads", False), ("xq", "xk", False),
    ],
)  # fmt: skip
def test_names_of_projections_have_their_heads_side_by_side(tmp_path: Path, q: str, k: str, linear: bool) -> None:
    tensors = {f"layers.0.attn.{q}": Q[0], f"layers.0.attn.{k}": K[0]}
    said = refused(save(tmp_path / "x.safetensors", tensors)) or ""
    assert ("like a projection" in said) is linear


@for_each("ending", [".weight", ".bias", "_scale", "_mask", "_positions", "_cache"])
def test_names_of_other_things_of_queries_and_keys_are_no_pair(tmp_path: Path, ending: str) -> None:
    path = save(tmp_path / "x.safetensors", {f"layers.0.to_q{ending}": Q, f"layers.0.to_k{ending}": K})
    assert "no queries and keys" in refusal(path) or "a model's weights" in refusal(path)


def test_two_pairs_of_a_layer_are_refused(tmp_path: Path) -> None:
    tensors = {"layers.3.to_q": Q, "layers.3.to_k": K, "layers.3.xq": Q, "layers.3.xk": K}
    assert "layer 3 has several pairs" in refusal(save(tmp_path / "x.safetensors", tensors))


@for_each("ending", ["", "_before_rope", "_pre_rope"])
def test_the_pair_after_rotary_embedding_is_read_and_the_other_is_noted(tmp_path: Path, ending: str) -> None:
    tensors = {"q_after_rope": Q, "k_after_rope": K, f"q{ending}": K, f"k{ending}": Q}
    capture = opened(tmp_path, tensors, scale=0.5, causal=True)
    assert_holds(capture, Q, K)
    assert any(f"'q{ending}'" in note for note in capture.notes)


def test_the_number_of_a_layer_is_in_any_name(tmp_path: Path) -> None:
    tensors = {f"layer{number}_{side}": array for number in (2, 11) for side, array in (("Q", Q), ("K", K))}
    for more in ({}, {"layer2_Q2": Q}):  # without a K2
        assert [layer.index for layer in opened(tmp_path, tensors | more).layers] == [2, 11]


def test_heads_side_by_side_are_split_as_the_configuration_says(tmp_path: Path) -> None:
    flat = {side: array[0].swapaxes(0, 1).reshape(6, 32) for side, array in (("q", Q), ("k", K))}
    assert_holds(opened(tmp_path, flat, config=CONFIG), Q, K)
    [layer] = opened(tmp_path, flat, config={**CONFIG, "hidden_size": 64}).layers
    assert layer.heads == 1  # of another width


@for_each(
    ("tensors", "remedy"),
    [
        ({"qkv": numbers(6, 3, 4, 8)}, "save q = 'qkv'[:, 0], k = 'qkv'[:, 1]"),
        ({"q": Q, "kv": numbers(2, 1, 4, 6, 8)}, "save k = 'kv'[0]"),
        ({"layers.0.q_rope": Q, "layers.0.k_rope": K}, "--tensor 'q=NAME,k=NAME'"),
        ({"layers.0.qkv_proj": numbers(1, 6, 96)}, "split its last axis"),
        ({"attentions.0": numbers(1, 4, 6, 6), "attentions.1": numbers(1, 4, 6, 6)}, "save q and k too"),
        ({"q": Q, "k": K, "cu_seqlens_q": np.array([0, 2, 6], np.int32)}, "save them as a padded batch"),
        ({"q": Q, "k": K, "k_scale": numbers(1)}, "metadata 'scale', and their inverses as 'prescaled'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(
    tmp_path: Path, tensors: dict[str, Array], remedy: str
) -> None:
    assert remedy in refusal(save(tmp_path / "x.safetensors", tensors))


def test_the_end_of_a_cache_that_is_not_filled_is_refused_unless_it_is_hidden(tmp_path: Path) -> None:
    q, k = pair(1, 4, 4, 1, 6)
    k[:, :, 4:] = 0
    told = {"scale": 0.5, "causal": "bottom-right"}
    assert "keys 4 to 5 are zeros" in refusal(save(tmp_path / "x.safetensors", {"q": q, "k": k}, **told))
    assert_holds(opened(tmp_path, {"q": q, "k": k}, lengths=[4], **told), q, k)
    assert_holds(opened(tmp_path, {"q": q, "k": k, "lse": numbers(1, 4, 1)}, **told), q, k)  # which tells


def test_as_many_tokens_as_the_model_has_heads_are_probably_heads(tmp_path: Path) -> None:
    tensors = {side: numbers(2, 9, 4, 8, seed=seed) for seed, side in enumerate("qk")}
    path = save(tmp_path / "x.safetensors", tensors, schema="attn-tui/qk-2", config=CONFIG)
    assert "the axes of heads and tokens are probably exchanged" in refusal(path)
    assert open_capture(path, "batch,token,head,d_k").layers[0].refusal == ""
    for shape, of_k, told in (
        ((2, 9, 4, 8), (2, 9, 5, 8), {}), ((2, 9, 5, 8), (2, 9, 5, 8), {}), ((2, 3, 4, 8), (2, 3, 4, 8), {}),
        ((2, 9, 4, 8), (2, 9, 4, 8), {"n_heads": 9}),
    ):  # fmt: skip
        tensors = {"q": numbers(*shape), "k": numbers(*of_k, seed=1)}
        assert opened(tmp_path, tensors, schema="attn-tui/qk-2", config=CONFIG, **told).layers[0].refusal == ""


def test_rows_beyond_the_keys_are_positions_among_the_queries_of_another_text(tmp_path: Path) -> None:
    q, k = pair(1, 4, 4, 5, 6)
    rows = np.array([0, 7, 90, 200, 1023])
    told = {"schema": "attn-tui/qk-2", "scale": 0.25}
    assert_holds(opened(tmp_path, {"q": q, "k": k, "rows": rows}, causal=False, **told), q, k)
    path = save(tmp_path / "x.safetensors", {"q": q, "k": k, "rows": rows}, causal=True, **told)
    assert "must hold positions from 0 to 5" in refusal(path)


def test_tensors_of_any_names_are_chosen_for_all_layers(tmp_path: Path) -> None:
    tensors = {f"h.{number}.{side}": array for number in (0, 7) for side, array in (("left", Q), ("right", K))}
    path = save(tmp_path / "x.safetensors", tensors)
    capture = open_capture(path, tensor="q=h.*.left,k=h.*.right")
    assert [layer.index for layer in capture.layers] == [0, 7]
    assert_holds(capture, Q, K)
    for wrong in (
        "q=h.*.left",
        "q=h.*.left,k=h.*.up",
        "q=h.*.up,k=h.*.right",
        "left,right",
        "q=h.*.left,k=x,o=y",
        "q=h.*.left,k=",
        "q=,k=h.*.right",
    ):
        with pytest.raises(CaptureError, match="--tensor"):
            open_capture(path, tensor=wrong)
    for command in ("inspect", "diagnose", "check"):
        assert main([command, str(path), "--tensor", "q=h.*.left,k=h.*.right", "--format", "json"]) == 0
    assert main([str(path), "--tensor", "q=h.*.left,k=h.*.right"]) == 0
    assert main(["compare", str(path), str(path), "--tensor", "q=h.*.left,k=h.*.right"]) == 0
