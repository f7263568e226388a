"""What a capture holds beyond what is understood: it is named, and refused if it may change attention."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.features import FEATURES
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile, read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, has_note, layered, named, numbers, opened, pair, refusal, save
from cases import for_each

Q, K = pair(queries=6)
SQUARE = named({"q": Q, "k": K})
SAID: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": 0.5}
TOLD = SAID | {"attention": "cross"}
CHANGE = "may change attention"


def opened_with(folder: Path, tensors: dict[str, Array], count: int = 1, **told: Any) -> CaptureFile:
    """A capture of some layers of 5 queries and 6 keys with further tensors; a layer that is refused is not read."""
    capture = opened(folder, layered(count) | tensors, **(TOLD | told))
    for layer in capture.layers:
        with pytest.raises(CaptureError, match=re.escape(layer.refusal)) if layer.refusal else nullcontext():
            read_head(capture, layer, 0)
    return capture


SCORES = (2, 4, 5, 6)
REFUSED = """
    temperature logit_scale window forget_gate softcap dropout_mask tau rpb gain q_descale cu_seqlens q_pe
    k_rope_scale headMask causal_table key_padding valid is_pad document_ids seq_ids topk_indices logn row_index
    num_tokens valid_len kv_head_map softmax_offset layout norm_factor sharpness null_k mem_kv k_cache past_key_values
    persistent_keys seq_lens lengths prefix talking_heads.weight ip_k k_global register_k null_attn pre_softmax_proj
    lam q_len image_ids top_k_idx selected block_table
"""
RESULTS = "attn_scores attention_probs hook_attn_scores kq_soft_max_ext attn_weights_dropped probs"
OTHERS = """
    in_proj_bias v_scale q_bias v_proj q_proj.bias q_norm.weight o_proj.scale rotary_emb.inv_freq position_ids
    max_logits loss
