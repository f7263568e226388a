"""Heads of a capture under rules that ask for more than a multiplier."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.normalise import normalised
from attn_tui.core.attention.scales import SCALE_RULES, Normalise, Setting, multiplier
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import Capture, open_capture
from attn_tui.core.parameters import ParameterError
from safetensors.numpy import save_file

BATCH, HEADS, TOKENS, D_K = 2, 2, 9, 6


def capture(folder: Path, **layer: object) -> tuple[Capture, dict[str, Any]]:
    rng = np.random.default_rng(8)
    shape = (BATCH, HEADS, TOKENS, D_K)
    tensors = {f"layers.3.attn.{side}": rng.normal(0.4, 2, shape).astype("f4") for side in "qk"}
    said = json.dumps([{"name": "layers.3.attn", **layer}])
    save_file(tensors, folder / "c.safetensors", {"schema": "attn-tui/qk-1", "layers": said})
    return open_capture(folder / "c.safetensors"), tensors


def entropies(logits: np.ndarray) -> float:
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return float(-(weights * np.log(weights)).sum(axis=-1).mean())


@pytest.mark.parametrize("softcap", [None, 5.0])
@pytest.mark.parametrize("name", ["rms_sqrt_d_k", "layer_norm_sqrt_d_k", "cosine_10"])
def test_a_rule_normalises_the_queries_and_keys_of_a_file(tmp_path: Path, name: str, softcap: float | None) -> None:
    opened, tensors = capture(tmp_path, **({"softcap": softcap} if softcap else {}))
    layer = opened.layers[0]
    rules = [named_rule(name, layer), named_rule("file", layer), named_rule("none", layer)]
    columns = measure_head(opened, layer, 1, rules).columns
    assert [column.rule for column in columns] == [name, "sqrt_d_k", "none"]
    q, k = (tensors[f"layers.3.attn.{side}"][:, 1].astype("f8") for side in "qk")
    ways: list[Normalise] = [SCALE_RULES[name].normalise, "none", "none"]
    for column, how, (_, c) in zip(columns, ways, rules, strict=True):
        logits = c * normalised(q, how) @ normalised(k, how).mT
        if softcap:
            logits = softcap * np.tanh(logits / softcap)
        assert column.multiplier == c
        assert column.measured["logit_variance"].value == pytest.approx(logits.var(), rel=1e-9)
        assert column.measured["entropy"].value == pytest.approx(entropies(logits), rel=1e-9)


def test_rules_know_the_layer_and_the_length_of_a_file(tmp_path: Path) -> None:
    layer = capture(tmp_path)[0].layers[0]
    assert layer.index == 3
    for name, c in {
        "inverse_layer": 1 / (4 * D_K**0.5),
        "llama4_position": 1 / D_K**0.5,  # nine tokens lie in the first block
        "ssmax": multiplier("ssmax", Setting(d_k=D_K, n_keys=TOKENS)),
    }.items():
        assert named_rule(name, layer) == (name, pytest.approx(c))


def test_a_rule_without_a_multiplier_for_a_file_is_refused(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "one.npz", **{side: rng.normal(size=(1, 1, 1, 4)) for side in "qk"})
    layer = open_capture(tmp_path / "one.npz").layers[0]
    with pytest.raises(ParameterError, match=r"is 0 at d_k = 4, keys = 1"):
        named_rule("ssmax", layer)
