"""Captures with several things at once that change logits, and those of few digits, against attention in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from attention_in_full import Expected, assert_measured
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import file_rule, measure_head
from capture_files import Array, opened, refused

PREFIX = "layers.0.attn."
BATCH, KEY_HEADS, GROUP, D_K = 2, 2, 2, 5
HEADS = KEY_HEADS * GROUP
NO = -np.inf


def captured(folder: Path, tensors: dict[str, Array], **metadata: Any) -> CaptureFile:
    return opened(
        folder, {PREFIX + name: array for name, array in tensors.items()}, schema="attn-tui/qk-2", **metadata
    )


def measured(capture: CaptureFile, head: int = 0) -> dict[str, float | None]:
    [column] = measure_head(capture, capture.layers[0], head, [file_rule(capture.layers[0])]).columns
    return {name: each.value for name, each in column.measured.items()}


@pytest.mark.parametrize("seed", range(120))
def test_what_changes_logits_is_understood_together(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def chosen(share: float = 0.5) -> bool:
        return bool(rng.random() < share)

    queries, keys = (int(count) for count in rng.integers(1, 10, 2))
    queries = keys if chosen(0.7) else queries
    q, k = (rng.normal(0.2, 1.5, (BATCH, heads, n, D_K)) for heads, n in ((HEADS, queries), (KEY_HEADS, keys)))
    tensors: dict[str, Array] = {"q": q, "k": k}
    causal = str(rng.choice(["false", "top-left", "bottom-right"]))
    metadata: dict[str, Any] = {"causal": causal, "attention": "cross"}
    positions = np.arange(queries) + (keys - queries if causal == "bottom-right" else 0)
    if queries < keys and chosen():
        positions = np.sort(rng.permutation(keys)[:queries])
        tensors["rows"] = positions
    row, key = positions[:, np.newaxis], np.arange(keys)
    visible = np.broadcast_to((key <= row) | (causal == "false"), (BATCH, HEADS, queries, keys))
    if chosen(0.4):
        before, after = (int(side) for side in rng.integers(0, 4, 2))
        metadata["window"] = [before, after]
        metadata |= {} if causal != "false" else {"alignment": "top-left"}
        visible = visible & (row - key <= before) & (key - row <= after)
    if chosen(0.3):
        shown = rng.random((BATCH, 1, queries, keys)) < 0.8
        tensors["mask"], metadata["mask_true"] = ~shown, "hidden"
        visible = visible & shown
    logits = q @ np.repeat(k, GROUP, axis=1).mT
    if chosen():
        scales = rng.uniform(0.1, 1, (BATCH, HEADS, queries, 1))
        tensors["scale"] = scales
        logits = logits * scales
    else:
        metadata |= {"scale": list(rng.uniform(0.1, 1, HEADS)), "prescaled": [0.5, 4]}
        logits = logits * np.reshape(metadata["scale"], (HEADS, 1, 1))
    if chosen(0.4):
        metadata["softcap"] = 1.5
        logits = 1.5 * np.tanh(logits / 1.5)
    if chosen(0.4):
        bias = rng.normal(0, 2, (1, HEADS, queries, keys))
        bias = np.where(rng.random(bias.shape) < 0.1, NO, bias)
        tensors["bias"] = bias
        logits, visible = logits + np.where(bias > NO, bias, 0), visible & (bias > NO)
    if chosen(0.3):
        slopes = rng.uniform(0, 1, HEADS)
        metadata["alibi_slopes"] = list(slopes)
        metadata |= {} if causal != "false" else {"alignment": "top-left"}
        logits = logits - slopes[:, np.newaxis, np.newaxis] * np.abs(row - key)
    sinks = rng.normal(0, 2, HEADS) if chosen(0.4) else None
    metadata |= {} if sinks is None else {"sinks": list(sinks)}
    capture = captured(tmp_path, tensors, **metadata)
    for head in range(HEADS):
        if visible[:, head].any() and np.count_nonzero(visible[:, head], axis=-1).max() > 1:
            expected = np.where(visible[:, head], logits[:, head], NO)
            assert_measured(capture, head, Expected(expected, None if sinks is None else float(sinks[head])))


LONG, WIDE = np.arange(8)[:, np.newaxis], np.arange(2)  # positions of queries and keys


@pytest.mark.parametrize(
    ("told", "visible"),
    [
        ({"window": [3, -1], "alignment": "top-left"}, WIDE >= LONG - 3),
        ({"window": [3, 2], "alignment": "bottom-right"}, (WIDE >= LONG - 9) & (WIDE <= LONG - 4)),
        ({"window": [99_999_999_999, 0], "alignment": "top-left"}, WIDE <= LONG),
    ],
)  # fmt: skip
def test_a_window_may_be_longer_than_the_keys(tmp_path: Path, told: dict[str, Any], visible: Array) -> None:
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(1, 1, 8, 3)), rng.normal(size=(1, 1, 2, 3))
    capture = captured(tmp_path, {"q": q, "k": k}, causal="false", scale=1, attention="cross", **told)
    logits = np.where(visible, (q @ k.mT)[:, 0], NO)
    assert_measured(capture, 0, Expected(logits))


@pytest.mark.parametrize("common", [0, 5])
def test_padding_far_from_the_other_keys_costs_no_digits(tmp_path: Path, common: float) -> None:
    """Of 16 bits, scores are multiplied in float32."""
    rng = np.random.default_rng(2)
    q, k = rng.normal(0, 1, (2, 1, 64, 32)), rng.normal(common, 0.1, (2, 1, 64, 32))
    k[:, :, 8:] += 4 * np.sign(rng.normal(size=32))
    shown = np.broadcast_to(np.arange(64) < 8, (2, 64))
    found = [
        measured(
            captured(
                tmp_path,
                {"q": q.astype(np.float16).astype(dtype), "k": k.astype(np.float16).astype(dtype), "mask": shown},
                causal="false",
                scale=0.1,
            )
        )
        for dtype in (np.float16, np.float64)
    ]
    for name in ("logit_std", "logit_excess_kurtosis", "row_mean_share", "saturation"):
        assert found[0][name] == pytest.approx(found[1][name], rel=2e-6), name


def test_a_row_of_one_key_adds_nothing_to_the_kurtosis_in_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    q, k = (rng.normal(5, 1, (1, 1, 3, 4)).astype(np.float16) for _ in range(2))
    one = captured(tmp_path, {"q": q[:, :, :2], "k": k[:, :, :2]}, causal="true", window=1, scale=1)
    assert measured(one)["logit_excess_kurtosis"] == pytest.approx(-2, abs=1e-6)  # two numbers


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_head_without_visible_keys_has_no_statistics(tmp_path: Path, dtype: Any) -> None:
    rng = np.random.default_rng(4)
    q, k = (rng.normal(size=(1, 2, 3, 4)).astype(dtype) for _ in range(2))
    shown = np.broadcast_to(np.array([True, False])[:, np.newaxis, np.newaxis], (2, 3, 3))[np.newaxis]
    capture = captured(tmp_path, {"q": q, "k": k, "mask": shown}, causal="false", scale=1, mask_true="visible")
    assert measured(capture, 0)["entropy"] is not None
    assert {*measured(capture, 1).values()} == {None}


@pytest.mark.parametrize("rows", [[2, 0, 1], [0, 1, 1]])
def test_a_bias_of_reordered_queries_has_rows_of_two_possible_meanings(tmp_path: Path, rows: list[int]) -> None:
    rng = np.random.default_rng(5)
    q, k = (rng.normal(size=(1, 1, 3, 4)) for _ in range(2))
    tensors = {"q": q, "k": k, "bias": rng.normal(size=(3, 3))}
    captured(tmp_path, tensors, causal="false", scale=1, rows=rows)
    assert "may have its rows in the order of the queries or of the keys" in (
        refused(tmp_path / "opened.safetensors") or ""
    )
    captured(tmp_path, tensors, causal="false", scale=1, rows=[0, 1, 2])
    assert refused(tmp_path / "opened.safetensors") is None


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_row_of_two_keys_with_nearly_equal_logits_keeps_its_digits(tmp_path: Path, dtype: Any) -> None:
    rng = np.random.default_rng(6)
    q, k = (rng.normal(3, 1, (1, 1, 6, 8)).astype(dtype) for _ in range(2))
    k[:, :, 1] = k[:, :, 0]
    k[:, :, 1, 0] += dtype(0.03)
    capture = captured(tmp_path, {"q": q, "k": k}, causal="true", scale=0.3)
    logits = 0.3 * q[0, 0].astype(float) @ k[0, 0].astype(float).T
    ratios = [logits[i, : i + 1].std() / np.sqrt(2 * np.log(i + 1)) for i in range(1, 6)]
    assert 0 < ratios[0] < 0.02
    assert measured(capture)["saturation"] == pytest.approx(np.mean(ratios), rel=1e-9)