"""
CHANGING: list[tuple[str, tuple[int, ...]]] = [
    *((name, (3, 3)) for name in REFUSED.split()),
    *((name, shape) for name in ("r", "beta") for shape in (  # shaped like scores, heads or queries
        (4,), (1, 4, 1, 1), (4, 5, 6), SCORES, (5, 6), (5,), (1, 1, 5, 1), (4, 5), (2, 5), (2, 4, 5), (1, 4, 5, 1),
    )),
    *((name, SCORES) for name in ("attn_prior", "score_mod", "logit_adjustment")), ("attention_penalty", (5, 6)),
    ("proj_l", (4, 4)), ("beta", (1,)), ("norm_factor", ()),
]  # fmt: skip
NAMED: list[tuple[str, tuple[int, ...]]] = [
    *((name, SCORES) for name in RESULTS.split()),
    *((name, (3,)) for name in OTHERS.split()),
    *((name, shape) for name in ("row_max", "position_ids", "cos", "entropy") for shape in ((5,), (2, 5), (2, 4, 5))),
]  # fmt: skip


@for_each(("name", "shape"), CHANGING)
def test_a_tensor_that_may_change_attention_refuses_its_layer(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    capture = opened_with(tmp_path, named({name: numbers(*shape)}), 2)
    first, second = (layer.refusal for layer in capture.layers)
    assert f"'layers.0.attn.{name}'" in first
    assert CHANGE in first
    assert not second
    assert capture.unused == (f"layers.0.attn.{name}",)
    assert has_note(capture, f"layer 0 is not measured: {first}")
    q, k = pair()
    [layer] = opened(tmp_path, {"q": q, "k": k, name: numbers(*shape)}, **TOLD).layers
    assert f"tensor '{name}'" in layer.refusal


@for_each(("name", "shape"), NAMED)
def test_a_result_of_attention_or_of_another_module_is_named_only(
    tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    capture = opened_with(tmp_path, named({name: numbers(*shape)}))
    assert (capture.layers[0].refusal, capture.unused) == ("", (f"layers.0.attn.{name}",))
    assert capture.notes == (f"not used: 'layers.0.attn.{name}'",)


@for_each(
    ("name", "array", "changes"),
    [
        *((name, np.ones((3, 3), np.float32), False) for name in (
            "layers.0.mlp.bias", "model.embed_tokens.weight", "notes", "layers.7.attn.bias", "logits")),
        *((name, np.ones((3, 3), np.float32), True) for name in (
            "layers.0.attn_mask_2", "temperature", "cu_segments.packed", "block_mask", "distance_embedding.weight",
            "layers.0.attn.rel_embeddings.weight", "layers.0.attn.rel_pos_bias",
            "layers.0.attn.relative_attention_bias.weight")),
        ("adjacency", numbers(5, 6), True), ("attention_rollout", numbers(5, 6), False),
        ("attention_rollout", numbers(5, 6) > 0, True), ("adjacency", numbers(2, 5), False),
        *((f"layers.0.attn.row_max{dot}", array, changes) for dot, array, changes in (
            ("", numbers(2, 4, 5), False), ("", numbers(2, 4, 5) > 0, True), ("", numbers(2, 4, 6) > 0, True),
            ("", numbers(2, 4, 3) > 0, False))),
        *((f"layers.0.attn.beta{number}", numbers(*shape), changes) for number, (shape, changes) in enumerate((
            ((7, 5), False), ((2, 6), True), ((3, 6), False), ((6, 5), False)))),
        *(("keep", numbers(*shape) > 0, False) for shape in ((3, 6), (2, 5), (2, 2, 6))),
        *(("keep", numbers(*shape) > 0, True) for shape in ((6,), (2, 6), (5, 6))),
        ("layers.0.attn.keep", numbers(2, 1, 1, 6) > 0, True),
        ("layers.0.attn.num_batches_tracked", np.array([7]), False),
        *((f"layers.0.attn.{name}", np.ones(shape, np.int64), changes) for name, shape, changes in (
            ("groups", (2, 6), True), ("seats", (6,), True), ("clusters_of", (2, 4, 6), True),
            ("input_ids", (2, 6), False), ("position_ids", (1, 6), False), ("position_ids", (1, 5), True),
            *((name, (6,), True) for name in ("query_positions", "cache_position", "input_pos")),
            ("positions", (5,), True))),
        *(("nonpad", numbers(2, 6) > 0, True), ("linear_pos.weight", numbers(8, 8), True)),
    ],
)  # fmt: skip
def test_a_tensor_of_another_module_or_kind_may_change_attention(
    tmp_path: Path, name: str, array: Array, changes: bool
) -> None:
    capture = opened_with(tmp_path, {name: array})
    assert (CHANGE in capture.layers[0].refusal, capture.unused) == (changes, (name,))


def test_a_numbered_tensor_that_may_change_attention_is_of_the_layer_of_its_number(tmp_path: Path) -> None:
    tensors = {f"{side}.{number}": array for number in (0, 3) for side, array in (("q", Q), ("k", K))}
    for name, refused in (("temperature.3", [False, True]), ("temperature", [True, True])):
        capture = opened(tmp_path, tensors | {name: numbers(3)}, **TOLD)
        assert [CHANGE in layer.refusal for layer in capture.layers] == refused


KEYS: list[tuple[str, object]] = [
    *[("softmax", each) for each in ("off-by-one", "off by one", "off_by_one", False)], ("softmax_one", "true"),
    *[("softmax_type", "off-by-one"), ("softmax_type", "learnable"), ("softmax_offset", 1), ("logit_offset", 1)],
    *[("softmax_base", 2), ("norm_factor", 8), ("inv_norm", 0.125), ("local_attention", 128), ("seq_lens", [3, 6])],
    *[("global_attn_every_n_layers", 3), ("num_random_blocks", 3), ("key_lengths", [3, 6]), ("masking", "causal")],
    *[("already_scaled", True), ("scaled", False), ("use_scale", False), ("scale_attn_weights", False)],
    *[("rope_applied", False), ("post_rope", False), ("pre_rope", True), ("window_left", 3), ("window_right", 0)],
    *[("forgetting", True), ("layout", "bshd"), ("qkv_format", "sbhd"), ("head_first", False), ("swap_qk", True)],
    *[("left_context", 3), ("att_context_size", [3, 0]), ("right_context", 0), ("span", 3), ("swa", 3), ("band", 3)],
    *[("look_ahead", False), ("attend_future", False), ("sink_logit", 0), ("zero_attn", True), ("rotated", False)],
    *[("positional", "alibi"), ("pe", "alibi"), ("gqa", "tiled"), ("softmax_dim", -2), ("mup", True)],
    *[("clamp_logits", 30), ("positions", [0, 3]), ("counts", [6, 5]), ("num_real_tokens", [6, 5])],
    *[("doc_boundaries", [3]), ("packing", True), ("k_zero_point", 1), ("kv_start", 2), ("q_start", 3)],
    *[("past_key_values_length", 3), ("past_length", 3), ("start_pos", 3), ("q_offset", 2), ("kv_offset", 2)],
    *[("left_padding", [0, 2]), ("valid_length", [6, 5]), ("shift_size", 2), ("attn_clip", 50.0)],
    *[("kv_head_map", [1, 0]), ("gqa_layout", "interleaved"), ("bidirectional", "false"), ("attn", {"softcap": 30})],
    *[("is_cross_attention", True), ("unidirectional", True), ("n_past", 3), ("autoregressive", True)],
    *[("attention_type", each) for each in ("cross", "sigmoid", "block_sparse")], ("linear_attention", True),
    *[("use_cosine_attention", True), ("attention_span", 3), ("tanh_clipping", 10), ("past_kv_length", 3)],
    *[("n_tokens", [5, 4]), ("position_bias_kind", "t5"), ("position_embedding_type", "relative_key")],
    *[("attn_activation", "relu"), ("add_zero_attn", "true"), ("weighting", "entmax"), ("use_logn_attn", "true")],
    *[("divisor", "8"), ("global_tokens", "2"), ("prefix_length", "3"), ("scaling", 2), ("alibi", 2)],
    *[("attn_bias", 2), ("softmax_temperature", 2), ("query_pre_attn_scalar", 2)],
]  # fmt: skip
HARMLESS: list[tuple[str, object]] = [
    *[("softmax_type", "vanilla"), ("softmax", "a long text about the softmax off by one"), ("pre_rope", False)],
    *[("post_rope", True), ("rope_applied", True), ("use_sliding_window", False), ("logits_soft_cap", 0)],
    *[("window_right", None), ("attention_bias", False), ("positions", 6), ("input_ids", [101, 7])],
    *[("softmax_dim", -1), ("special_tokens", ["a"]), ("gqa", "grouped"), ("max_logit", 30), ("num_tokens", 6)],
    *[("rotated", True)],
    *[("softmax", True), ("gradient_clip", 1.0), ("max_distance", 128), ("rope_theta", 10_000), ("comment", "1")],
    *[("final_logit_softcapping", 30.0), ("bidirectional", "true"), ("past_length", 0), ("position_offset", 4)],
    *[("attention_type", "full"), ("position_embedding_type", "absolute"), ("attn_implementation", "sdpa")],
    *[("softmax_dtype", "float32"), ("padding_side", "left"), ("pad_token_id", "0"), ("global_step", "400")],
    *[("lr_scheduler", "cosine"), ("model_type", "t5"), ("comment", "sigmoid"), ("max_positions", "512")],
    *[("seed", 1), ("torch", "2"), ("n_tokens", 12), ("cross_entropy", 2.5), ("is_decoder", True), ("n_past", False)],
    *[(key, nothing) for key in ("alibi", "attn_bias") for nothing in (None, "none", False, "off", "", 0)],
]  # fmt: skip


@for_each(("key", "value"), KEYS)
def test_a_key_that_may_change_attention_is_refused(tmp_path: Path, key: str, value: object) -> None:
    capture = opened_with(tmp_path, {}, 1, **{key: value})
    assert f"metadata '{key}' may change attention" in capture.layers[0].refusal
    capture = opened_with(tmp_path, {}, 2, layers=[{key: value}, {}])
    assert capture.unused == (f"layers[].{key}",)
    assert f"metadata '{key}' may change attention" in capture.layers[0].refusal
    assert not capture.layers[1].refusal


@for_each(("key", "value"), HARMLESS)
def test_a_key_that_changes_nothing_is_named_only(tmp_path: Path, key: str, value: object) -> None:
    capture = opened_with(tmp_path, {}, 1, **{key: value})
    assert (capture.layers[0].refusal, capture.unused) == ("", (key,))
    assert not opened_with(tmp_path, {}, layers=[{key: value}]).layers[0].refusal


@for_each(
    ("told", "hint"),
    [
        ({"sacle": 0.5}, "scale"), ({"casual": True}, "causal"), ({"sliding_windw": 3}, "sliding_window"),
        ({"prescale": [1, 1]}, "prescaled"), ({"layers": [{"scal": 0.5}]}, "scale"),
    ],
)  # fmt: skip
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(
    tmp_path: Path, told: dict[str, Any], hint: str
) -> None:
    assert f"did you mean '{hint}'?" in opened_with(tmp_path, {}, **told).layers[0].refusal


OF_LOGITS = (
    "lengths axes scale head_scales prescaled causal alignment window chunk softcap slopes sinks rows attention "
    "mask_true over_queries mask"
)


def test_every_key_that_changes_logits_is_suggested_for_its_misspelling_and_no_other(tmp_path: Path) -> None:
    for feature in FEATURES:
        for key in (feature.key, *feature.aliases) if feature.places else ():
            told: dict[str, Any] = {"layers": [{f"{key}x": 0.5}]} if "entry" in feature.places else {f"{key}x": 0.5}
            hinted = f"did you mean '{key}'?" in opened_with(tmp_path, {}, **told).layers[0].refusal
            assert hinted is (feature.name in OF_LOGITS.split()), key


@for_each("name", ["position_bias", "relative_position_bias", "alibi_slopes"])
def test_a_bias_of_positions_in_one_layer_may_belong_to_all(tmp_path: Path, name: str) -> None:
    """T5's relative_attention_bias is in its first block, whose result all blocks add."""

    def of(module: str) -> dict[str, Array]:
        return {f"{module}.q": Q, f"{module}.k": K}

    def refused(tensors: dict[str, Array]) -> dict[str, str]:
        return {layer.name: layer.refusal for layer in opened(tmp_path, tensors, **SAID).layers if layer.refusal}

    bias = numbers(4, seed=5) ** 2 if name == "alibi_slopes" else numbers(1, 4, 6, 6, seed=5)
    stack = of("encoder.block.0.attn") | of("encoder.block.1.attn")
    others = of("decoder.block.0.attn") | of("encoder.block.1.encoder_attn")
    [(layer, why)] = refused(stack | others | {f"encoder.block.0.attn.{name}": bias}).items()
    assert layer == "encoder.block.1.attn"
    assert why.startswith(f"tensor 'encoder.block.0.attn.{name}' may belong to this layer too")
    assert not refused(stack | {name: bias})
    both = stack | {f"encoder.block.0.attn.{name}": bias, "encoder.block.1.attn.temperature": numbers(1)}
    assert "temperature" in refused(both)["encoder.block.1.attn"]
    entries = [{}, {"attention": "cross"}]
    assert (
        not opened(tmp_path, stack | {f"encoder.block.0.attn.{name}": bias}, **SAID, layers=entries).layers[1].refusal
    )
    assert not refused(stack | {f"encoder.block.{i}.attn.{name}": bias for i in range(2)})
    capture = opened(tmp_path, stack | of("decoder.block.0.layer.1.EncDecAttention") | {name: bias}, **SAID)
    assert [layer.bias for layer in capture.layers] == [None if layer.cross else name for layer in capture.layers]


