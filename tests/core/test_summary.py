"""The declared statistics that a tally makes of its sums, and standard errors, also of skewed values and medians."""

import math
from typing import Any

import numpy as np
import pytest
import textbook
from attn_tui.core.attention.softmax import RowStatistics
from attn_tui.core.captures.capture import sample_path
from attn_tui.core.captures.heads import file_rule, measure_head
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics import reading, summary, tally
from attn_tui.core.statistics.catalogue import DEAD, ONE_HOT, STATISTIC, STATISTICS
from attn_tui.core.statistics.histogram import BinAxis
from attn_tui.core.statistics.measurement import Estimate, column_names, setting_names
from attn_tui.core.statistics.summary import estimates_of_norms, skewness_factors
from cases import for_each

MULTIPLIER = 0.25
MISSING = Estimate(None, None)


@for_each(
    ("a", "b", "names"),
    [
        ("unscaled", "sqrt_d_k", "unscaled|scaled"), ("sqrt_d_k", "d_k", "1/√d_k|1/d_k"), ("unscaled", "none", None),
        ("unscaled", "cosine_10", "unscaled|scaled"), ("cosine_10", "sqrt_d_k", "10·cos|1/√d_k"),
        ("none", "cosine_10", "unscaled, q and k as drawn|10·cos"), ("cosine_10", "none", "10·cos|unscaled"),
        ("sqrt_d_k", "rms_none", "1/√d_k|rms × 1"), ("precision=bfloat16", "sqrt_d_k", "bfloat16|float32"),
        ("scale=d_k,precision=bfloat16", "sqrt_d_k", "1/d_k, bfloat16|1/√d_k, float32"),
        ("unscaled,precision=bfloat16", "sqrt_d_k", "unscaled, bfloat16|1/√d_k, float32"),
    ],
)  # fmt: skip
def test_the_names_of_both_columns_say_what_tells_them_apart(a: str, b: Any, names: str | None) -> None:
    p = Parameters(against=a, scale=b, n_keys=4, n_queries=4, batch=2)
    expected = ["unscaled"] * 2 if names is None else names.split("|")
    assert setting_names(p) == expected
    assert column_names(run(p, full=False).columns) == expected


def some_scores(draws: int = 6, rows: int = 5, keys: int = 7) -> Any:
    """Scores with a mean, a part shared by each draw and a part shared by each row."""
    rng = np.random.default_rng(0)
    return sum(rng.normal(1, 2, shape) for shape in ((draws, 1, 1), (draws, rows, 1), (draws, rows, keys)))


def estimates(scores: Any, hidden: Any = None, unbiased: bool = True) -> Any:
    kept = tally.Tally(
        tally.Shape(*scores.shape), [("custom", MULTIPLIER)], 0.0, 3 * scores.std(), BinAxis(-40.0, 40.0, 64)
    )
    draws, rows, _ = scores.shape
    tally.add(kept, slice(0, draws), slice(0, rows), scores.copy(), hidden)
    return reading.columns(kept, draws, unbiased)[0].measured


def softmax(logits: Any) -> Any:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def by_definition(scores: Any) -> dict[str, float]:
    """The statistics of logits and weights by their definitions, of these scores alone."""
    z = MULTIPLIER * scores
    p, seen = softmax(z), np.full(z.shape[1:], True)
    jacobian = np.eye(z.shape[-1]) * p[..., np.newaxis] - p[..., np.newaxis] * p[..., np.newaxis, :]
    of = textbook.Attention(scores, z, p, np.zeros(p.shape[:2]), seen, jacobian, z, z)
    found = textbook.statistics(of, (0.0, z.std())) | {"logit_min": z.min(), "logit_max": z.max()}
    return {name: value for name, value in found.items() if name != "sink_weight"}


def test_every_statistic_agrees_with_its_definition() -> None:
    scores = 10 * some_scores()  # steep enough for one-hot and dead rows
    expected = by_definition(scores)
    measured = estimates(scores, unbiased=False)
    assert expected["one_hot_rows"] > 0
    assert expected["dead_rows"] > 0
    assert list(measured) == [statistic.name for statistic in STATISTICS]
    for name, value in expected.items():
        assert measured[name].value == pytest.approx(value, rel=1e-11), name


def test_extremes_alone_have_no_standard_error() -> None:
    measured = estimates(some_scores())
    assert measured["logit_min"].stderr is measured["logit_max"].stderr is None
    others = by_definition(some_scores()).keys() - {"logit_min", "logit_max"}
    assert all(measured[name].stderr is not None for name in others)


def test_the_variance_is_the_unbiased_u_statistic_over_draws() -> None:
    scores = MULTIPLIER * some_scores()
    draws = len(scores)
    means = scores.mean(axis=(1, 2))
    products = (means.sum() ** 2 - np.square(means).sum()) / (draws * (draws - 1))  # of pairs of different draws
    expected = np.square(scores).mean() - products
    assert estimates(some_scores())["logit_variance"].value == pytest.approx(expected, rel=1e-12)


