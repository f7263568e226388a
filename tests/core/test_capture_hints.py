"""Tensors and metadata with names that nobody has listed: what may change attention is refused, results are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from capture_files import Array, layered, numbers, opened, pair, refusal, save
from cases import for_each

TOLD: dict[str, Any] = {"schema": "attn-tui/qk-2", "scale": 0.5, "causal": "false", "attention": "cross"}
SCORES, OF_HEADS, ONE = (2, 4, 5, 6), (4,), (1,)


def refusals(folder: Path, tensors: dict[str, Array], **metadata: Any) -> list[str]:
    return [layer.refusal for layer in opened(folder, tensors, **(TOLD | metadata)).layers]


@for_each(
    ("name", "shape"),
    [
        ("attn_prior", SCORES), ("score_mod", SCORES), ("logit_adjustment", SCORES), ("layout", (5, 6)),
        ("attention_penalty", (5, 6)), ("norm_factor", OF_HEADS), ("norm_factor", ()), ("beta", ONE),
        ("sharpness", ()), ("null_k", (8,)), ("mem_kv", (4, 2, 8)), ("k_cache", (2, 4, 9, 8)),
        ("past_key_values", (2, 4, 9, 8)), ("persistent_keys", (4, 2, 8)), ("seq_lens", (2,)),
        ("lengths", (2,)), ("prefix", (1,)), ("talking_heads.weight", (4, 4)), ("proj_l", (4, 4)),
        ("ip_k", (2, 4, 3, 8)), ("k_global", (2, 4, 3, 8)), ("register_k", (2, 4, 3, 8)), ("null_attn", (1,)),
        ("pre_softmax_proj", (4, 4)), ("lam", (2,)), ("q_len", (2,)), ("image_ids", (1,)),
        ("top_k_idx", (2, 4, 5, 3)), ("selected", (2, 4, 5, 3)), ("block_table", (2, 2)),
    ],
)  # fmt: skip
def test_a_tensor_that_may_change_attention_is_refused(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    [reason] = refusals(tmp_path, layered(1) | {f"layers.0.attn.{name}": numbers(*shape)})
    assert f"'layers.0.attn.{name}'" in reason
    assert "may change attention, and attn-tui does not know it" in reason


@for_each(
    ("name", "shape"),
    [
        ("attn_scores", SCORES), ("attention_probs", SCORES), ("hook_attn_scores", SCORES),
        ("kq_soft_max_ext", SCORES), ("attn_weights_dropped", SCORES), ("row_max", (2, 4, 5)),
        ("max_logits", OF_HEADS), ("loss", ()), ("q_norm.weight", (8,)), ("rotary_emb.inv_freq", (4,)),
        ("position_ids", (5,)),
    ],
)  # fmt: skip
def test_a_result_of_attention_is_named_only(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    full = f"layers.0.attn.{name}"
    capture = opened(tmp_path, layered(1) | {full: numbers(*shape)}, **TOLD)
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""], (full,))


@for_each(
    ("key", "value"),
    [
        ("softmax", "off-by-one"), ("softmax_type", "off-by-one"), ("softmax_type", "learnable"),
        ("softmax", "off by one"), ("softmax_offset", 1), ("logit_offset", 1), ("softmax_base", 2),
        ("norm_factor", 8), ("inv_norm", 0.125), ("local_attention", 128), ("global_attn_every_n_layers", 3),
        ("num_random_blocks", 3), ("seq_lens", [3, 6]), ("key_lengths", [3, 6]), ("masking", "causal"),
        ("already_scaled", True), ("scaled", False), ("use_scale", False), ("scale_attn_weights", False),
        ("rope_applied", False), ("post_rope", False), ("pre_rope", True), ("window_left", 3), ("window_right", 0),
        ("forgetting", True), ("layout", "bshd"), ("qkv_format", "sbhd"), ("head_first", False), ("swap_qk", True),
        ("left_context", 3), ("att_context_size", [3, 0]), ("right_context", 0), ("span", 3), ("swa", 3), ("band", 3),
        ("look_ahead", False), ("attend_future", False), ("sink_logit", 0), ("zero_attn", True), ("softmax", False),
        ("rotated", False), ("positional", "alibi"), ("pe", "alibi"), ("gqa", "tiled"),
        ("softmax_dim", -2), ("mup", True), ("clamp_logits", 30), ("positions", [0, 3]), ("counts", [6, 5]),
        ("num_real_tokens", [6, 5]), ("doc_boundaries", [3]), ("packing", True), ("k_zero_point", 1), ("kv_start", 2),
    ],
)  # fmt: skip
def test_a_key_that_may_change_attention_is_refused(tmp_path: Path, key: str, value: object) -> None:
    [reason] = refusals(tmp_path, layered(1), **{key: value})
    assert f"metadata '{key}' may change attention" in reason
    [reason] = refusals(tmp_path, layered(1), layers=[{key: value}])
    assert f"metadata '{key}' may change attention" in reason


@for_each(
    ("key", "value"),
    [
        ("softmax_type", "vanilla"), ("softmax", "a long text about the softmax off by one"), ("pre_rope", False),
        ("post_rope", True), ("rope_applied", True), ("use_sliding_window", False), ("logits_soft_cap", 0),
        ("window_right", None), ("attention_bias", False), ("positions", 6), ("input_ids", [101, 7]),
        ("rotated", True), ("softmax_dim", -1), ("special_tokens", ["a"]), ("gqa", "grouped"), ("max_logit", 30),
        ("num_tokens", 6), ("softmax", True), ("gradient_clip", 1.0), ("max_distance", 128), ("rope_theta", 10_000),
    ],
)  # fmt: skip
def test_a_key_that_changes_nothing_is_named_only(tmp_path: Path, key: str, value: object) -> None:
    capture = opened(tmp_path, layered(1), **TOLD, **{key: value})
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""], (key,))


def test_a_list_of_types_says_which_layers_a_window_is_of(tmp_path: Path) -> None:
    types = ["full_attention", "sliding_attention", "local"]
    q, k = pair(queries=6)
    tensors = {f"layers.{i}.attn.{side}": array for i in range(3) for side, array in (("q", q), ("k", k))}
    capture = opened(tmp_path, tensors, **(TOLD | {"causal": "true"}), window=3, layer_types=types)
    assert [layer.window for layer in capture.layers] == [None, (2, 0), (2, 0)]
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""] * 3, ())
    capture = opened(tmp_path, tensors, **TOLD, layer_types=[*types[:2], "linear_attention"])
    assert [layer.refusal for layer in capture.layers] == [
        "",
        "metadata 'layer_type' is 'sliding_attention', but 'window' is missing",
        "metadata 'layer_type' is 'linear_attention', which attn-tui does not know",
    ]


@pytest.mark.parametrize("types", ["full", ["sliding_attention", "full_attention"], [1, 2, 3], {}])
def test_a_list_of_types_has_one_for_each_layer(tmp_path: Path, types: object) -> None:
    path = save(tmp_path / "x.safetensors", layered(3), **TOLD, layer_types=types)
    assert "layer_types" in refusal(path)
    assert refusals(tmp_path, layered(3), layer_types=["full_attention"]) == ["", "", ""]


def test_the_entry_of_a_layer_overrides_the_list_of_types(tmp_path: Path) -> None:
    entries = [{"layer_type": "full_attention"}]
    assert refusals(tmp_path, layered(1), layer_types=["sliding_attention"], layers=entries) == [""]


def test_a_number_for_all_scores_may_be_an_integer_of_something_else(tmp_path: Path) -> None:
    count = {"layers.0.attn.num_batches_tracked": np.array([7])}
    capture = opened(tmp_path, layered(1) | count, **TOLD)
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""], tuple(count))


@for_each(
    ("name", "shape", "changes"),
    [
        ("groups", (2, 6), True), ("seats", (6,), True), ("clusters_of", (2, 4, 6), True),
        ("input_ids", (2, 6), False), ("position_ids", (1, 6), False), ("position_ids", (1, 5), True),
        ("positions", (5,), True),
    ],
)  # fmt: skip
def test_an_integer_for_each_key_or_some_queries_may_change_attention(
    tmp_path: Path, name: str, shape: tuple[int, ...], changes: bool
) -> None:
    of_keys = {f"layers.0.attn.{name}": np.ones(shape, np.int64)}
    [reason] = refusals(tmp_path, layered(1) | of_keys)
    assert ("may change attention" in reason) is changes
