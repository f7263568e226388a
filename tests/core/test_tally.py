"""Tallies of scores: the same numbers whatever the blocks, and histograms of every visible pair."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from attn_tui.core.arrays import FloatArray
from attn_tui.core.attention.row_gradients import LogitGradients
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import reading, tally
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.histogram import BinAxis
from attn_tui.core.statistics.measurement import Column, HistogramName
from cases import for_each
from hypothesis import given
from hypothesis import strategies as st
from measurements import assert_equal

RULES = [("none", 1.0), ("sqrt_d_k", 0.25)]
AXIS = BinAxis(-32.0, 32.0, 128)
EITHER_MASK = pytest.mark.parametrize(
    "hidden", [None, np.arange(7) > np.arange(6)[:, np.newaxis], np.arange(6)[:, np.newaxis] == [2] * 7],
    ids=["all", "causal", "a dead row"],
)  # fmt: skip


def some_scores(draws: int = 5, rows: int = 6, keys: int = 7) -> Any:
    return np.random.default_rng(0).normal(0, 4, (draws, rows, keys))


def empty(shape: tuple[int, ...], band: float = 12.0, axis: BinAxis = AXIS) -> tally.Tally:
    return tally.Tally(tally.Shape(*shape), RULES, 0.0, band, axis)


def measured(
    scores: Any, hidden: Any = None, band: float = 12.0, order: Any = None, offsets: Any = None
) -> tuple[Column, ...]:
    """The columns of some scores, added block by block in the given order."""
    kept = empty(scores.shape, band)
    blocks = list(tally.blocks(kept.shape, tally.BLOCK))
    for index in range(len(blocks)) if order is None else order(len(blocks)):
        draws, rows = blocks[index]
        part = None if hidden is None else np.broadcast_to(hidden, scores.shape)[draws, rows]
        own = None if offsets is None else offsets[draws, rows]
        tally.add(kept, draws, rows, scores[draws, rows].copy(), part, own)
    return reading.columns(kept, len(scores), unbiased=True)


def assert_same(one: tuple[Column, ...], two: tuple[Column, ...]) -> None:
    assert_equal(one, two, 1e-12)


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.integers(1, 500))
def test_blocks_cover_every_row_once(draws: int, rows: int, keys: int, size: int) -> None:
    covered = np.zeros((draws, rows), int)
    for d, r in tally.blocks(tally.Shape(draws, rows, keys), size):
        assert covered[d, r].size * keys <= max(size, keys)
        covered[d, r] += 1
    assert np.all(covered == 1)


@EITHER_MASK
@pytest.mark.parametrize("block", [1, 9, 20, 42, 100])
def test_the_result_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch, hidden: Any, block: int) -> None:
    scores = some_scores()
    whole = measured(scores, hidden)
    monkeypatch.setattr(tally, "BLOCK", block)
    assert_same(measured(scores, hidden), whole)
    assert_same(measured(scores, hidden, order=np.random.default_rng(1).permutation), whole)


def test_thinned_counts_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "COUNTED", 60)
    scores = some_scores()
    whole = measured(scores)
    monkeypatch.setattr(tally, "BLOCK", 14)
    assert_same(measured(scores), whole)


def test_histograms_are_those_of_the_values() -> None:
    scores = some_scores()
    for column in measured(scores):
        logits = column.multiplier * scores
        weights = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
        entropy = -(weights * np.log(weights)).sum(axis=-1)
        of_rows: dict[HistogramName, Any] = {"logits": logits, "weights": np.log10(weights), "entropy": entropy}
        for name, values in of_rows.items():
            axis = column.histograms[name].axis
            expected, _ = np.histogram(values, axis.bins, (axis.low, axis.high))
            assert [*column.histograms[name].counts] == expected.tolist(), name


def test_one_hot_weights_lie_on_the_axis() -> None:
    unscaled, _ = measured(np.array([[[0.0, -100.0]], [[-100.0, 0.0]]]))
    weights = unscaled.histograms["weights"]
    assert (weights.counts[-1], weights.overflow, weights.underflow) == (2, 0, 2)


@pytest.mark.parametrize(("draws", "rows"), [(2, 64), (16, 64), (16, 63), (4, 1000), (1000, 1), (3, 7)])
@pytest.mark.parametrize("every", [1, 2, 7, 16, 64, 1000])
def test_thinning_counts_every_place_of_a_draw_alike(
    monkeypatch: pytest.MonkeyPatch, draws: int, rows: int, every: int
) -> None:
    """Under a causal mask the place of a row decides how many keys it sees, so all places must be counted."""
    monkeypatch.setattr(tally, "COUNTED", max(draws * rows // every, 1))
    places = np.arange(rows, dtype=float)
    kept = empty((draws, rows, 1), axis=BinAxis(-0.5, rows - 0.5, rows))
    tally.add(kept, slice(0, draws), slice(0, rows), np.tile(places[:, np.newaxis], (draws, 1, 1)))
    counts = np.array(reading.columns(kept, draws, unbiased=True)[0].histograms["logits"].counts)
    total, mean = counts.sum(), np.average(places, weights=counts)
    assert total == pytest.approx(draws * rows / kept.shape.every, abs=1)
    assert abs(mean - places.mean()) <= 3 * places.std() / total**0.5
    assert total < 8 or np.average((places - mean) ** 2, weights=counts) >= places.var() / 2


def test_a_partial_result_is_that_of_its_own_draws() -> None:
    scores = some_scores()
    kept = empty(scores.shape)
    for draw in range(3):
        tally.add(kept, slice(draw, draw + 1), slice(0, 6), scores[draw : draw + 1].copy())
    assert_same(reading.columns(kept, 3, unbiased=True), measured(scores[:3]))


def test_the_centre_changes_only_the_precision() -> None:
    scores = some_scores()
    kept = tally.Tally(tally.Shape(*scores.shape), RULES, 3.0, 12.0, BinAxis(AXIS.low - 3, AXIS.high - 3, AXIS.bins))
    tally.add(kept, slice(0, 5), slice(0, 6), scores - 3)
    centred = reading.columns(kept, 5, unbiased=True)
    for a, b in zip(centred, measured(scores), strict=True):
        for name in {n for n in a.measured if not STATISTIC[n].omissible} - {"logit_within_3sd"}:  # about the centre
            assert a.measured[name].value == pytest.approx(b.measured[name].value, rel=1e-11), name
        assert a.histograms["logits"].axis == b.histograms["logits"].axis
        assert [*a.histograms["logits"].counts] == [*b.histograms["logits"].counts]


@EITHER_MASK
@pytest.mark.parametrize("block", [7, 42, 1000])
def test_offsets_of_rows_may_be_given_apart_from_the_scores(
    monkeypatch: pytest.MonkeyPatch, hidden: Any, block: int
) -> None:
    scores = some_scores()
    offsets = np.random.default_rng(1).normal(0, 8, (5, 6, 1))
    whole = measured(scores + offsets, hidden)
    monkeypatch.setattr(tally, "BLOCK", block)
    assert_same(measured(scores, hidden, offsets=offsets), whole)


def test_offsets_of_rows_cost_the_scores_no_digits() -> None:
    """A float32 score near 10⁸ is precise to 8: the differences survive only if the offset is given apart."""
    scores, offsets = some_scores().astype("float32"), np.full((5, 6, 1), 1e8)
    apart, alone = measured(scores, offsets=offsets), measured(scores)
    for one, two in zip(apart, alone, strict=True):
        for name in ("logit_variance_within_row", "entropy", "max_weight", "jacobian_norm"):
            assert one.measured[name] == two.measured[name], name
        assert one.measured["logit_mean"].value == pytest.approx(1e8 * one.multiplier, rel=1e-6)


def test_memory_does_not_depend_on_the_number_of_rows() -> None:
    def kept_bytes(rows: int) -> int:
        kept = empty((2, rows, 5))
        for draws, some in tally.blocks(kept.shape, 1000):
            shape = (draws.stop - draws.start, some.stop - some.start, 5)
            tally.add(kept, draws, some, np.ones(shape, "float32"), offsets=np.zeros((*shape[:2], 1)))
        arrays = [*kept.score_sums.values(), *kept.counts.values()]
        arrays += [*kept.row_sums.values()]
        assert sum(array.nbytes for array in kept.scratch) <= 3 * 1000 * 4
        return sum(array.nbytes for array in arrays)

    assert kept_bytes(10) == kept_bytes(10_000)


@given(st.integers(1, 4096), st.integers(1, 8192), st.integers(1, 8192))
def test_the_number_of_counted_entries_is_limited(draws: int, rows: int, keys: int) -> None:
    every = tally.Shape(draws, rows, keys).every
    assert draws * rows * keys / every <= tally.COUNTED
    assert every == 1 or draws * rows * keys > tally.COUNTED


def test_without_a_band_there_is_no_share_within_it() -> None:
    unscaled, _ = measured(some_scores(), band=math.nan)
    assert unscaled.measured["logit_within_3sd"] == (None, None)


@EITHER_MASK
@pytest.mark.parametrize(
    ("rows", "most", "size"),
    [(6, 6, 300), (6, 6, 9), (6, 3, 300), (5, 3, 84), (6, 3, 14), (6, 2, 7), (6, 1, 42), (6, 1, 21)],
)
def test_gradients_are_measured_on_evenly_spaced_rows_whatever_the_blocks(
    monkeypatch: pytest.MonkeyPatch, hidden: Any, rows: int, most: int, size: int
) -> None:
    monkeypatch.setattr(tally, "DIFFERENTIATED", most)
    scores, rng = some_scores()[:, :rows], np.random.default_rng(3)
    hidden = None if hidden is None else hidden[:rows]
    draws, _, keys = scores.shape
    g, v = rng.standard_normal((draws, rows, 4)), rng.standard_normal((draws, keys, 4))
    kept = empty(scores.shape)
    seen = set[tuple[int, int]]()
    for d, r in tally.blocks(kept.shape, size):

        def norms(found: LogitGradients, rule: int, own: slice, d: slice = d, r: slice = r) -> FloatArray:
            if rule == 0:
                seen.update((draw, row) for draw in range(draws)[d] for row in range(rows)[r][own])
            return np.linalg.norm(found.entries, axis=-1) * found.factor

        unseen = None if hidden is None else np.broadcast_to(hidden, scores.shape)[d, r]
        backward = tally.Backward(g[d, r], v[d], norms)
        tally.add(kept, d, r, scores[d, r].copy(), unseen, backward=backward)
    taken = range(rows)[kept.shape.differentiated]
    assert 1 <= len(taken) <= most
    assert seen == {(draw, row) for draw in range(draws) for row in taken}
    assert kept.gradient_norms is not None
    for (_, multiplier), found in zip(RULES, kept.gradient_norms.swapaxes(0, 1), strict=True):
        z = multiplier * scores if hidden is None else np.where(hidden, -np.inf, multiplier * scores)
        p = np.exp(z) / np.maximum(np.exp(z).sum(axis=-1, keepdims=True), 1e-300)  # a dead row has no weights
        received = g @ v.mT
        expected = np.linalg.norm(p * (received - (p * received).sum(axis=-1, keepdims=True)), axis=-1)
        for norms in found:  # of q, which are those of logits here, and of logits
            assert norms == pytest.approx(expected[:, taken], rel=1e-5, abs=1e-9)


@for_each("hides", [False, True])
@for_each("sink", [None, 0.5])
def test_the_average_row_is_the_mean_of_sorted_softmax_rows(hides: bool, sink: float | None) -> None:
    """Its first weight is max weight, whatever is hidden; a row that sees no key is left out."""
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((2, 8, 12)) * 4
    hidden = rng.random(scores.shape) < 0.4 if hides else None
    if hidden is not None:
        hidden[0, 0] = True
    rules = [("none", 1.0), ("custom", 0.25)]
    kept = tally.Tally(tally.Shape(2, 8, 12), rules, 0.0, math.nan, BinAxis(-20.0, 20.0, 100), sink)
    tally.add(kept, slice(0, 2), slice(0, 8), scores.copy(), hidden)
    for column, (_, multiplier) in zip(reading.columns(kept, 2, unbiased=False), rules, strict=True):
        powers = np.exp(multiplier * scores) * (1 if hidden is None else ~hidden)
        seen = powers.any(axis=-1)
        rows = powers[seen] / (powers[seen].sum(axis=-1, keepdims=True) + (0 if sink is None else np.exp(sink)))
        np.testing.assert_allclose(column.average_row, np.sort(rows)[:, ::-1].mean(axis=0), rtol=1e-9, atol=1e-12)
        assert column.average_row[0] == pytest.approx(column.measured["max_weight"].value)


def test_the_first_weight_of_the_average_row_grows_with_d_k() -> None:
    p = Parameters(d_k=8, n_keys=32, n_queries=16, batch=8)
    firsts = [run(replace(p, d_k=d_k), full=False).columns[0].average_row[0] for d_k in range(4, 40)]
    assert max(before - after for before, after in itertools.pairwise(firsts)) < 0.015
    assert firsts[-1] > 2 * firsts[0]