def test_means_have_the_textbook_standard_error() -> None:
    scores = some_scores()
    weights = softmax(MULTIPLIER * scores)
    for name, of_draws in {
        "logit_mean": MULTIPLIER * scores.mean(axis=(1, 2)),
        "logit_variance_within_row": MULTIPLIER**2 * scores.var(axis=-1).mean(axis=1),
        "max_weight": weights.max(axis=-1).mean(axis=1),
    }.items():
        value, stderr = estimates(scores)[name]
        assert value == pytest.approx(of_draws.mean(), rel=1e-12)
        assert stderr == pytest.approx(of_draws.std(ddof=1) / math.sqrt(len(scores)), rel=1e-10)


def test_one_draw_has_values_but_no_standard_errors() -> None:
    scores = some_scores(draws=1)
    for unbiased in (True, False):
        measured = estimates(scores, unbiased=unbiased)
        for name, value in by_definition(scores).items():
            assert measured[name].value == pytest.approx(value, rel=1e-11), name
            assert measured[name].stderr is None


def test_scores_that_are_equal_have_no_deviation_though_sums_of_float32_are_rounded() -> None:
    for equal in (1 / 3, 7.7):
        scores = np.full((1, 1000), equal, np.float32)
        powers = summary.power_sums(scores, 1.0, np.empty_like(scores), np.empty_like(scores))
        found = summary.row_moments(np.array([[1000.0]]), powers[:, np.newaxis], 0.0, 2.0**-23)
        assert found.m2 == found.m3 == found.m4 == 0
    for equal in range(1, 50):
        measured = estimates(np.full((3, 4, 5), 0.1 * equal))
        assert measured["logit_std"].value == pytest.approx(0, abs=1e-6)
        assert measured["logit_excess_kurtosis"] == MISSING


def test_rows_at_a_threshold_are_neither_one_hot_nor_dead() -> None:
    at = RowStatistics(*np.full((5, 2, 3), ONE_HOT), jacobian_norm_squared=np.full((2, 3), DEAD**2))
    sums = summary.sums_of_rows(at, np.full((2, 3), 4.0))
    assert not sums["one_hot"].any()
    assert not sums["dead"].any()


def test_equal_weights_of_many_keys_are_not_dead() -> None:
    """From 10,000 keys on, ‖J‖_F of equal weights, √(n − 1)/n, is below the threshold."""
    for keys, value in ((9_000, 0), (16_384, None)):
        assert estimates(np.zeros((1, 2, keys)))["dead_rows"].value == value


def test_undefined_statistics_are_missing() -> None:
    of_one_key = estimates(some_scores(keys=1))
    assert of_one_key["entropy_fraction"] == MISSING
    assert of_one_key["entropy"] == Estimate(0.0, 0.0)
    assert of_one_key["row_mean_share"].value == pytest.approx(1)
    for equal in (0.0, 0.1, -1e4):
        measured = estimates(np.full((3, 4, 5), equal))
        assert measured["logit_excess_kurtosis"] == MISSING
        assert measured["row_mean_share"] == MISSING
        assert measured["logit_variance"] == pytest.approx((0, 0), abs=1e-12 * equal**2)
        assert measured["saturation"] == (0, 0)
        assert measured["entropy_fraction"] == pytest.approx((1, 0))


def test_without_visible_pairs_every_statistic_is_missing() -> None:
    scores = some_scores()
    assert set(estimates(scores, np.ones(scores.shape, bool)).values()) == {MISSING}


def test_rows_that_see_no_key_are_left_out() -> None:
    for scores in (some_scores(), some_scores() + 30):
        hidden = np.zeros(scores.shape, bool)
        hidden[:, 2] = True
        with_dead, without = estimates(scores, hidden), estimates(np.delete(scores, 2, axis=1))
        for name in without.keys() - {"logit_within_3sd"}:  # its band is that of all scores
            if not STATISTIC[name].omissible:
                assert with_dead[name].value == pytest.approx(without[name].value, rel=1e-9), name


def test_shares_of_rows_count_only_rows_that_see_two_keys() -> None:
    """A causal row with one visible key is one-hot and dead at any scale, whatever the head does."""
    scores = np.zeros((2, 41, 41))
    scores[:, 1, 0] = 100.0
    hidden = np.arange(41) > np.arange(41)[:, np.newaxis]
    measured = estimates(scores, hidden)
    for name in ("one_hot_rows", "dead_rows"):
        assert measured[name].value == pytest.approx(1 / 40, rel=1e-12)
    assert measured["max_weight"].value == pytest.approx((2 + np.sum(1 / np.arange(3, 42))) / 41)  # of all 41 rows
    alone = estimates(scores, np.arange(41) > np.zeros((41, 1)))
    for name in ("one_hot_rows", "dead_rows", "saturation", "entropy_fraction"):
        assert alone[name] == MISSING
    assert alone["max_weight"].value == 1