def test_layer_types_say_which_layers_a_window_is_of(tmp_path: Path) -> None:
    types = ["full_attention", "sliding_attention", "local"]
    capture = opened_with(tmp_path, {}, 3, causal="top-left", window=3, layer_types=types)
    assert [layer.window for layer in capture.layers] == [None, (2, 0), (2, 0)]
    assert ([layer.refusal for layer in capture.layers], capture.unused) == ([""] * 3, ())
    capture = opened_with(tmp_path, {}, 3, layer_types=[*types[:2], "linear_attention"])
    assert [layer.refusal for layer in capture.layers] == [
        "",
        "metadata 'layer_type' is 'sliding_attention', but 'window' is missing",
        "metadata 'layer_type' is 'linear_attention', which attn-tui does not know",
    ]
    own = opened_with(tmp_path, {}, layer_types=["sliding_attention"], layers=[{"layer_type": "full_attention"}])
    assert not own.layers[0].refusal
    assert not any(layer.refusal for layer in opened_with(tmp_path, {}, 3, layer_types=types[:1]).layers)
    several: list[object] = ["full", types[:2], [1, 2, 3], {}]
    for wrong in several:
        assert "layer_types" in refusal(save(tmp_path / "x.safetensors", layered(3), **TOLD, layer_types=wrong))


