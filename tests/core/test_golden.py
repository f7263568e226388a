"""The core agrees with float64 references made by automatic differentiation; golden.npz has their manifest."""

import math
from typing import Any

import numpy as np
import pytest
from attn_tui.core.attention.additive import AdditiveWeights
from attn_tui.core.attention.gradients import Gradients, gradients
from attn_tui.core.attention.softmax import RowStatistics, logits_below, row_statistics, row_sums, shift_rows
from attn_tui.core.attention.variant import Variant, attend
from attn_tui.core.statistics import reading, tally
from attn_tui.core.statistics.histogram import Axis
from attn_tui.core.statistics.measurement import Column
from golden import CASES, GOLDEN, cases, reference

EXACT, CLOSE = 1e-12, 1e-4  # relative, absolute below 1

# What the cases show, by the beginning of their names.
KINDS = (
    "dot_", "causal_", "padding", "dead_row", "gqa", "mqa", "softcap_", "additive_", "cosine_", "qknorm_", "alibi",
    "sinks", "ssmax", "huge_logits", "nonzero_mean", "identical_keys", "one_key", "zero_q", "minilm_", "smollm2_",
    "ppocr_",
)  # fmt: skip
# Cases whose logits are the scale times q·k.
PLAIN = [c for c in CASES if not c["case"].startswith(("softcap", "additive", "cosine", "qknorm", "alibi", "sinks"))]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
every_plain_case = pytest.mark.parametrize("case", PLAIN, ids=lambda case: case["case"])
either_precision = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", EXACT), ("float32", CLOSE)])


def variant_of(case: dict[str, Any]) -> Variant:
    """What the case does between q·k and the weights."""
    visible, sinks = reference(case, "ok"), reference(case, "sinks")
    additive = [reference(case, name) for name in ("Wq", "Wk", "b", "w")]
    kind = case["case"].partition("_")[0]
    return Variant(
        mechanism="additive" if kind == "additive" else "cosine" if kind == "cosine" else "dot_product",
        weights=AdditiveWeights(*additive) if kind == "additive" else None,
        normalise="rms" if kind == "qknorm" else "none",
        epsilon=1e-6,
        gain_q=reference(case, "gq"),
        gain_k=reference(case, "gk"),
        scale=case["scale"],
        softcap=case["softcap"],
        bias=reference(case, "bias"),
        hidden=None if visible is None else ~visible,
        sink=None if sinks is None else sinks[:, np.newaxis],
    )


def inputs(case: dict[str, Any]) -> tuple[Any, Any, Any]:
    return reference(case, "q"), reference(case, "k"), reference(case, "v")


def gradients_of(case: dict[str, Any]) -> Gradients:
    return gradients(*inputs(case), reference(case, "g"), variant_of(case))


def softmax_rows(case: dict[str, Any], dtype: str) -> tuple[RowStatistics, Any]:
    """Statistics of every row of a case and its largest visible logit."""
    variant = variant_of(case)
    path = attend(*inputs(case), variant)
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
    """The columns of a case, unscaled and with its own scale; the texts of its batch are the draws."""
    variant = variant_of(case)
    q, k, v = (array.astype(dtype) for array in inputs(case))
    path = attend(q, k, v, variant)
    shape = (len(path.scores), -1, path.scores.shape[-1])
    scores = path.scores.reshape(shape)
    hidden = np.broadcast_to(False if variant.hidden is None else variant.hidden, path.scores.shape).reshape(shape)
    rules = [("none", 1.0), ("file", case["scale"])]
    kept = tally.Tally(tally.Shape(*scores.shape), rules, 0.0, math.nan, Axis(-100.0, 100.0, 64))
    for draw in range(len(scores)):
        rows = slice(0, scores.shape[1])
        tally.add(kept, slice(draw, draw + 1), rows, scores[draw : draw + 1].copy(), hidden[draw : draw + 1])
    unscaled, scaled = reading.columns(kept, len(scores), unbiased=False)
    return unscaled, scaled


def assert_close(actual: Any, expected: Any, tolerance: float) -> None:
    """Within a tolerance that is relative, and absolute below 1."""
    expected = np.asarray(expected)
    assert np.all(np.abs(actual - expected) <= tolerance * np.maximum(1, np.abs(expected))), (actual, expected)


