"""Heads of a capture under rules that need more than the width of a head, and a first look at a few rows."""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.check import measure
from attn_tui.core.diagnosis.heads.rows import is_large, rough_statistics, spread
from attn_tui.core.errors import ParameterError
from attn_tui.core.scales import SCALE_RULES, Normalise, RuleSetting, multiplier
from capture_files import Array, opened
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from memory import peak_memory

special = import_module("scipy.special")  # without type stubs
TOKENS, D_K = 9, 6


def capture(folder: Path, **layer: object) -> tuple[CaptureFile, dict[str, Array]]:
    rng = np.random.default_rng(8)
    tensors = {f"layers.3.attn.{side}": rng.normal(0.4, 2, (2, 2, TOKENS, D_K)).astype("f4") for side in "qk"}
    return opened(folder, tensors, schema="attn-tui/qk-1", layers=[{"name": "layers.3.attn", **layer}]), tensors


@for_each("softcap", [None, 5.0])
@for_each("name", ["rms_sqrt_d_k", "layer_norm_sqrt_d_k", "cosine_10"])
def test_a_rule_normalises_the_queries_and_keys_of_a_file(tmp_path: Path, name: str, softcap: float | None) -> None:
    found, tensors = capture(tmp_path, **({"softcap": softcap} if softcap else {}))
    layer = found.layers[0]
    rules = [named_rule(name, layer), named_rule("file", layer), named_rule("none", layer)]
    columns = measure_head(found, layer, 1, rules).columns
    assert [column.rule for column in columns] == [name, "sqrt_d_k", "none"]
    q, k = (tensors[f"layers.3.attn.{side}"][:, 1].astype("f8") for side in "qk")
    ways: list[Normalise] = [SCALE_RULES[name].normalise, "none", "none"]
    for column, how, c in zip(columns, ways, (rule.multiplier for rule in rules), strict=True):
        logits = c * normalised(q, how) @ normalised(k, how).mT
        if softcap:
            logits = softcap * np.tanh(logits / softcap)
        assert column.multiplier == c
        assert column.measured["logit_variance"].value == pytest.approx(logits.var(), rel=1e-9)
        entropy = special.entr(special.softmax(logits, axis=-1)).sum(axis=-1).mean()
        assert column.measured["entropy"].value == pytest.approx(entropy, rel=1e-9)


def test_rules_use_the_layer_and_the_length_of_a_file(tmp_path: Path) -> None:
    layer = capture(tmp_path)[0].layers[0]
    assert layer.index == 3
    for name, c in {
        "inverse_layer": 1 / (4 * D_K**0.5),
        "llama4_position": 1 / D_K**0.5,  # nine tokens lie in the first block
        "ssmax": multiplier("ssmax", RuleSetting(d_k=D_K, n_keys=TOKENS)),
    }.items():
        assert named_rule(name, layer).multiplier == pytest.approx(c)


def test_a_rule_without_a_multiplier_for_a_file_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    q = rng.normal(size=(1, 1, 1, 4))
    np.savez(tmp_path / "one.npz", q=q, k=q)
    layer = open_capture(tmp_path / "one.npz").layers[0]
    with pytest.raises(ParameterError, match="keys = 1"):
        named_rule("ssmax", layer)


@for_each(("kind", "rows", "size"), [(np.float16, 300, 1), (np.float32, 300, 1), (np.float16, 600, 12)])
def test_scores_are_measured_in_float32_to_a_millionth(kind: Any, rows: int, size: float, tmp_path: Path) -> None:
    """The same numbers in float64 are measured in float64. Keys share a large vector, which softmax ignores.

    Of many rows, logits may be larger: up to 150.
    """
    rng = np.random.default_rng(0)
    q: Array = (size * rng.normal(size=(2, 2, rows, 32))).astype(kind)
    k: Array = (rng.normal(size=(2, 1, rows, 32)) + 3 * rng.normal(size=32)).astype(kind)
    found: list[dict[str, float | None]] = []
    for dtype in (kind, np.float64):
        path = tmp_path / f"{np.dtype(dtype)}.npz"
        stored: dict[str, Any] = {"layers.0.attn.q": q.astype(dtype), "layers.0.attn.k": k.astype(dtype)}
        np.savez(path, **stored, causal="true")
        capture = open_capture(path)
        layer = capture.layers[0]
        [column] = measure_head(capture, layer, 1, [file_rule(layer)]).columns
        found.append({name: each.value for name, each in column.measured.items()})
    for name, value in found[1].items():
        assert found[0][name] == (None if value is None else pytest.approx(value, rel=1e-6, abs=1e-9)), name


def test_a_long_causal_text_needs_little_memory(tmp_path: Path) -> None:
    """32,768 keys: all queries would take longer, and no more memory."""
    rng = np.random.default_rng(0)
    q, k = (rng.normal(size=(1, 1, tokens, 4)).astype(np.float16) for tokens in (1024, 32_768))
    tensors: dict[str, Any] = {
        "layers.0.attn.q": q,
        "layers.0.attn.k": k,
        "layers.0.attn.rows": np.arange(31_744, 32_768),
    }
    np.savez(tmp_path / "long.npz", **tensors, causal="true")
    capture = open_capture(tmp_path / "long.npz")
    layer = capture.layers[0]
    peak = peak_memory(lambda: measure_head(capture, layer, 0, [file_rule(layer)]), warm_up=False)
    assert peak < 150 << 20


def test_a_check_of_a_head_may_be_stopped_in_between(tmp_path: Path) -> None:
    side = np.random.default_rng(0).normal(size=(1, 1, 1500, 4))
    found = opened(tmp_path, {"layers.0.attn.q": side, "layers.0.attn.k": side}, schema="attn-tui/qk-1")
    assert len([*measure(found, found.layers[0], 0, None, None)]) > 3


def test_of_some_rows_they_are_near() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[2]
    for head in range(12):
        exact = measure_head(capture, layer, head, [file_rule(layer)]).columns[0].measured["entropy"].value
        found = rough_statistics(capture, layer, head, rows=24)["entropy"].value
        assert found == pytest.approx(exact, abs=0.5)
        assert found != exact


def test_only_large_heads_need_a_first_look(tmp_path: Path) -> None:
    assert not is_large(open_capture(sample_path()).layers[0])
    side = np.ones((3, 2, 200, 8), np.float32)
    assert is_large(opened(tmp_path, {"q": side, "k": side}).layers[0])


@given(count=st.integers(1, 500), most=st.integers(1, 60))
def test_rows_are_spread_evenly_up_to_the_last(count: int, most: int) -> None:
    rows = range(count)[spread(count, most)]
    assert rows[-1] == count - 1
    assert len(rows) <= most
    assert rows.step == 1 or len(rows) > most / 2