def test_the_saturation_ratio_is_over_the_threshold_of_each_row() -> None:
    scores = np.array([[[3.0, -50.0, 9.0], [1.0, -1.0, 50.0], [6.0, 0.0, 0.0]]]) / MULTIPLIER
    hidden = np.arange(3) > np.arange(3)[:, np.newaxis]
    of_rows = [1 / math.sqrt(2 * math.log(2)), math.sqrt(8) / math.sqrt(2 * math.log(3))]
    assert estimates(scores, hidden)["saturation"].value == pytest.approx(sum(of_rows) / 2, rel=1e-12)


def test_the_first_key_is_compared_with_a_uniform_row() -> None:
    scores = np.zeros((1, 2, 4))
    scores[0, 0, 0] = math.log(3) / MULTIPLIER  # weights 1/2, 1/6, 1/6, 1/6
    assert estimates(scores)["first_key_over_uniform"].value == pytest.approx((1 / 2 + 1 / 4) / 2 / (1 / 4))


def test_every_declared_statistic_is_computed_by_some_measurement() -> None:
    capture = open_capture(sample_path())
    layer = capture.layers[0]
    measurements = [
        run(Parameters(d_k=16, n_keys=12, n_queries=8, batch=4, sink="logit")),
        measure_head(capture, layer, 0, [file_rule(layer)]),
    ]
    columns = [column for measurement in measurements for column in measurement.columns]
    computed = {name for column in columns for name, found in column.measured.items() if found.value is not None}
    missing = [statistic.name for statistic in STATISTICS if statistic.name not in computed]
    assert not missing, f"declared in core/statistics/catalogue.py, but no measurement computes: {', '.join(missing)}"


def test_names_and_labels_of_statistics_are_unique() -> None:
    assert len(STATISTIC) == len(STATISTICS) == len({statistic.label for statistic in STATISTICS})


def test_a_mean_of_skewed_values_has_a_wider_error() -> None:
    """Of 99 zeros and a one, the squared skewness is 98²/99; normal values have 6·98/(101·103) of it by chance."""
    values = np.zeros(100)
    values[7] = 1
    skewness = math.sqrt(98**2 / 99 - 6 * 98 / (101 * 103))
    z = 1.96  # the interval reaches z + γ(2z² + 1)/(6√m): Johnson 1978
    expected = 1 + skewness * (2 * z * z + 1) / (6 * z * math.sqrt(100))
    assert skewness_factors(values) == pytest.approx(expected, rel=1e-12)
    assert skewness_factors(1e-200 * values) == pytest.approx(expected, rel=1e-12)
    assert skewness_factors(np.arange(100.0)) == 1


def test_statistics_of_norms() -> None:
    found = estimates_of_norms(np.array([[3.0, 1.0, 2.0, 10.0], [0.0, math.nan, 0.0, 5.0]]))
    values = {name.removeprefix("grad_q_"): each.value for name, each in found.items()}
    assert values == pytest.approx({"median": 2, "mean": 3, "rms": math.sqrt(139 / 7), "top1_share": 100 / 139})


@pytest.mark.parametrize(("rows", "top"), [(1, 1), (99, 1), (100, 1), (101, 2), (250, 3)])
def test_one_per_cent_of_rows_is_rounded_up(rows: int, top: int) -> None:
    norms = np.random.default_rng(0).permutation(np.sqrt(np.arange(1.0, rows + 1)))
    expected = np.arange(rows - top + 1, rows + 1).sum() / np.arange(1, rows + 1).sum()
    assert estimates_of_norms(norms[np.newaxis])["grad_q_top1_share"].value == pytest.approx(expected)


def test_norms_that_are_all_zero_have_no_share() -> None:
    with np.errstate(all="raise"):
        found = estimates_of_norms(np.zeros((2, 5), np.float32))
    assert found["grad_q_top1_share"] == (None, None)
    assert found["grad_q_rms"] == (0, 0)


def test_the_share_of_the_top_rows_has_an_error_for_the_part_of_a_row_beyond_one_per_cent() -> None:
    """Two equal draws of 90 rows: 2 rows are 1.1 % of 180, a fifth of a row too many."""
    norms = np.ones((2, 90))
    norms[:, 3] = 5
    total = 2 * (89 + 25)
    share = estimates_of_norms(norms)["grad_q_top1_share"]
    assert share.value == pytest.approx(50 / total)
    assert share.stderr == pytest.approx(0.2 * 25 / total)


def test_errors_of_medians_leave_out_one_of_sixteen_groups_of_draws() -> None:
    norms = np.random.default_rng(0).lognormal(size=(32, 50))
    first, *others = (
        estimates_of_norms(norms[[*order, *range(3, 32)]])["grad_q_median"].stderr
        for order in ((0, 1, 2), (1, 0, 2), (0, 2, 1))
    )
    assert [other == first for other in others] == [True, False]
