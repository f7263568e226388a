"""A first look at a large file: statistics of a few rows of a head."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.diagnosis.heads.rough import is_large, rough_statistics
from capture_files import Array, opened
from cases import for_each

EXTRAS: list[dict[str, Any]] = [
    {},
    {"causal": True},
    {"softcap": 2.0},
    {"sinks": True},
    {"bias": True, "causal": True},
    {"window": [3, 2]},
    {"mask": True},
    {"query_mask": True, "attention": "cross"},
]


def capture_of(folder: Path, extra: dict[str, Any], tokens: int = 30) -> CaptureFile:
    rng = np.random.default_rng(0)
    tensors: dict[str, Array] = {
        "q": rng.normal(size=(3, 2, tokens, 8)),
        "k": rng.normal(size=(3, 1, tokens, 8)) + 0.3,
    }
    if "sinks" in extra:
        tensors["sinks"] = np.array([1.0, 2.0])
    if "bias" in extra:
        tensors["bias"] = rng.normal(size=(1, 2, tokens, tokens))
    if "mask" in extra:  # the first tokens of two texts are padding
        tensors["mask"] = np.arange(tokens) >= np.array([[0], [3], [12]])
    if "query_mask" in extra:
        tensors["query_mask"] = rng.random((3, tokens)) < 0.7
    told = {name: value for name, value in extra.items() if name not in tensors}
    layers = [{"name": "0", "index": 0, "heads": 2, "kv_heads": 1, "d_k": 8, "scale": 0.9, **told}]
    tensors = {f"layers.0.attn.{name}": array for name, array in tensors.items()}
    return opened(folder, tensors, schema="attn-tui/qk-2", layers=layers)


@for_each("extra", EXTRAS)
def test_of_all_rows_they_are_those_of_the_measurement(extra: dict[str, Any], tmp_path: Path) -> None:
    capture = capture_of(tmp_path, extra)
    layer = capture.layers[0]
    for head in range(2):
        exact = measure_head(capture, layer, head, [file_rule(layer)]).columns[0].measured
        found = rough_statistics(capture, layer, head, rows=30)
        assert found.keys() == exact.keys()
        for name, estimate in exact.items():
            if estimate.value is None:
                assert found[name].value is None, name
            else:
                assert found[name].value == pytest.approx(estimate.value, rel=1e-9, abs=1e-12), name


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
    assert is_large(capture_of(tmp_path, {}, tokens=200).layers[0])