@for_each(
    ("kind", "more", "missing"),
    [
        ("sliding_attention", {}, "window"), ("chunked_attention", {}, "chunk"), ("full_attention", {}, ""),
        ("sliding_attention", {"window": 3}, ""), ("chunked_attention", {"chunk": 3}, ""),
    ],
)  # fmt: skip
def test_a_layer_of_a_type_that_needs_a_window_has_one(
    tmp_path: Path, kind: str, more: dict[str, Any], missing: str
) -> None:
    capture = opened_with(tmp_path, {}, causal="top-left", layers=[{"layer_type": kind, **more}])
    assert (f"'{missing}' is missing" if missing else "") in capture.layers[0].refusal
    assert bool(capture.layers[0].refusal) is bool(missing)


def test_many_unknown_tensors_or_faults_are_a_few_notes(tmp_path: Path) -> None:
    more = {f"layers.{i}.attn.v_proj": np.ones(2, np.float32) for i in range(20)}
    capture = opened(tmp_path, SQUARE | more, **TOLD)
    assert len(capture.unused) == 20
    assert has_note(capture, "and 12 more")
    lonely = {f"layers.{i}.attn.q": np.ones((1, 2), np.float32) for i in range(1, 300)}
    capture = opened(tmp_path, SQUARE | lonely, **TOLD)
    assert len(capture.notes) == 41
    assert "260" in capture.notes[-1]


