"""The core agrees with float64 references made by automatic differentiation; golden.npz has their manifest."""

import math
from typing import Any

import numpy as np
from attn_tui.core.attention.row_gradients import logit_gradients, query_gradient_norms, upstream
from attn_tui.core.attention.scores import AdditiveWeights, scores
from attn_tui.core.attention.softmax import (
    RowStatistics,
    logits_below,
    row_statistics,
    row_sums,
    shift_rows,
    softmax,
)
from attn_tui.core.parameters import MechanismName
from attn_tui.core.statistics import reading, tally
from attn_tui.core.statistics.histogram import BinAxis
from attn_tui.core.statistics.measurement import Column
from cases import for_each
from golden import CASES, reference

EXACT, CLOSE = 1e-12, 1e-4  # relative, absolute below 1

# What the cases show, by the beginning of their names.
KINDS = (
    "dot_", "causal_", "padding", "dead_row", "gqa", "mqa", "softcap_", "additive_", "cosine_", "qknorm_", "alibi",
    "sinks", "ssmax", "huge_logits", "nonzero_mean", "identical_keys", "one_key", "zero_q", "minilm_", "smollm2_",
    "ppocr_",
)  # fmt: skip
# Cases whose logits are the scale times q·k.
PLAIN = [c for c in CASES if not c["case"].startswith(("softcap", "additive", "cosine", "qknorm", "alibi", "sinks"))]

# Cases whose queries and keys are multiplied as they are.
UNNORMALISED = [c for c in CASES if not c["case"].startswith("qknorm")]

every_case = for_each("case", CASES)
every_plain_case = for_each("case", PLAIN)
either_precision = for_each(("dtype", "tolerance"), [("float64", EXACT), ("float32", CLOSE)])


def weights_of(case: dict[str, Any]) -> AdditiveWeights | None:
    additive = [reference(case, name) for name in ("Wq", "Wk", "b", "w")]
    return AdditiveWeights(*additive) if case["case"].startswith("additive") else None


def mechanism_of(case: dict[str, Any]) -> MechanismName:
    return "additive" if weights_of(case) else "cosine" if case["case"].startswith("cosine") else "dot_product"


def of_every_head(case: dict[str, Any], name: str) -> Any:
    """Keys or values, with those that query heads share repeated."""
    values = reference(case, name)
    return np.repeat(values, reference(case, "q").shape[1] // values.shape[1], axis=1)


def hidden_in(case: dict[str, Any]) -> Any:
    """The hidden keys, of the shape of the scores."""
    visible = reference(case, "ok")
    return np.broadcast_to(False if visible is None else ~visible, reference(case, "raw").shape)


def sinks_of(case: dict[str, Any]) -> Any:
    """The logit of each row's sink, None if there are none."""
    sinks = reference(case, "sinks")
    return None if sinks is None else np.broadcast_to(sinks[:, np.newaxis], reference(case, "raw").shape[:-1])


def softmax_rows(case: dict[str, Any], dtype: str) -> tuple[RowStatistics, Any]:
    """Statistics of every row of a case and its largest visible logit."""
    before, multiplier = (reference(case, "raw"), case["scale"]) if case in PLAIN else (reference(case, "z"), 1.0)
    rows = (each.reshape(-1, before.shape[-1]) for each in (before.astype(dtype), hidden_in(case)))
    shifted = shift_rows(*rows)
    largest, sink = multiplier * shifted.largest, sinks_of(case)
    sums = row_sums(logits_below(shifted, multiplier), shifted)
    return row_statistics(sums, shifted.visible, None if sink is None else sink.ravel() - largest), largest


def pooled(case: dict[str, Any], dtype: str) -> tuple[Column, Column]:
    """The columns of a case, unscaled and with its own scale; the texts of its batch are the draws."""
    raw = scores(reference(case, "q").astype(dtype), of_every_head(case, "k").astype(dtype))
    shape = (len(raw), -1, raw.shape[-1])
    raw, hidden = raw.reshape(shape), hidden_in(case).reshape(shape)
    rules = [("none", 1.0), ("file", case["scale"])]
    kept = tally.Tally(tally.Shape(*raw.shape), rules, 0.0, math.nan, BinAxis(-100.0, 100.0, 64))
    for draw in range(len(raw)):
        rows = slice(0, raw.shape[1])
        tally.add(kept, slice(draw, draw + 1), rows, raw[draw : draw + 1].copy(), hidden[draw : draw + 1])
    unscaled, scaled = reading.columns(kept, len(raw), unbiased=False)
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


@for_each("case", UNNORMALISED)
def test_scores_agree_with_references(case: dict[str, Any]) -> None:
    found = scores(reference(case, "q"), of_every_head(case, "k"), mechanism_of(case), weights_of(case))
    assert_exact(case, found, reference(case, "raw"), "scores")


@every_case
def test_weights_agree_with_references(case: dict[str, Any]) -> None:
    found = softmax(reference(case, "z"), hidden_in(case), sinks_of(case))
    assert_exact(case, found, reference(case, "probs"), "weights")


@every_case
def test_gradients_agree_with_references(case: dict[str, Any]) -> None:
    """Of logits, and norms of those of queries; a soft-cap's slopes are the caller's to multiply by."""
    z, g, v = reference(case, "z"), reference(case, "g"), of_every_head(case, "v")
    shifted = shift_rows(*(each.reshape(-1, z.shape[-1]).copy() for each in (z, hidden_in(case))))
    sink = None if sinks_of(case) is None else sinks_of(case).ravel() - shifted.largest
    found = logit_gradients(shifted, 1.0, upstream(g, v, shifted), sink)
    assert_exact(case, (found.entries * found.factor[:, np.newaxis]).reshape(z.shape), reference(case, "d_z"), "z")
    if case in UNNORMALISED:
        if case["softcap"]:
            found.entries[:] *= (1 - np.square(z / case["softcap"])).reshape(found.entries.shape)
        q, k, weights = reference(case, "q"), of_every_head(case, "k"), weights_of(case)
        norms = query_gradient_norms(found, case["scale"], k, q, mechanism_of(case), weights)
        expected, per_component = np.linalg.norm(reference(case, "dq"), axis=-1).ravel(), q.shape[-1] ** -0.5
        assert_exact(case, per_component * norms, per_component * expected, "norms")


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
