"""The attention of a captured head: all weights in cells, and one row under several rules."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.captures.rules import Rule, file_rule, named_rule
from attn_tui.core.diagnosis.heads.attention import attention_matrix, attention_row
from attn_tui.core.diagnosis.results import AttentionCells
from capture_files import opened
from cases import for_each

Array = npt.NDArray[Any]


def capture_of(folder: Path, tokens: int = 24, **metadata: object) -> tuple[CaptureFile, Array, Array, Array]:
    """A causal capture of two texts, with soft-cap, bias, sink and grouped heads; q, k and bias."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 4, tokens, 16)) * 2, rng.normal(size=(2, 2, tokens, 16))
    bias = rng.normal(size=(1, 4, tokens, tokens))
    tensors = {"q": q, "k": k, "bias": bias, "sinks": np.array([0.5, -1, 2, 0])}
    told = {"causal": True, "softcap": 5, "scale": 0.3} | metadata
    tensors = {f"layers.0.attn.{name}": array for name, array in tensors.items()}
    layers = [{"name": "0", "index": 0, "heads": 4, "kv_heads": 2, "d_k": 16, **told}]
    return opened(folder, tensors, schema="attn-tui/qk-2", layers=layers), q, k, bias


def weights(q: Array, k: Array, bias: Array, head: int, text: int, sink: float, scale: float = 0.3) -> Array:
    z = 5 * np.tanh(scale * q[text, head] @ k[text, head // 2].T / 5) + bias[0, head]
    e = np.where(np.tri(len(z), dtype=bool), np.exp(z), 0)
    return e / (e.sum(axis=1, keepdims=True) + math.exp(sink))


def whole(
    capture: CaptureFile, head: int, text: int = 0, down: int = 1000, across: int = 1000, rule: Rule | None = None
) -> AttentionCells:
    layer = capture.layers[0]
    rule = rule or file_rule(layer)
    ends = (0, layer.queries), (0, layer.keys)
    *_, last = (each for each in attention_matrix(capture, layer, head, rule, text, *ends, down, across) if each)
    return last


def test_a_cell_for_each_pair_has_its_weight(tmp_path: Path) -> None:
    capture, q, k, bias = capture_of(tmp_path)
    for head, sink, text in ((0, 0.5, 0), (3, 0.0, 1)):
        found = whole(capture, head, text)
        expected = np.where(np.tri(24, dtype=bool), weights(q, k, bias, head, text, sink), np.nan)
        shares = [[math.nan if x is None else x for x in line] for line in found.shares]
        np.testing.assert_allclose(shares, expected, atol=1e-12)
        assert found.positions == tuple(range(24))
        assert (found.queries, found.keys, found.rough) == (tuple(range(25)), tuple(range(25)), False)


def test_cells_of_several_keys_and_queries_hold_the_mean_share(tmp_path: Path) -> None:
    capture, q, k, bias = capture_of(tmp_path)
    p = weights(q, k, bias, 1, 0, -1.0)
    layer = capture.layers[0]
    [found] = [m for m in attention_matrix(capture, layer, 1, file_rule(layer), 0, (10, 24), (4, 20), 4, 5) if m]
    assert (found.queries, found.keys) == ((10, 13, 17, 20, 24), (4, 7, 10, 13, 16, 20))
    for y, line in enumerate(found.shares):
        for x, share in enumerate(line):
            rows, keys = slice(*found.queries[y : y + 2]), slice(*found.keys[x : x + 2])
            if rows.stop - 1 < keys.start:
                assert share is None
            else:
                assert share == pytest.approx(p[rows, keys].sum(axis=1).mean(), abs=1e-12)


def test_a_cell_is_blank_only_where_no_query_sees_a_key(tmp_path: Path) -> None:
    capture, *_ = capture_of(tmp_path)
    found = whole(capture, 0, down=4, across=4)
    assert [[share is None for share in line] for line in found.shares] == (~np.tri(4, dtype=bool)).tolist()
    assert [(each.queries, each.keys) for each in (whole(capture, 0, down=n, across=n) for n in (0, 1))] == [
        ((0, 24), (0, 24))
    ] * 2


def test_a_large_matrix_comes_rough_first_and_then_exact(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    q, k = rng.normal(size=(1, 1, 1200, 8)), rng.normal(size=(1, 1, 1200, 8))
    file = opened(tmp_path, {"q": q, "k": k}, scale=0.35, causal="false")
    layer = file.layers[0]
    ends = (0, 1200), (0, 1200)
    answers = [m for m in attention_matrix(file, layer, 0, file_rule(layer), 0, *ends, 20, 20) if m]
    assert [each.rough for each in answers] == [True, False]
    z = 0.35 * q[0, 0] @ k[0, 0].T
    e = np.exp(z - z.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    exact = p.reshape(20, 60, 20, 60).sum(axis=3).mean(axis=1)
    rough, fine = (np.array(each.shares, np.float64) for each in answers)
    np.testing.assert_allclose(fine, exact, atol=1e-12)
    # A cell of a rough matrix is the mean of 2 rows; a row deviates by the spread of rows.
    assert np.abs(rough - exact).max() < 6 * (p.reshape(1200, 20, 60).sum(axis=2)).std() / math.sqrt(2)
    assert not np.array_equal(rough, exact)


@for_each(("queries", "exact"), [(1 << 13, True), (1 + (1 << 13), False)])
def test_a_matrix_of_more_than_134_million_scores_stays_rough(tmp_path: Path, queries: int, exact: bool) -> None:
    side = np.ones((1, 1, 1 << 14, 2), np.float32)
    file = opened(tmp_path, {"q": side, "k": side}, scale=0.35, causal="false")
    layer = file.layers[0]
    answers = attention_matrix(file, layer, 0, file_rule(layer), 0, (0, queries), (0, 1 << 14), 2, 2)
    assert next(each for each in answers if each).rough
    assert (next(answers, "no more") != "no more") == exact


def test_a_row_is_the_softmax_of_its_logits_under_each_rule(tmp_path: Path) -> None:
    capture, q, k, bias = capture_of(tmp_path)
    layer = capture.layers[0]
    rules = [file_rule(layer), named_rule("none", layer)]
    found = attention_row(capture, layer, 2, rules, 1, 9)
    assert (found.position, found.visible, found.keys) == (9, 10, tuple(range(10)))
    for column, scale in zip(found.columns, (0.3, 1.0), strict=True):
        p = weights(q, k, bias, 2, 1, 2.0, scale)[9, :10]
        assert column.multiplier == pytest.approx(scale)
        np.testing.assert_allclose(column.weights, p, atol=1e-12)
        assert column.sink == pytest.approx(1 - p.sum())
        assert column.rest == pytest.approx(0, abs=1e-12)
        assert column.entropy == pytest.approx(-(p * np.log(p)).sum())
        jacobian = np.linalg.norm(np.diag(p) - np.outer(p, p))
        assert column.jacobian == pytest.approx(jacobian)
        assert column.dead == (jacobian < 0.01)
        z = 5 * np.tanh(scale * q[1, 2] @ k[1, 1].T / 5) + bias[0, 2]
        assert column.saturation == pytest.approx(z[9, :10].std() / math.sqrt(2 * math.log(10)))


@pytest.mark.parametrize(("softcap", "with_bias"), [(None, False), (5.0, False), (None, True), (9.0, True)])
def test_the_row_saturates_at_its_threshold(softcap: float | None, with_bias: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    q, k = rng.normal(size=(1, 1, 30, 16)), rng.normal(size=(1, 1, 30, 16))
    tensors = {"layers.0.attn.q": q * 0.5, "layers.0.attn.k": k}
    if with_bias:
        tensors["layers.0.attn.bias"] = rng.normal(size=(1, 1, 30, 30))
    layer: dict[str, object] = {"name": "0", "index": 0, "heads": 1, "kv_heads": 1, "d_k": 16, "scale": 0.5}
    layer |= {"prescaled": [0.5, 1.0]} | ({} if softcap is None else {"softcap": softcap})
    capture = opened(tmp_path, tensors, schema="attn-tui/qk-2", layers=[layer])
    own = capture.layers[0]
    found = attention_row(capture, own, 0, [file_rule(own)], 0, 11)
    assert found.threshold is not None
    at = attention_row(capture, own, 0, [named_rule("custom", own, found.threshold)], 0, 11)
    assert at.columns[0].saturation == pytest.approx(1, rel=1e-9)
    if softcap is None and not with_bias:
        assert found.threshold == pytest.approx(math.sqrt(2 * math.log(30)) / (k[0, 0] @ q[0, 0, 11]).std())


@for_each(("stored", "threshold"), [(0.1, 2), (1.9, 2), (4.4, 4)])
def test_of_two_thresholds_that_near_the_file_s_scale_is_told(
    tmp_path: Path, stored: float, threshold: float
) -> None:
    """Logits c·x − 3·x saturate at c = 2 and at c = 4, in units in which x spreads by √(2 ln n)."""
    x = np.random.default_rng(3).normal(size=30)
    x *= math.sqrt(2 * math.log(30)) / x.std()
    sides = {"q": np.ones((1, 1, 1, 1)), "k": x.reshape(1, 1, 30, 1), "bias": -3 * x.reshape(1, 1, 1, 30)}
    capture = opened(tmp_path, {f"layers.0.attn.{name}": each for name, each in sides.items()}, scale=stored)
    layer = capture.layers[0]
    found = attention_row(capture, layer, 0, [file_rule(layer)], 0, 0)
    assert found.threshold == pytest.approx(threshold, rel=1e-5)


def test_rows_that_never_saturate_have_no_threshold(tmp_path: Path) -> None:
    capture, *_ = capture_of(tmp_path, softcap=0.1)
    layer = capture.layers[0]
    first = attention_row(capture, layer, 0, [file_rule(layer)], 0, 0)
    assert (first.threshold, first.columns[0].saturation, first.columns[0].dead) == (None, None, False)
    same = opened(tmp_path, {"q": np.ones((1, 1, 8, 4)), "k": np.ones((1, 1, 8, 4))}, scale=1.0)
    assert attention_row(same, same.layers[0], 0, [file_rule(same.layers[0])], 0, 5).threshold is None


def test_only_the_largest_weights_of_a_long_row_are_listed(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    capture = opened(tmp_path, {"q": rng.normal(size=(1, 3, 4)), "k": rng.normal(size=(1, 900, 4))}, scale=1.0)
    layer = capture.layers[0]
    found = attention_row(capture, layer, 0, [file_rule(layer)], 0, 1)
    [column] = found.columns
    assert len(found.keys) == len(column.weights) == 256
    assert list(found.keys) == sorted(found.keys)
    assert sum(column.weights) + column.rest == pytest.approx(1)
    assert column.rest / (900 - 256) < min(column.weights)


def test_texts_and_queries_that_do_not_exist_are_refused() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[0]
    for text, query in ((0, 70), (0, -1), (1, 0), (-1, 0)):
        words = f"layer 0 has 1 texts of 70 queries; there is no query {query} of text {text}"
        with pytest.raises(CaptureError, match=words):
            attention_row(capture, layer, 0, [file_rule(layer)], text, query)
    with pytest.raises(CaptureError, match="layer 0 has texts 0 to 0, not 1"):
        list(attention_matrix(capture, layer, 0, file_rule(layer), 1, (0, 70), (0, 70), 5, 5))


def test_answers_are_plain_values(tmp_path: Path) -> None:
    capture, *_ = capture_of(tmp_path)
    layer = capture.layers[0]
    row = attention_row(capture, layer, 2, [file_rule(layer)], 1, 9)
    for each in (vars(whole(capture, 0)), {**vars(row), "columns": [vars(column) for column in row.columns]}):
        json.dumps(each, allow_nan=False)  # which refuses NumPy's numbers