@for_each(
    ("config", "told", "said"),
    [
        ({"attn_logit_softcapping": 50.0}, {}, "attn_logit_softcapping 50, but the capture does not: not applied"),
        ({"text_config": {"sliding_window": 4}}, {}, "sliding_window 4, but the capture does not"),
        ({"attention_chunk_size": 4}, {}, "attention_chunk_size 4, but the capture does not"),
        ({"attn_logit_softcapping": 50.0}, {"softcap": 50}, ""),
        ({"attn_logit_softcapping": None, "sliding_window": None}, {}, ""),
        ({"sliding_window": 4096}, {}, ""),
        ({"sliding_window": 4, "use_sliding_window": False}, {}, ""),
        ({"sliding_window": 4}, {"window": [3, 0]}, ""),
        ({"sliding_window": 4, "layer_types": ["full_attention"]}, {}, ""),
        ({"sliding_window": 4, "layer_types": ["sliding_attention"]}, {}, "not applied in layer 0"),
        ({"alibi": True}, {}, "has alibi true, but the capture does not: not applied in layer 0"),
        ({"attn_config": {"alibi": True}}, {}, "has alibi true"),
        ({"alibi": True}, {"alibi_slopes": [0.5] * 4}, ""),
        ({"alibi": False}, {}, ""),
        ({"relative_attention_num_buckets": 32}, {}, "has relative_attention_num_buckets 32"),
        ({"query_pre_attn_scalar": 144, "attention_multiplier": 0.1}, {}, ""),
        ({"query_pre_attn_scalar": 144}, {"scale": None}, "has query_pre_attn_scalar 144"),
        ({"query_pre_attn_scalar": 144}, {"scale": None, "head_scales": [0.5] * 4}, ""),
        ({"attention_chunk_size": 4}, {"chunk": 4}, ""),
        ({"model_type": "bloom"}, {}, "models of type bloom have ALiBi, but the capture does not: not applied"),
        ({"model_type": "gpt_oss"}, {}, "models of type gpt_oss have sinks"),
        ({"model_type": "gpt_oss"}, {"sinks": [0.5] * 4}, ""),
        ({"model_type": "opt"}, {"scale": 1}, "models of type opt multiply q by 1/√d_k before attention"),
        ({"model_type": "opt"}, {"scale": 1, "prescaled": [0.5, 1]}, ""),
        ({"model_type": "opt"}, {}, ""),
    ],
)
def test_what_only_the_model_s_configuration_says_is_noted(
    tmp_path: Path, config: dict[str, Any], told: dict[str, Any], said: str
) -> None:
    said_of_file = {key: value for key, value in (SAID | told).items() if value is not None}
    capture = opened(tmp_path, SQUARE, **said_of_file, config=config)
    assert has_note(capture, said) if said else capture.notes == ()
    assert not capture.layers[0].refusal


