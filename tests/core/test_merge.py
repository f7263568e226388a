"""Tallies of parts of the draws merge to the tally of all."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from attn_tui.core.statistics import reading, tally
from attn_tui.core.statistics.histogram import BinAxis
from attn_tui.core.statistics.measurement import Column
from attn_tui.core.statistics.reading import merge
from hypothesis import given
from hypothesis import strategies as st
from measurements import assert_equal, numbers

RULES = [("none", 1.0), ("sqrt_d_k", 0.25)]
AXIS = BinAxis(-32.0, 32.0, 128)


def empty(shape: tuple[int, int, int], **change: Any) -> tally.Tally:
    asked: dict[str, Any] = {"rules": RULES, "centre": 0.0, "band": 12.0, "axis": AXIS} | change
    return tally.Tally(tally.Shape(*shape), **asked)


def add(to: tally.Tally, scores: Any, draws: slice, rows: slice) -> tally.Tally:
    tally.add(to, draws, rows, scores[draws, rows].copy())
    return to


def columns_of(kept: tally.Tally) -> tuple[Column, ...]:
    return reading.columns(kept, kept.shape.draws, unbiased=True)


def numbers_of(kept: tally.Tally) -> list[Any]:
    """All numbers of the columns, to be compared bit for bit."""
    return numbers(columns_of(kept))


@given(st.data())
def test_shuffled_parts_merge_to_the_tally_of_all(data: st.DataObject) -> None:
    """Exactly, if each draw is in one part, and also if some parts are merged first."""
    draws, rows, keys = (data.draw(st.integers(low, high)) for low, high in ((2, 9), (1, 5), (1, 6)))
    shape = draws, rows, keys
    scores = np.random.default_rng(data.draw(st.integers(0, 9))).normal(0, 4, shape)
    whole = empty(shape)
    for draw in range(draws):
        add(whole, scores, slice(draw, draw + 1), slice(0, rows))
    cuts = sorted({0, draws, *data.draw(st.lists(st.integers(0, draws), max_size=4))})
    slices = [slice(first, last) for first, last in itertools.pairwise(cuts)]
    parts: list[tally.Tally] = []
    for one in slices:
        part = empty(shape)
        for draw in data.draw(st.permutations(range(one.start, one.stop))):
            add(part, scores, slice(draw, draw + 1), slice(0, rows))
        parts.append(part)
    parts = data.draw(st.permutations(parts))
    while len(parts) > 1:
        some = data.draw(st.integers(2, len(parts)))
        parts = [*parts[some:], merge(parts[:some])]
    assert numbers_of(merge(parts)) == numbers_of(whole)


def test_norms_of_gradients_stand_at_their_draws() -> None:
    """A part without any leaves its draws unseen."""
    norms = np.arange(2 * 2 * 5 * 3, dtype=np.float32).reshape(2, 2, 5, 3)
    parts: list[tally.Tally] = []
    for first, last in ((3, 5), (1, 2), (0, 1)):
        part = empty((last, 3, 4), held=slice(first, last))
        part.gradient_norms = norms[:, :, first:last] if first else None
        parts.append(part)
    expected = norms.copy()
    expected[:, :, [0, 2]] = np.nan
    np.testing.assert_array_equal(merge(parts).gradient_norms, expected)
    assert merge(parts[2:]).gradient_norms is None


@given(st.integers(2, 5), st.integers(2, 9), st.integers(1, 6), st.randoms(use_true_random=False))
def test_draws_cut_between_their_rows_merge_up_to_rounding(draws: int, rows: int, keys: int, random: Any) -> None:
    shape = (draws, rows, keys)
    scores = np.random.default_rng(0).normal(0, 4, shape)
    whole = add(empty(shape), scores, slice(0, draws), slice(0, rows))
    places = [(draw, row) for draw in range(draws) for row in range(rows)]
    random.shuffle(places)
    parts = [add(empty(shape), scores, slice(d, d + 1), slice(row, row + 1)) for d, row in places]
    assert_equal(columns_of(merge(parts)), columns_of(whole), 1e-9)


def test_batches_of_growing_numbers_of_draws_merge_in_any_order() -> None:
    """Each batch is drawn after the one before it and so is the first to know the number of all draws so far."""
    scores = np.random.default_rng(0).normal(0, 4, (6, 3, 5))
    whole = empty((6, 3, 5))
    parts: list[tally.Tally] = []
    for first, last in ((0, 2), (2, 4), (4, 6)):
        parts.append(add(empty((last, 3, 5)), scores, slice(first, last), slice(0, 3)))
        add(whole, scores, slice(first, last), slice(0, 3))
    for order in (parts, parts[::-1], [parts[1], parts[2], parts[0]]):
        merged = merge(order)
        assert merged.shape == whole.shape
        assert numbers_of(merged) == numbers_of(whole)


def test_merging_does_not_change_the_parts() -> None:
    scores = np.random.default_rng(0).normal(0, 4, (2, 3, 5))
    parts = [add(empty((2, 3, 5)), scores, slice(draw, draw + 1), slice(0, 3)) for draw in range(2)]
    first = merge(parts)
    assert numbers_of(first) == numbers_of(merge(parts))
    tally.add(first, slice(0, 2), slice(0, 3), scores.copy())
    alone = merge(parts[:1])
    tally.add(alone, slice(0, 2), slice(0, 3), scores.copy())
    assert parts[0].score_sums["pairs"].tolist() == [15, 0]
    assert parts[0].counts["logits", 0].sum() == 15


def test_empty_parts_change_nothing() -> None:
    scores = np.random.default_rng(0).normal(0, 4, (2, 3, 5))
    seen = add(empty((2, 3, 5)), scores, slice(0, 2), slice(0, 3))
    expected = numbers_of(seen)
    for parts in ([empty((2, 3, 5)), seen], [seen, empty((2, 3, 5))]):
        assert numbers_of(merge(parts)) == expected


@pytest.mark.parametrize(
    "change",
    [{"rules": RULES[:1]}, {"centre": 1.0}, {"band": 11.0}, {"band": math.nan}, {"axis": BinAxis(-1.0, 1.0, 128)}],
    ids=str,
)
def test_tallies_of_different_measurements_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="different"):
        merge([empty((2, 3, 5)), empty((2, 3, 5), **change)])
    with pytest.raises(ValueError, match="different"):
        merge([empty((2, 3, 5)), empty((2, 3, 6))])
    with pytest.raises(ValueError, match="nothing"):
        merge([])


def test_tallies_without_a_band_can_be_merged() -> None:
    assert math.isnan(merge([empty((2, 3, 5), band=math.nan), empty((2, 3, 5), band=math.nan)]).band)
