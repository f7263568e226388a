"""The core against float64 references made with automatic differentiation; see golden.npz's own manifest."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.additive import AdditiveWeights
from attn_tui.core.attention.gradients import Gradients, gradients
from attn_tui.core.attention.softmax import (
    RowStatistics,
    logits_below,
    row_statistics,
    row_sums,
    shift_rows,
)
from attn_tui.core.attention.variant import Variant, attend
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.histogram import Axis
from attn_tui.core.statistics.measurement import Column

GOLDEN = np.load(Path(__file__).parents[1] / "data" / "golden.npz")
CASES: list[dict[str, Any]] = json.loads(str(GOLDEN["manifest"]))
EXACT, CLOSE = 1e-12, 1e-4  # relative, absolute below 1

# What the cases show, each by the beginning of its name.
KINDS = {
    "dot_": 25, "causal_": 3, "padding": 1, "dead_row": 1, "gqa": 1, "mqa": 1, "softcap_": 6, "additive_": 6,
    "cosine_": 6, "qknorm_": 1, "alibi": 1, "sinks": 1, "ssmax": 1, "huge_logits": 1, "nonzero_mean": 1,
    "identical_keys": 1, "one_key": 1, "zero_q": 1, "minilm_": 8, "smollm2_": 4, "ppocr_": 4,
}  # fmt: skip
# Where logits are the case's scale times q·k, which is all that pooled statistics are made for so far.
PLAIN = [c for c in CASES if not c["case"].startswith(("softcap", "additive", "cosine", "qknorm", "alibi", "sinks"))]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
every_plain_case = pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["case"])
either_precision = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", EXACT), ("float32", CLOSE)])


def field(case: dict[str, Any], name: str) -> Any:
    """One array of a case, None if it has none; a string stands for an array shared with another case."""
    if f"{case['case']}.{name}" not in GOLDEN:
        return None
    value = GOLDEN[f"{case['case']}.{name}"]
    return GOLDEN[str(value)[1:]] if value.dtype.kind == "U" else value


def variant_of(case: dict[str, Any]) -> Variant:
    """What the case does between q·k and the weights."""
    visible, sinks = field(case, "ok"), field(case, "sinks")
    additive = [field(case, name) for name in ("Wq", "Wk", "b", "w")]
    kind = case["case"].partition("_")[0]
    return Variant(
        mechanism={"additive": "additive", "cosine": "cosine"}.get(kind, "dot_product"),
        weights=AdditiveWeights(*additive) if kind == "additive" else None,
        normalise="rms" if kind == "qknorm" else "none",
        epsilon=1e-6,
        gain_q=field(case, "gq"),
        gain_k=field(case, "gk"),
        scale=case["scale"],
        softcap=case["softcap"],
        bias=field(case, "bias"),
        hidden=None if visible is None else ~visible,
        sink=None if sinks is None else sinks[:, np.newaxis],
    )


def gradients_of(case: dict[str, Any]) -> Gradients:
    return gradients(*(field(case, side) for side in "qkvg"), variant_of(case))


def softmax_rows(case: dict[str, Any], dtype: str) -> tuple[RowStatistics, Any]:
    """Statistics of every row of a case and its largest visible logit."""
    variant = variant_of(case)
    q, k, v = (field(case, side) for side in "qkv")
    path = attend(q, k, v, variant)
    plain = variant.softcap is None and variant.bias is None
    before, multiplier = (path.scores, case["scale"]) if plain else (path.logits, 1.0)
    hidden = np.broadcast_to(False if variant.hidden is None else variant.hidden, before.shape)
    shifted = shift_rows(*(each.reshape(-1, before.shape[-1]) for each in (before.astype(dtype), hidden)))
    largest, sink = multiplier * shifted.largest, None
    if variant.sink is not None:
        sink = np.broadcast_to(variant.sink, before.shape[:-1]).ravel() - largest
    sums = row_sums(logits_below(shifted, multiplier), shifted)
    return row_statistics(sums, shifted.visible, sink), largest


def pooled(case: dict[str, Any], dtype: str) -> tuple[Column, Column]:
    """The columns of a case, unscaled and with its own scale, the texts of its batch taken as draws."""
    variant = variant_of(case)
    path = attend(*(field(case, side).astype(dtype) for side in "qkv"), variant)
    shape = (len(path.scores), -1, path.scores.shape[-1])
    scores = path.scores.reshape(shape)
    hidden = np.broadcast_to(False if variant.hidden is None else variant.hidden, path.scores.shape).reshape(shape)
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


def assert_exact(case: dict[str, Any], actual: Any, expected: Any, what: str) -> None:
    """Of one shape and within 1e-12 of the largest entry, or of 0.01 where all are smaller.

    The references are differences of numbers near 1, times a multiplier up to 32, and know nothing below 1e-15. And
    scores may be summed in any order, which moves a logit by some units in its last place and a weight by as much of
    itself: with logits above a thousand that is more than 1e-12.
    """
    assert actual.shape == expected.shape, what
    tolerance = max(EXACT, 8 * np.spacing(np.abs(field(case, "z")).max()))
    assert np.abs(actual - expected).max() <= tolerance * max(np.abs(expected).max(), 0.01), what


def references(case: dict[str, Any]) -> dict[str, Any]:
    """The references of every row, and how many keys each sees; a row that sees none has no logits."""
    names = ("entropy", "p_max", "p2", "jac_fro", "jac_trace", "z_max", "n_allowed")
    return {name: field(case, name).ravel() for name in names}


@every_case
def test_the_path_from_queries_to_output_agrees_with_references(case: dict[str, Any]) -> None:
    path = attend(*(field(case, side) for side in "qkv"), variant_of(case))
    for name, actual in {"raw": path.scores, "z": path.logits, "probs": path.weights, "out": path.output}.items():
        assert_exact(case, actual, field(case, name), name)


@every_case
def test_gradients_agree_with_references(case: dict[str, Any]) -> None:
    found = gradients_of(case)
    for name in ("q", "k", "v"):
        assert_exact(case, getattr(found, name), field(case, f"d{name}"), name)
    assert_exact(case, found.scores, field(case, "d_raw"), "scores")
    assert_exact(case, found.logits, field(case, "d_z"), "logits")


@pytest.mark.parametrize("case", [c for c in CASES if c["case"].startswith("additive")], ids=lambda c: c["case"])
def test_gradients_of_additive_weights_agree_with_references(case: dict[str, Any]) -> None:
    found = gradients_of(case).weights
    assert isinstance(found, AdditiveWeights)
    for name, expected in {"w_q": "d_Wq", "w_k": "d_Wk", "bias": "d_b", "v": "d_w"}.items():
        assert_exact(case, getattr(found, name), field(case, expected), name)


def test_gradients_of_normalisation_gains_agree_with_references() -> None:
    (case,) = (c for c in CASES if c["case"] == "qknorm_rms")
    found = gradients_of(case)
    assert_exact(case, found.gain_q, field(case, "d_gq"), "gain of q")
    assert_exact(case, found.gain_k, field(case, "d_gk"), "gain of k")


@pytest.mark.parametrize("case", [c for c in CASES if f"{c['case']}.jac_q_last" in GOLDEN], ids=lambda c: c["case"])
def test_what_a_query_does_to_its_weights_agrees_with_references(case: dict[str, Any]) -> None:
    """With the identity for values, the gradient of one output is a row of ∂p/∂z and of ∂p/∂q."""
    q, k = field(case, "q"), field(case, "k")
    n = k.shape[2]
    values = np.broadcast_to(np.eye(n), (*k.shape[:2], n, n))
    of_logits, of_query = [], []
    for key in range(n):
        g = np.zeros((*q.shape[:3], n))
        g[0, 0, -1, key] = 1
        found = gradients(q, k, values, g, variant_of(case))
        of_logits.append(found.logits[0, 0, -1])
        of_query.append(found.q[0, 0, -1])
    assert_exact(case, np.array(of_logits), field(case, "jac_z_last"), "∂p/∂z")
    assert_exact(case, np.array(of_query), field(case, "jac_q_last"), "∂p/∂q")


@every_case
@either_precision
def test_rows_agree_with_references(case: dict[str, Any], dtype: str, tolerance: float) -> None:
    rows, largest = softmax_rows(case, dtype)
    expected = references(case)
    sees = expected["n_allowed"] > 0
    assert_close(rows.entropy, expected["entropy"], tolerance)
    assert_close(rows.max_weight, expected["p_max"], tolerance)
    assert_close(rows.sum_squared_weights, expected["p2"], tolerance)
    assert_close(np.sqrt(rows.jacobian_norm_squared), expected["jac_fro"], tolerance)
    assert_close(largest[sees], expected["z_max"][sees], tolerance)
    trace = expected["jac_trace"]
    if field(case, "sinks") is not None:  # the reference is 1 − Σp²; the trace is Σp − Σp²
        trace = trace - 1 + field(case, "probs").sum(axis=-1).ravel()
    assert_close(rows.complement[sees], trace[sees], tolerance)


@every_plain_case
@either_precision
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


def test_no_case_is_missed() -> None:
    """Every case is of a kind that is known, so that none can be added without being understood."""
    found = {kind: sum(case["case"].startswith(kind) for case in CASES) for kind in KINDS}
    assert found == KINDS
    assert sum(found.values()) == len(CASES) == 75
    assert len(PLAIN) == 54