FLOAT = np.ones(3, np.float32)


@for_each(
    ("beside", "told", "said"),
    [
        *(({name: FLOAT}, {}, "must hold a number for each of 4 heads") for name in ("sinks", "alibi_slopes")),
        ({"bias": FLOAT}, {}, "here [2, 4, 6, 6]"),
        ({"bias": np.tri(6, dtype=bool)}, {}, "must hold floating-point numbers"),
        ({"scale": FLOAT}, {}, "or [batch, heads, queries, 1], here 4 heads, 6 queries and 2 texts"),
        ({"scale": np.ones(4)}, {}, "and the metadata both give the scale"),
        ({}, {"head_scales": [1.0] * 4}, "both scale and head_scales"),
        ({}, {"head_scales": [1.0] * 3, "scale": None}, "3 numbers for 4 heads"),
        ({"rows": np.arange(5)}, {}, "must be 6 whole numbers"),
        ({"bias": np.zeros((6, 6)), "alibi": np.zeros((6, 6))}, {}, "are both there"),
        ({}, {"sinks": [0.5] * 3}, "metadata 'sinks' of shape [3] must hold a number for each of 4 heads"),
        ({"sinks": np.ones(4)}, {"sinks": [0.5] * 4}, "and the metadata both give sinks"),
        ({}, {"rows": [0, 1]}, "metadata 'rows' of shape [2] must be 6 whole numbers"),
        ({}, {"scale": [0.5] * 3}, "3 numbers for 4 heads"),
        ({"alibi": np.ones(4), "slopes": np.ones(4)}, {}, "both hold slopes"),
        ({"sinks": np.full(4, np.inf)}, {}, "layers.0.attn.sinks"),
        *(({"scale": np.full(4, bad)}, {"scale": None}, "layers.0.attn.scale") for bad in (-1.0, 0.0)),
        ({"bias": np.full((6, 6), np.nan)}, {}, "layers.0.attn.bias"),
    ],
)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, beside: dict[str, Array], told: dict[str, Any], said: str
) -> None:
    metadata = {key: value for key, value in (TOLD | told).items() if value is not None}
    assert said in refusal(save(tmp_path / "x.safetensors", SQUARE | named(beside), **metadata))


