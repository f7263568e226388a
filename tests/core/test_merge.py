import itertools
import math
from typing import Any

import numpy as np
import pytest
from attn_tui.core.statistics import tally
from attn_tui.core.statistics.histogram import Axis
from attn_tui.core.statistics.measurement import HISTOGRAMS, Column
from attn_tui.core.statistics.merge import merge
from hypothesis import given, settings
from hypothesis import strategies as st

RULES = [("none", 1.0), ("sqrt_d_k", 0.25)]
AXIS = Axis(-32.0, 32.0, 128)


def empty(shape: tuple[int, int, int], **change: Any) -> tally.Tally:
    asked: dict[str, Any] = {"rules": RULES, "centre": 0.0, "band": 12.0, "axis": AXIS} | change
    return tally.Tally(tally.Shape(*shape), **asked)


def add(to: tally.Tally, scores: Any, draws: slice, rows: slice) -> tally.Tally:
    tally.add(to, draws, rows, scores[draws, rows].copy())
    return to


def estimates(columns: tuple[Column, ...]) -> Any:
    return [dict(column.measured) for column in columns]


def counts(columns: tuple[Column, ...]) -> Any:
    histograms = [column.histograms[name] for column in columns for name in HISTOGRAMS]
    return [(h.axis, [*h.counts], h.underflow, h.overflow) for h in histograms]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_shuffled_parts_merge_to_the_tally_of_all(data: st.DataObject) -> None:
    """Parts of different draws exactly, and also where they are merged by twos and threes first."""
    shape = tuple(data.draw(st.integers(low, high)) for low, high in ((2, 9), (1, 5), (1, 6)))
    draws, rows = shape[:2]
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
    merged, expected = (tally.columns(each, draws, unbiased=True) for each in (merge(parts), whole))
    assert estimates(merged) == estimates(expected)
    assert counts(merged) == counts(expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 5), st.integers(2, 9), st.integers(1, 6), st.randoms(use_true_random=False))
def test_draws_cut_between_their_rows_merge_to_the_last_digits(draws: int, rows: int, keys: int, random: Any) -> None:
    shape = (draws, rows, keys)
    scores = np.random.default_rng(0).normal(0, 4, shape)
    whole = add(empty(shape), scores, slice(0, draws), slice(0, rows))
    places = [(draw, row) for draw in range(draws) for row in range(rows)]
    random.shuffle(places)
    parts = [add(empty(shape), scores, slice(d, d + 1), slice(row, row + 1)) for d, row in places]
    merged, expected = (tally.columns(each, draws, unbiased=True) for each in (merge(parts), whole))
    assert counts(merged) == counts(expected)
    for one, two in zip(estimates(merged), estimates(expected), strict=True):
        for name in two:
            for left, right in zip(one[name], two[name], strict=True):
                assert left == (None if right is None else pytest.approx(right, rel=1e-9, abs=1e-9)), name


def test_later_batches_go_on_from_earlier_ones() -> None:
    """Each batch is asked for when the one before it is in, so that it alone knows of its draws."""
    scores = np.random.default_rng(0).normal(0, 4, (6, 3, 5))
    whole = empty((6, 3, 5))
    parts: list[tally.Tally] = []
    for first, last in ((0, 2), (2, 4), (4, 6)):
        parts.append(add(empty((last, 3, 5)), scores, slice(first, last), slice(0, 3)))
        add(whole, scores, slice(first, last), slice(0, 3))
    for order in (parts, parts[::-1], [parts[1], parts[2], parts[0]]):
        merged = merge(order)
        assert merged.shape == whole.shape
        assert estimates(tally.columns(merged, 6, True)) == estimates(tally.columns(whole, 6, True))
        assert counts(tally.columns(merged, 6, True)) == counts(tally.columns(whole, 6, True))


def test_parts_are_not_changed() -> None:
    scores = np.random.default_rng(0).normal(0, 4, (2, 3, 5))
    parts = [add(empty((2, 3, 5)), scores, slice(draw, draw + 1), slice(0, 3)) for draw in range(2)]
    first = merge(parts)
    assert estimates(tally.columns(first, 2, True)) == estimates(tally.columns(merge(parts), 2, True))
    tally.add(first, slice(0, 2), slice(0, 3), scores.copy())
    alone = merge(parts[:1])
    tally.add(alone, slice(0, 2), slice(0, 3), scores.copy())
    assert parts[0].score_sums["pairs"].tolist() == [15, 0]
    assert parts[0].counts["logits", 0].sum() == 15


def test_parts_that_have_seen_nothing_change_nothing() -> None:
    scores = np.random.default_rng(0).normal(0, 4, (2, 3, 5))
    seen = add(empty((2, 3, 5)), scores, slice(0, 2), slice(0, 3))
    expected = estimates(tally.columns(seen, 2, True))
    for parts in ([empty((2, 3, 5)), seen], [seen, empty((2, 3, 5))]):
        assert estimates(tally.columns(merge(parts), 2, True)) == expected


@pytest.mark.parametrize(
    "change",
    [{"rules": RULES[:1]}, {"centre": 1.0}, {"band": 11.0}, {"band": math.nan}, {"axis": Axis(-1.0, 1.0, 128)}],
    ids=str,
)
def test_different_questions_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="different questions"):
        merge([empty((2, 3, 5)), empty((2, 3, 5), **change)])
    with pytest.raises(ValueError, match="different questions"):
        merge([empty((2, 3, 5)), empty((2, 3, 6))])
    with pytest.raises(ValueError, match="nothing"):
        merge([])


def test_a_band_that_does_not_exist_agrees_with_another() -> None:
    assert math.isnan(merge([empty((2, 3, 5), band=math.nan), empty((2, 3, 5), band=math.nan)]).band)