def assert_exact(case: dict[str, Any], actual: Any, expected: Any, what: str) -> None:
    """Equal shapes, and entries within 1e-12 of the largest one, or of 0.01 if all are smaller.

    The references are differences of numbers near 1, times a multiplier up to 32, and are precise to 1e-15. Scores
    may be summed in any order, which moves a logit by some units in its last place and a weight by the same relative
    amount: with logits above a thousand that is more than 1e-12.
    """
    assert actual.shape == expected.shape, what
    tolerance = max(EXACT, 8 * np.spacing(np.abs(reference(case, "z")).max()))
    assert np.abs(actual - expected).max() <= tolerance * max(np.abs(expected).max(), 0.01), what


def references(case: dict[str, Any]) -> dict[str, Any]:
    """The references of every row, and how many keys it sees; a row that sees no key has no logits."""
    names = ("entropy", "p_max", "p2", "jac_fro", "jac_trace", "z_max", "n_allowed")
    return {name: reference(case, name).ravel() for name in names}


@every_case
def test_the_path_from_queries_to_output_agrees_with_references(case: dict[str, Any]) -> None:
    path = attend(*inputs(case), variant_of(case))
    for name, actual in {"raw": path.scores, "z": path.logits, "probs": path.weights, "out": path.output}.items():
        assert_exact(case, actual, reference(case, name), name)


@every_case
def test_gradients_agree_with_references(case: dict[str, Any]) -> None:
    found = gradients_of(case)
    for name in ("q", "k", "v"):
        assert_exact(case, getattr(found, name), reference(case, f"d{name}"), name)
    assert_exact(case, found.scores, reference(case, "d_raw"), "scores")
    assert_exact(case, found.logits, reference(case, "d_z"), "logits")


@pytest.mark.parametrize("case", cases("additive"), ids=lambda c: c["case"])
def test_gradients_of_additive_weights_agree_with_references(case: dict[str, Any]) -> None:
    found = gradients_of(case).weights
    assert isinstance(found, AdditiveWeights)
    for name, expected in {"w_q": "d_Wq", "w_k": "d_Wk", "bias": "d_b", "v": "d_w"}.items():
        assert_exact(case, getattr(found, name), reference(case, expected), name)


def test_gradients_of_normalisation_gains_agree_with_references() -> None:
    (case,) = cases("qknorm_rms")
    found = gradients_of(case)
    assert_exact(case, found.gain_q, reference(case, "d_gq"), "gain of q")
    assert_exact(case, found.gain_k, reference(case, "d_gk"), "gain of k")


@pytest.mark.parametrize("case", [c for c in CASES if f"{c['case']}.jac_q_last" in GOLDEN], ids=lambda c: c["case"])
def test_jacobians_of_one_row_agree_with_references(case: dict[str, Any]) -> None:
    """With the identity for values, the gradient of one output is a row of ∂p/∂z and of ∂p/∂q."""
    q, k = reference(case, "q"), reference(case, "k")
    n = k.shape[2]
    values = np.broadcast_to(np.eye(n), (*k.shape[:2], n, n))
    of_logits: list[Any] = []
    of_query: list[Any] = []
    for key in range(n):
        g = np.zeros((*q.shape[:3], n))
        g[0, 0, -1, key] = 1
        found = gradients(q, k, values, g, variant_of(case))
        of_logits.append(found.logits[0, 0, -1])
        of_query.append(found.q[0, 0, -1])
    assert_exact(case, np.array(of_logits), reference(case, "jac_z_last"), "∂p/∂z")
    assert_exact(case, np.array(of_query), reference(case, "jac_q_last"), "∂p/∂q")


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
    if reference(case, "sinks") is not None:  # the reference is 1 − Σp²; the trace is Σp − Σp²
        trace = trace - 1 + reference(case, "probs").sum(axis=-1).ravel()
    assert_close(rows.complement[sees], trace[sees], tolerance)


@every_plain_case
@either_precision
def test_pooled_statistics_agree_with_references(case: dict[str, Any], dtype: str, tolerance: float) -> None:
    unscaled, scaled = pooled(case, dtype)
    rows = references(case)
    sees = rows["n_allowed"] > 0
    expected = {
        "logit_mean": case["scale"] * reference(case, "raw_mean"),
        "logit_variance": case["scale"] ** 2 * reference(case, "raw_var"),
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
    assert_close(unscaled.measured["logit_mean"].value, reference(case, "raw_mean"), tolerance)
    assert_close(unscaled.measured["logit_variance"].value, reference(case, "raw_var"), tolerance)


def test_every_case_is_of_a_known_kind() -> None:
    """So that no case is added without being understood, and no kind is lost."""
    names = [case["case"] for case in CASES]
    assert {name: sum(name.startswith(kind) for kind in KINDS) for name in names} == dict.fromkeys(names, 1)
    assert all(any(name.startswith(kind) for name in names) for kind in KINDS)
