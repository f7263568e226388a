"""What attention returned (v, o, lse and weights) is found under its names, in the order of its axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError, NotFiniteError
from attn_tui.core.captures.head import read_evidence
from attn_tui.core.diagnosis.reading import read_subject
from attn_tui.core.diagnosis.verdict import diagnose
from capture_files import Array, opened
from cases import for_each

BATCH, HEADS, KV_HEADS, QUERIES, KEYS, D_K, D_V = 2, 6, 3, 7, 9, 8, 5
SCALE = D_K**-0.5
rng = np.random.default_rng(7)
Q, K, V = (
    rng.normal(size=shape).astype(np.float32)
    for shape in ((BATCH, HEADS, QUERIES, D_K), (BATCH, KV_HEADS, KEYS, D_K), (BATCH, KV_HEADS, KEYS, D_V))
)
REPEATED = V.repeat(HEADS // KV_HEADS, axis=1)
SCORES = SCALE * Q.astype(np.float64) @ K.repeat(HEADS // KV_HEADS, axis=1).astype(np.float64).mT
LSE = np.log(np.exp(SCORES).sum(axis=-1))
WEIGHTS = np.exp(SCORES - LSE[..., np.newaxis])
OUTPUT = WEIGHTS @ REPEATED
TOLD: dict[str, Any] = {"causal": "false", "scale": SCALE}
EXPECTED = {"v": REPEATED, "o": OUTPUT, "lse": LSE, "weights": WEIGHTS}


def tokens_first(array: Array) -> Array:
    return array.swapaxes(1, 2)


def flat(array: Array) -> Array:
    return tokens_first(array).reshape(BATCH, array.shape[2], -1)


def assert_found(folder: Path, tensors: dict[str, Array], role: str, **told: Any) -> None:
    """Every head has the expected numbers in a role."""
    single = {name: array.astype(np.float32) for name, array in tensors.items()}
    capture = opened(folder, single, **TOLD, **told)
    [layer] = capture.layers
    assert (layer.evidence, capture.unused) == ((role,), ())
    for head in range(HEADS):
        found = read_evidence(capture, layer, head, role)
        assert found is not None
        np.testing.assert_allclose(found, EXPECTED[role][:, head], rtol=1e-6, atol=1e-7)


HEADS_FIRST = {"layers.0.attn.q": Q, "layers.0.attn.k": K}


@for_each(
    ("role", "name", "array"),
    [
        ("v", "v", V), ("v", "V", REPEATED), ("v", "value", flat(V)), ("v", "v_proj", flat(V)),
        ("o", "o", OUTPUT), ("o", "out", tokens_first(OUTPUT)),
        ("o", "o", tokens_first(OUTPUT)), ("o", "z", flat(OUTPUT)), ("lse", "lse", LSE),
        ("lse", "softmax_lse", LSE[..., np.newaxis]), ("lse", "logsumexp", tokens_first(LSE)),
        ("weights", "attn_weights", WEIGHTS), ("weights", "weights", WEIGHTS.reshape(-1, QUERIES, KEYS)),
        ("o", "o", OUTPUT.reshape(-1, QUERIES, D_V)),
    ],
)  # fmt: skip
def test_evidence_is_found_in_every_order_of_its_axes(tmp_path: Path, role: str, name: str, array: Array) -> None:
    assert_found(tmp_path, HEADS_FIRST | {f"layers.0.attn.{name}": array}, role, schema="attn-tui/qk-2")


@pytest.mark.parametrize(
    ("role", "name", "array"),
    [
        ("v", "hook_v", tokens_first(V)),
        ("o", "hook_z", tokens_first(OUTPUT)),
        ("weights", "hook_pattern", WEIGHTS),
    ],
)
def test_evidence_of_transformer_lens_is_found(tmp_path: Path, role: str, name: str, array: Array) -> None:
    cache = {"blocks.0.attn.hook_q": tokens_first(Q), "blocks.0.attn.hook_k": tokens_first(K)}
    assert_found(tmp_path, cache | {f"blocks.0.attn.{name}": array}, role)


@pytest.mark.parametrize(
    ("role", "name", "array"), [("v", "Vcur", tokens_first(V)), ("weights", "kq_soft_max", WEIGHTS)]
)
def test_evidence_of_llama_cpp_is_found(tmp_path: Path, role: str, name: str, array: Array) -> None:
    one = {"Qcur-4": tokens_first(Q)[:1], "Kcur-4": tokens_first(K)[:1], f"{name}-4": array[:1]}
    capture = opened(tmp_path, {key: np.asarray(value, np.float32) for key, value in one.items()}, **TOLD)
    found = read_evidence(capture, capture.layers[0], 5, role)
    assert found is not None
    np.testing.assert_allclose(found, EXPECTED[role][:1, 5], rtol=1e-6)


@pytest.mark.parametrize("text", [slice(None), 1])
def test_flat_values_belong_to_flat_keys(tmp_path: Path, text: Any) -> None:
    projected = {"q_proj": flat(Q)[text], "k_proj": flat(K)[text], "v_proj": flat(V)[text]}
    named = {f"model.layers.0.self_attn.{name}": array for name, array in projected.items()}
    capture = opened(tmp_path, named, **TOLD, heads=HEADS)
    for head in range(HEADS):
        found = read_evidence(capture, capture.layers[0], head, "v")
        assert found is not None
        np.testing.assert_array_equal(found, REPEATED[np.arange(BATCH)[text], head].reshape(found.shape))


def test_flat_values_as_wide_as_queries_have_their_heads(tmp_path: Path) -> None:
    wide = rng.normal(size=(BATCH, HEADS, KEYS, D_K)).astype(np.float32)
    capture = opened(tmp_path, HEADS_FIRST | {"layers.0.attn.v_proj": flat(wide)}, **TOLD, schema="attn-tui/qk-2")
    for head in range(HEADS):
        np.testing.assert_array_equal(read_evidence(capture, capture.layers[0], head, "v"), wide[:, head])


@for_each(
    ("name", "array"),
    [
        ("v", V[:, :2]), ("o", OUTPUT[:, :, :-1]), ("lse", LSE[:, :, :-1]), ("weights", WEIGHTS[:, :, :, :-1]),
        ("weights", WEIGHTS.mean(axis=1)), ("out", flat(OUTPUT)), ("lse", LSE.astype(int)),
        ("o", OUTPUT[..., :0]), ("o", OUTPUT[:1]), ("v", np.tile(V, (2, 1, 1, 1))), ("lse", WEIGHTS[..., :2]),
        ("o", np.moveaxis(OUTPUT, 0, -1)), ("o", OUTPUT[..., np.newaxis]), ("weights", WEIGHTS[np.newaxis]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_and_not_used(tmp_path: Path, name: str, array: Array) -> None:
    capture = opened(tmp_path, HEADS_FIRST | {f"layers.0.attn.{name}": array}, **TOLD, schema="attn-tui/qk-2")
    assert (capture.layers[0].evidence, capture.unused) == ((), (f"layers.0.attn.{name}",))


@for_each("role", ["v", "o", "lse", "weights"])
@for_each("bad", [np.nan, np.inf])
def test_evidence_that_is_not_finite_is_a_cause(tmp_path: Path, role: str, bad: float) -> None:
    beside = {f"layers.0.attn.{name}": EXPECTED[name].copy() for name in ("v", "o", role)}
    beside[f"layers.0.attn.{role}"][1, 4, 3] = bad
    capture = opened(tmp_path, HEADS_FIRST | beside, **TOLD, schema="attn-tui/qk-2")
    assert diagnose(read_subject(capture, capture.layers[0], 3, None, None), None).word == "healthy"
    if role == "v":
        with pytest.raises(NotFiniteError, match=r"attn\.v': layer 0, head 4 has \d+ of \d+ values that are NaN"):
            read_subject(capture, capture.layers[0], 4, None, None)
    else:
        found = diagnose(read_subject(capture, capture.layers[0], 4, None, None), None)
        assert (found.cause, found.evidence) == ("not-finite", role)
        assert f"{role}: 1 of " in found.says


def test_rows_that_see_no_key_may_hold_anything(tmp_path: Path) -> None:
    lse, mask = LSE.copy(), np.ones((BATCH, 1, QUERIES, KEYS), np.bool_)
    lse[1, :, 2:4], mask[1, :, 2:4] = np.nan, False
    beside = {"layers.0.attn.lse": lse, "layers.0.attn.mask": mask}
    capture = opened(tmp_path, HEADS_FIRST | beside, **TOLD, schema="attn-tui/qk-2")
    assert diagnose(read_subject(capture, capture.layers[0], 0, None, None), None).word == "healthy"


def dump(folder: Path, layers: int = 3, cache: int = 32, later: float = 0.0, **told: Any) -> Any:
    """What llama.cpp's eval callback hands out of a prompt: weights are as wide as the cache, and no metadata."""
    tensors: dict[str, Array] = {}
    for layer in range(layers):
        q, k, v = (rng.normal(size=(KEYS, heads, D_K)).astype(np.float32) for heads in (HEADS, KV_HEADS, KV_HEADS))
        z = SCALE * np.einsum("qhd,khd->hqk", q, k.repeat(HEADS // KV_HEADS, axis=1)).astype(np.float64)
        e = np.exp(np.where(np.tri(KEYS, dtype=np.bool_), z, -np.inf))
        weights = np.full((1, HEADS, KEYS, cache), later, np.float32)
        weights[0, :, :, :KEYS] = e / e.sum(axis=-1, keepdims=True)
        names = ("Qcur", "Kcur", "Vcur", "kq_soft_max")
        tensors |= {f"{name}-{layer}": each for name, each in zip(names, (q, k, v, weights), strict=True)}
    return opened(folder, tensors, **told)


@for_each("cache", [KEYS, 32])
def test_a_dump_of_llama_cpp_is_judged_by_its_weights(cache: int, tmp_path: Path) -> None:
    capture = dump(tmp_path, cache=cache)
    assert [layer.causal for layer in capture.layers] == ["bottom_right"] * 3
    assert [note for note in capture.notes if "taken as causal" in note]
    assert not [note for note in capture.notes if "assuming it is not" in note]
    for layer in capture.layers:
        for head in range(HEADS):
            assert diagnose(read_subject(capture, layer, head, None, None)).word == "healthy"


def test_what_the_file_says_of_causality_precedes_its_weights(tmp_path: Path) -> None:
    capture = dump(tmp_path, layers=1, causal="false")
    assert capture.layers[0].causal is None
    assert diagnose(read_subject(capture, capture.layers[0], 0, None, None)).cause == "causal-extra"
    assert opened(tmp_path, {"q": Q, "k": K, "weights": WEIGHTS.astype(np.float32)}).layers[0].causal is None
    assert dump(tmp_path, layers=1, attention="cross").layers[0].causal is None
    assert dump(tmp_path, layers=1, rows=[*range(KEYS)]).layers[0].causal is None


def test_weights_on_keys_that_are_not_there_are_refused(tmp_path: Path) -> None:
    capture = dump(tmp_path, layers=1, later=0.01)
    assert capture.layers[0].causal is None
    with pytest.raises(CaptureError, match="has weights on more keys than the 9 that are there; save all keys"):
        read_evidence(capture, capture.layers[0], 0, "weights")
