"""What a capture holds beyond what is understood: it is named, and refused if it may change attention."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile, read_head
from attn_tui.core.captures.reader import open_capture
from capture_files import Array, has_note, layered, numbers, opened, pair, save, visible
from cases import for_each

Q, K = pair(queries=6)
SQUARE = {"layers.0.attn.q": Q, "layers.0.attn.k": K}
CAUSAL = np.tri(6, dtype=bool)
TOLD: dict[str, Any] = {"schema": "attn-tui/qk-2", "causal": "false", "scale": 0.5}


def measured(capture: CaptureFile, layer: int = 0) -> str:
    """Return why a layer is not measured; empty if it is."""
    try:
        read_head(capture, capture.layers[layer], 0)
    except CaptureError as error:
        return str(error)
    return ""


HARMLESS = [
    *("layers.0.attn.v_proj", "layers.0.mlp.bias", "layers.0.attn.q_proj.bias", "layers.0.attn.q_norm.weight"),
    *("model.embed_tokens.weight", "layers.0.attn.o_proj.scale", "notes", "layers.7.attn.bias", "logits"),
]
HARMFUL = [
    *("layers.0.attn.temperature", "layers.0.attn.logit_scale", "layers.0.attn.rel_pos_bias", "layers.0.attn.window"),
    *("layers.0.attn.relative_attention_bias.weight", "layers.0.attn_mask_2", "temperature", "cu_segments.packed"),
    *("layers.0.attn.forget_gate", "block_mask", "layers.0.attn.softcap", "layers.0.attn.dropout_mask"),
]  # fmt: skip


@for_each("name", HARMLESS)
def test_a_tensor_that_is_not_understood_is_named(tmp_path: Path, name: str) -> None:
    capture = opened(tmp_path, SQUARE | {name: np.ones((3, 3), np.float32)}, **TOLD)
    assert capture.unused == (name,)
    assert capture.notes == (f"not used: '{name}'",)
    assert measured(capture) == ""


@for_each("name", HARMFUL)
def test_a_tensor_that_may_change_attention_and_is_not_understood_is_refused(tmp_path: Path, name: str) -> None:
    capture = opened(tmp_path, SQUARE | {name: np.ones((3, 3), np.float32)}, **TOLD)
    assert capture.unused == (name,)
    said = f"tensor '{name}' may change attention, and attn-tui does not know it"
    assert measured(capture) == f"{capture.path}: layer 0: {said}"
    assert has_note(capture, f"layer 0 is not measured: {said}")


def test_only_the_layer_of_an_unknown_tensor_is_refused(tmp_path: Path) -> None:
    unknown = {"layers.1.attn.temperature": np.ones(4, np.float32)}
    capture = opened(tmp_path, layered(3) | unknown, **TOLD)
    assert [bool(measured(capture, layer)) for layer in range(3)] == [False, True, False]


def test_relative_positions_in_one_layer_may_serve_all(tmp_path: Path) -> None:
    unknown = {"layers.0.attn.relative_attention_bias.weight": np.ones((32, 4), np.float32)}
    capture = opened(tmp_path, layered(2) | unknown, **TOLD)
    assert all(measured(capture, layer) for layer in range(2))


@pytest.mark.parametrize("key", ["comment", "seed", "torch", "rope_theta"])
def test_a_key_that_is_not_understood_is_named(tmp_path: Path, key: str) -> None:
    capture = opened(tmp_path, SQUARE, **TOLD, **{key: "1"})
    assert (capture.unused, measured(capture)) == ((key,), "")


@for_each("key", ["scaling", "alibi", "attn_bias", "softmax_temperature", "query_pre_attn_scalar"])
@for_each("in_entry", [False, True])
def test_a_key_that_may_change_attention_and_is_not_understood_is_refused(
    tmp_path: Path, key: str, in_entry: bool
) -> None:
    more = {"layers": [{key: 2}, {}]} if in_entry else {key: "2"}
    capture = opened(tmp_path, layered(2), **TOLD, **more)
    assert capture.unused == (f"layers[].{key}" if in_entry else key,)
    assert f"metadata '{key}' may change attention" in measured(capture)
    assert bool(measured(capture, 1)) is not in_entry


def test_a_long_list_of_what_is_not_used_is_short_in_the_note(tmp_path: Path) -> None:
    more = {f"layers.{i}.attn.v_proj": np.ones(2, np.float32) for i in range(20)}
    capture = opened(tmp_path, SQUARE | more, **TOLD)
    assert len(capture.unused) == 20
    assert has_note(capture, "and 12 more (all are in the JSON output)")


@pytest.mark.slow
def test_thousands_of_unknown_tensors_take_seconds(tmp_path: Path) -> None:
    one, many = np.ones((1, 1), np.float32), range(2_000)
    tensors = {f"layers.{i}.attn.{name}": one for i in many for name in ("q", "k", "temperature")}
    started = time.process_time()
    capture = opened(tmp_path, tensors, **TOLD)
    assert time.process_time() - started < 20
    assert capture.layers[7].refusal.startswith("tensor 'layers.7.attn.temperature' may change attention")


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
    said_of_file = {key: value for key, value in (TOLD | told).items() if value is not None}
    capture = opened(tmp_path, SQUARE, **said_of_file, config=config)
    assert (has_note(capture, said), bool(capture.notes)) == (True, True) if said else capture.notes == ()
    assert measured(capture) == ""


def test_a_file_with_a_fault_in_every_tensor_has_a_few_notes(tmp_path: Path) -> None:
    lonely = {f"layers.{i}.attn.q": np.ones((1, 2), np.float32) for i in range(1, 300)}
    capture = opened(tmp_path, SQUARE | lonely, **TOLD)
    assert len(capture.notes) == 41
    assert capture.notes[-1] == "and 260 more notes"
    assert has_note(capture, "not used: 'layers.1.attn.q'")


FLOAT = np.ones(3, np.float32)
FAULTY: list[tuple[dict[str, Array], dict[str, Any], str]] = [
    ({"sinks": FLOAT}, {}, "must hold a number for each of 4 heads"),
    ({"alibi_slopes": FLOAT}, {}, "must hold a number for each of 4 heads"),
    ({"bias": FLOAT}, {}, "here [2, 4, 6, 6]"),
    ({"bias": CAUSAL}, {}, "must hold floating-point numbers"),
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
]  # fmt: skip


@for_each(("beside", "metadata", "said"), FAULTY)
def test_what_does_not_fit_is_refused(
    tmp_path: Path, beside: dict[str, Array], metadata: dict[str, Any], said: str
) -> None:
    named = {f"layers.0.attn.{name}": array for name, array in beside.items()}
    told = {key: value for key, value in (TOLD | metadata).items() if value is not None}
    capture = opened(tmp_path, SQUARE | named, **told)
    assert said in measured(capture)


@pytest.mark.parametrize(("role", "bad"), [("sinks", np.inf), ("scale", -1.0), ("scale", 0.0), ("bias", np.nan)])
def test_numbers_that_cannot_be_used_are_refused_when_a_head_is_read(tmp_path: Path, role: str, bad: float) -> None:
    values = np.full((6, 6) if role == "bias" else 4, bad, np.float32)
    told = {key: value for key, value in TOLD.items() if role != "scale" or key != "scale"}
    assert f"layers.0.attn.{role}" in measured(opened(tmp_path, SQUARE | {f"layers.0.attn.{role}": values}, **told))


# Masks whose values tell what True means, and what they mean.
PADDED = np.arange(6) < np.array([6, 4])[:, np.newaxis]
TELLING = {
    "causal": CAUSAL[np.newaxis],
    "window": (CAUSAL & ~np.tri(6, k=-3, dtype=bool))[np.newaxis],
    "symmetric window": (np.abs(np.subtract.outer(np.arange(6), np.arange(6))) < 2)[np.newaxis],
    "padded": PADDED[:, np.newaxis, np.newaxis],
}


@for_each("name", TELLING)
@for_each("hidden", [False, True])
@for_each("dtype", [np.bool_, np.uint8, np.float32])
def test_the_values_of_an_attn_mask_tell_what_true_means(
    tmp_path: Path, name: str, hidden: bool, dtype: type[Any]
) -> None:
    shown = TELLING[name]
    mask = np.where(hidden, ~shown, shown).astype(dtype)
    capture = opened(tmp_path, SQUARE | {"layers.0.attn.attn_mask": mask}, **TOLD)
    np.testing.assert_array_equal(
        visible(capture), np.broadcast_to(shown.reshape(-1, *shown.shape[-2:]), visible(capture).shape)
    )


def test_a_mask_that_could_mean_both_is_refused_until_it_is_told(tmp_path: Path) -> None:
    mask = np.array([[1, 0, 1, 1, 0, 1], [0, 1, 1, 0, 1, 1]], np.bool_)
    path = save(tmp_path / "x.safetensors", SQUARE | {"layers.0.attn.attn_mask": mask[:, np.newaxis]}, **TOLD)
    assert "--mask-true visible or hidden, or metadata mask_true" in measured(open_capture(path))
    for meaning, shown in (("visible", mask), ("hidden", ~mask)):
        told = open_capture(path, mask_true=meaning)  # pyright: ignore[reportArgumentType]
        expected = np.where(shown[:, np.newaxis], 0.5 * (Q[:, 0] @ K[:, 0].mT), -np.inf)
        assert_measured(told, 0, Expected(expected, left_out=~shown))
        again = opened(tmp_path, SQUARE | {"layers.0.attn.attn_mask": mask[:, np.newaxis]}, **TOLD, mask_true=meaning)
        np.testing.assert_array_equal(visible(again)[:, 0], shown)


def test_true_is_hidden_in_a_mask_of_padding_keys(tmp_path: Path) -> None:
    named = {"layers.0.attn.key_padding_mask": ~PADDED}
    capture = opened(tmp_path, SQUARE | named, **TOLD)
    np.testing.assert_array_equal(visible(capture)[:, 0], PADDED)
    assert has_note(capture, "key_padding_mask': True is taken as hidden, as in nn.MultiheadAttention")
    both = opened(tmp_path, SQUARE | named | {"layers.0.attn.attn_mask": ~CAUSAL}, **TOLD)
    np.testing.assert_array_equal(visible(both), CAUSAL & PADDED[:, np.newaxis])


def test_a_mask_named_as_in_transformers_says_what_is_visible(tmp_path: Path) -> None:
    odd = numbers(2, 6) > 0
    odd[:, 0] = True
    for name in ("mask", "attention_mask"):
        capture = opened(tmp_path, SQUARE | {f"layers.0.attn.{name}": odd}, **TOLD)
        np.testing.assert_array_equal(visible(capture)[:, 0], odd)
