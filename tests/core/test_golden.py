"""The core against float64 references made with automatic differentiation; see golden.npz's own manifest."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.softmax import RowStatistics, logits_below, row_statistics, row_sums, shift_rows
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.histogram import Axis
from attn_tui.core.statistics.measurement import Column

GOLDEN = np.load(Path(__file__).parents[1] / "data" / "golden.npz")
NOT_YET = ("softcap", "additive", "cosine", "qknorm", "alibi", "sinks")  # what the core does not compute
CASES = [case for case in json.loads(str(GOLDEN["manifest"])) if not case["case"].startswith(NOT_YET)]
EXACT, CLOSE = 1e-12, 1e-4  # relative, absolute below 1

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])


def field(case: dict[str, Any], name: str) -> Any:
    """One array of a case; a string stands for an array shared with another case."""
    value = GOLDEN[f"{case['case']}.{name}"]
    return GOLDEN[str(value)[1:]] if value.dtype.kind == "U" else value


def scores_and_hidden(case: dict[str, Any], dtype: str) -> tuple[Any, Any]:
    """Raw scores and hidden keys, (texts, heads · queries, keys)."""
    q, k = (field(case, side).astype(dtype) for side in "qk")
    scores = q @ np.repeat(k, q.shape[1] // k.shape[1], axis=1).mT
    visible = field(case, "ok") if f"{case['case']}.ok" in GOLDEN else np.ones(scores.shape, bool)
    shape = (len(q), -1, k.shape[2])
    return scores.reshape(shape), ~np.broadcast_to(visible, scores.shape).reshape(shape)


def softmax_rows(case: dict[str, Any], dtype: str) -> tuple[RowStatistics, Any]:
    """Statistics of every row of a case and its largest visible logit."""
    scores, hidden = scores_and_hidden(case, dtype)
    shifted = shift_rows(scores.reshape(-1, scores.shape[-1]), hidden.reshape(-1, scores.shape[-1]))
    sums = row_sums(logits_below(shifted, case["scale"]), shifted)
    return row_statistics(sums, shifted.visible), case["scale"] * shifted.largest


def pooled(case: dict[str, Any], dtype: str) -> tuple[Column, Column]:
    """The columns of a case, unscaled and with its own scale, the texts of its batch taken as draws."""
    scores, hidden = scores_and_hidden(case, dtype)
    rules = [("none", 1.0), ("file", case["scale"])]
    kept = tally.Tally(tally.Shape(*scores.shape), rules, 0.0, math.nan, Axis(-100.0, 100.0, 64))
    for draw in range(len(scores)):
        rows = slice(0, scores.shape[1])
        tally.add(kept, slice(draw, draw + 1), rows, scores[draw : draw + 1].copy(), hidden[draw : draw + 1])
    unscaled, scaled = tally.columns(kept, len(scores), unbiased=False)
    return unscaled, scaled


def assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    """Within a tolerance that is relative, and absolute below 1."""
    expected = np.asarray(expected)
    assert np.all(np.abs(actual - expected) <= tolerance * np.maximum(1, np.abs(expected))), (actual, expected)


def references(case: dict[str, Any]) -> dict[str, Any]:
    """The references of every row, and how many keys each sees; a row that sees none has no logits."""
    names = ("entropy", "p_max", "p2", "jac_fro", "jac_trace", "z_max", "n_allowed")
    return {name: field(case, name).ravel() for name in names}


@every_case
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", EXACT), ("float32", CLOSE)])
def test_rows_agree_with_references(case: dict[str, Any], dtype: str, tolerance: float) -> None:
    rows, largest = softmax_rows(case, dtype)
    expected = references(case)
    sees = expected["n_allowed"] > 0
    assert_close(rows.entropy, expected["entropy"], tolerance)
    assert_close(rows.max_weight, expected["p_max"], tolerance)
    assert_close(rows.sum_squared_weights, expected["p2"], tolerance)
    assert_close(np.sqrt(rows.jacobian_norm_squared), expected["jac_fro"], tolerance)
    assert_close(rows.complement[sees], expected["jac_trace"][sees], tolerance)
    assert_close(largest[sees], expected["z_max"][sees], tolerance)


@every_case
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", EXACT), ("float32", CLOSE)])
def test_pooled_statistics_agree_with_references(case: dict[str, Any], dtype: str, tolerance: float) -> None:
    unscaled, scaled = pooled(case, dtype)
    rows = references(case)
    sees = rows["n_allowed"] > 0
    expected = {
        "logit_mean": case["scale"] * field(case, "raw_mean"),
        "logit_variance": case["scale"] ** 2 * field(case, "raw_var"),
        "logit_max": rows["z_max"][sees].max(),
        "entropy": rows["entropy"][sees].mean(),
        "effective_keys": np.exp(rows["entropy"][sees]).mean(),
        "max_weight": rows["p_max"][sees].mean(),
        "sum_squared_weights": rows["p2"][sees].mean(),
        "jacobian_norm": rows["jac_fro"][sees].mean(),
        "jacobian_norm_squared": (rows["jac_fro"][sees] ** 2).mean(),
        "weight_times_complement": (rows["jac_trace"][sees] / rows["n_allowed"][sees]).mean(),
    }
    for name, value in expected.items():
        assert_close(scaled.measured[name].value, value, tolerance)
    assert_close(unscaled.measured["logit_mean"].value, field(case, "raw_mean"), tolerance)
    assert_close(unscaled.measured["logit_variance"].value, field(case, "raw_var"), tolerance)


def test_every_case_of_a_feature_that_exists_is_covered() -> None:
    assert len(CASES) == 54