def test_entries_of_no_layer_or_of_another_one_are_refused(tmp_path: Path) -> None:
    wrong: list[list[dict[str, object]]] = [
        [{"index": 0, "scale": 1}, {"index": 4, "scale": 2}],
        [{"index": 1, "name": "layers.0.attn"}, {"index": 0, "name": "layers.1.attn"}],
        [{"name": "layers.1.attn"}, {"name": "layers.0.attn"}],
    ]
    for entries in wrong:
        with pytest.raises(CaptureError, match=r"metadata 'layers'.*index"):
            opened(tmp_path, layered(2), layers=entries)
    stacks = {f"{of}.layers.0.attn.{side}": Q for of in ("decoder", "encoder") for side in "qk"}
    told = {"axes": "b,h,t,d", "scale": 0.5}
    for entries in ([{"index": 0, "causal": True}], [{"causal": True}, {}, {}]):
        path = save(tmp_path / "x.safetensors", stacks, **told, layers=entries)
        assert "'layers' has one entry for several layers with the number 0" in refusal(path)
    capture = opened(tmp_path, stacks, **told, layers=[{"causal": True}, {"causal": False}])
    assert [(layer.name, layer.causal) for layer in capture.layers] == [
        ("decoder.layers.0.attn", "top_left"),
        ("encoder.layers.0.attn", None),
    ]


def test_the_only_entry_belongs_to_the_only_layer_without_a_number(tmp_path: Path) -> None:
    capture = opened(tmp_path, {"q": Q, "k": K}, layers=[{"index": 7, "scale": 0.5}], causal=True)
    layer = capture.layers[0]
    assert (layer.index, layer.numbered, layer.scale, capture.unused) == (7, True, 0.5, ())


def test_an_index_or_a_name_of_the_whole_file_is_of_no_layer(tmp_path: Path) -> None:
    for tensors in ({"q": Q, "k": K}, {"layers.3.attn.q": Q, "layers.3.attn.k": K}):
        plain, capture = opened(tmp_path, tensors), opened(tmp_path, tensors, index=7, name="model")
        assert capture.layers == plain.layers
        assert has_note(capture, "'index'")
        assert has_note(capture, "'name'")


@for_each(
    ("name", "value", "changes"), [("temperature", 0.7, True), ("softmax", "none", False), ("mup", "yes", True)]
)
def test_texts_and_single_numbers_of_an_archive_are_metadata(
    tmp_path: Path, name: str, value: object, changes: bool
) -> None:
    arrays: dict[str, Any] = {"q": Q, "k": K, **SAID, name: value}
    np.savez(tmp_path / "x.npz", **arrays)
    capture = open_capture(tmp_path / "x.npz")
    assert (capture.unused, f"metadata '{name}'" in capture.layers[0].refusal) == ((name,), changes)


def test_all_metadata_may_be_one_object(tmp_path: Path) -> None:
    whole = np.array(json.dumps({"causal": True, "scale": 0.5, "softcap": 1.5, "axes": "batch,head,token,d_k"}))
    np.savez(tmp_path / "x.npz", q=Q, k=K, metadata=whole)
    capture = open_capture(tmp_path / "x.npz")
    layer = capture.layers[0]
    assert (layer.causal, layer.scale, layer.softcap, capture.notes) == ("top_left", 0.5, 1.5, ())
    np.savez(tmp_path / "x.npz", q=Q, k=K, metadata=whole, scale=0.5)
    assert "metadata has 'scale' twice, once in 'metadata'" in refusal(tmp_path / "x.npz")
