"""Where softmax saturates, in the plot of a sweep, at its cursor and under its table."""

import math
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import SweepPoint
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.sweep import SweptPoint
from attn_tui.core.statistics.catalogue import STATISTIC
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.tables.lab import SweepResult
from attn_tui.core.theory.predict import predict
from attn_tui.tui.panes.sweep.curve_view import SweepCurve, contents_of, reading_lines, sweep_plot
from attn_tui.tui.panes.sweep.requests import landmarks_of
from attn_tui.tui.panes.sweep.width_table import axis_words, landmark_lines
from attn_tui.tui.views.glyphs import ASCII, UNICODE, Glyphs
from attn_tui.tui.views.results.sweep import sweep_lines, sweep_sentences
from attn_tui.tui.views.results.table import TableContents
from cases import for_each, present
from line_texts import text_of

SMALL = Parameters(n_keys=4, n_queries=8, batch=4)
ENTROPY = STATISTIC["entropy"]


def marks(p: Parameters, d_ks: tuple[int, ...]) -> list[tuple[float, str]]:
    """The marks of the plot over these d_k."""
    swept = SweepCurve(p, d_ks, {d_k: predict(replace(p, d_k=d_k)).columns for d_k in d_ks})
    plot = present(sweep_plot(swept, STATISTIC["entropy"], False, UNICODE))
    return [(mark.x, mark.words) for mark in plot.marks]


def test_the_plot_marks_where_softmax_saturates_and_thaws() -> None:
    """Four keys saturate at √d_k 1.665; 8/d_k recovers them after d_k 23; 1/ln d_k is at 2 and from 36 up."""
    unscaled = (3, "unscaled softmax saturates")
    assert marks(SMALL, (1, 100)) == [unscaled]
    assert marks(replace(SMALL, scale="8/d"), (1, 100)) == [unscaled, (24, "scaled softmax recovers")]
    both = [(3, "scaled softmax recovers"), (36, "scaled softmax saturates")]
    assert marks(replace(SMALL, scale="log_d_k"), (2, 100)) == [unscaled, *both]
    assert marks(replace(SMALL, scale="log_d_k"), (4, 30)) == []
    assert marks(replace(SMALL, scale="none"), (1, 100)) == [unscaled]


def test_the_plot_marks_where_measured_deviations_cross_if_no_exact_ones_are_known() -> None:
    p = Parameters(n_keys=8, n_queries=32, batch=8, softcap=9.0, components="uniform", scale="8/d")
    d_ks, points = (1, 4, 16), dict[int, SweptPoint]()
    for d_k in d_ks:
        at = replace(p, d_k=d_k)
        points[d_k] = SweptPoint(SweepPoint(run(at, full=False), reached=True), predict(at), [{}, {}])
    swept = SweepCurve(p, d_ks, {d_k: point.prediction.columns for d_k, point in points.items()}, points)
    plot = present(sweep_plot(swept, STATISTIC["entropy"], False, UNICODE))
    assert [(mark.x, mark.words) for mark in plot.marks] == [
        (8, "unscaled softmax saturates"),
        (8, "scaled softmax recovers"),
    ]


def test_a_plot_has_room_for_error_bars_in_per_cent() -> None:
    measured, share = run(SMALL), STATISTIC["one_hot_rows"]
    columns = [replace(c, measured={**c.measured, share.name: Estimate(0.5, 0.7)}) for c in measured.columns]
    at = SweepPoint(replace(measured, columns=tuple(columns)), reached=True)
    swept = SweepCurve(SMALL, (2, 64), points={SMALL.d_k: SweptPoint(at, predict(SMALL), [{}, {}])})
    plot = present(sweep_plot(swept, share, False, UNICODE))
    assert [(point.y, point.stderr) for series in plot.series for point in series.points] == [(50, 70)] * 2
    assert plot.y.low <= -20 < 120 <= plot.y.high


def readings(p: Parameters, width: int = 160) -> list[str]:
    contents = contents_of(SweptPoint(SweepPoint(run(p, full=False), reached=True), predict(p), ({}, {})))
    lines = reading_lines(p, contents, STATISTIC["entropy"], width, UNICODE)
    return [text_of(line).rstrip() for line in lines]


def test_beside_rounded_numbers_the_reading_says_that_the_saturated_d_k_are_those_of_exact_arithmetic() -> None:
    p = Parameters(64, 16, 8, 4, precision="float16", arithmetic="eager", std_q=100.0, std_k=100.0, sink="logit")
    for said in readings(replace(p, scale="none"), 160):
        assert said.endswith("NaN; saturated at every d_k in exact arithmetic")
    for said in readings(replace(p, scale="none"), 80):
        assert "every d_k" not in said or said.endswith("in exact arithmetic")


def test_the_reading_at_the_cursor_says_the_status_and_where_softmax_is_saturated() -> None:
    p = Parameters(d_k=4, n_keys=128, n_queries=8, batch=4, scale="8/d")
    first, second = readings(p)
    assert first.endswith("healthy; saturated from d_k 10 up")
    assert second.endswith("  saturated at d_k 1–6")
    first, second = readings(replace(p, d_k=16))
    assert first.endswith("  saturated from d_k 10 up")
    assert second.endswith("healthy; saturated at d_k 1–6")
    assert readings(replace(p, softcap=50.0, components="uniform"))[1].endswith("saturated")
    assert readings(p, 90)[1].endswith("saturated")
    assert readings(p, 109)[0].endswith("; saturated from d_k 10")
    assert all(len(line) <= 70 for line in readings(p, 70))


@for_each(
    ("change", "sentence"),
    [
        ({}, "Unscaled, softmax is saturated from d_k 3 up; scaled, it stays below saturation at every d_k."),
        ({"scale": "8/d"}, "Unscaled, softmax is saturated from d_k 3 up; scaled, it is saturated at d_k 1–23."),
        (
            {"scale": "log_d_k"},
            "Unscaled, softmax is saturated from d_k 3 up; scaled, it is saturated at d_k 2 and from 36 up.",
        ),
        (
            {"scale": "cosine_10"},
            "Unscaled, softmax stays below saturation at every d_k; scaled, it is saturated at d_k 1–36.",
        ),
        (
            {"scale": "cosine_10", "against": "none"},
            "Unscaled, q and k as drawn, softmax is saturated from d_k 3 up; 10·cos, it is saturated at d_k 1–36.",
        ),
        ({"scale": "cosine_10", "correlation": 0.5}, None),
        ({"n_keys": 1}, None),
        ({"mechanism": "additive"}, None),
        (
            {"mechanism": "cosine"},
            "Unscaled, softmax stays below saturation at every d_k; scaled, it stays below saturation at every d_k.",
        ),
    ],
)
def test_the_sentence_under_a_table_has_the_same_words(change: dict[str, Any], sentence: str | None) -> None:
    p = replace(SMALL, d_k=8, **change)
    found = [(SweepPoint(run(p, full=False), reached=True), predict(p))]
    assert sweep_sentences(SweepResult(p, (8,), found), [({}, {})]) == ([sentence] if sentence else [])


def test_the_sentence_says_that_it_is_of_exact_arithmetic_if_measured_numbers_are_not() -> None:
    p = replace(SMALL, d_k=8, precision="bfloat16")
    found = [(SweepPoint(run(p, full=False), reached=True), predict(p))]
    assert sweep_sentences(SweepResult(p, (8,), found), [({}, {})]) == [
        "Unscaled, softmax is saturated from d_k 3 up in exact arithmetic; scaled, it stays below saturation at "
        "every d_k in exact arithmetic.",
        "Exact values are those of exact arithmetic, whatever the number format.",
    ]


def test_the_sentences_tell_of_nan_rows_and_lost_weight() -> None:
    p = replace(SMALL, d_k=64, n_keys=32, precision="float16", arithmetic="eager")
    quiet, loud = p, replace(p, std_q=100.0, std_k=45.0)
    found = [(SweepPoint(run(each, full=False), reached=True), predict(each)) for each in (quiet, loud)]
    most = max(column.measured["nan_rows"].value or 0 for column in found[1][0].measurement.columns)
    said = sweep_sentences(SweepResult(p, (64,), found), [({}, {}), ({}, {})])
    assert said[-1] == f"Up to {100 * most:.0f} % of rows are NaN (logits overflow) and not counted."
    assert not any("NaN" in each for each in sweep_sentences(SweepResult(p, (64,), found[:1]), [({}, {})]))
    measurement = found[0][0].measurement
    columns = [
        replace(column, measured={**column.measured, "weight_lost": Estimate(lost, 0.0)})
        for column, lost in zip(measurement.columns, (0.04, 0.009), strict=True)
    ]
    lossy = SweepPoint(replace(measurement, columns=tuple(columns)), reached=True)
    said = sweep_sentences(SweepResult(p, (64,), [(lossy, found[0][1])]), [({}, {})])
    assert said[-1] == "Rounding loses up to 4.0 % of the weight."


STAYS, ALWAYS = "stays below saturation at all these d_k", "is saturated at all these d_k"


@pytest.mark.parametrize(
    ("change", "unscaled", "scaled"),
    [
        ({"components": "uniform"}, "is saturated at 16 of these d_k", "is saturated at 1–4 of these d_k"),
        ({"mean_k": 20.0}, STAYS, STAYS),
        ({"mean_k": 0.1, "std_k": 9.0}, ALWAYS, ALWAYS),
    ],
)
def test_measured_deviations_tell_where_softmax_is_saturated_if_no_exact_ones_are_known(
    change: dict[str, Any], unscaled: str, scaled: str
) -> None:
    p = replace(Parameters(n_keys=8, n_queries=32, batch=8, softcap=9.0, scale="8/d"), **change)
    points = [replace(p, d_k=d_k) for d_k in (1, 4, 16)]
    found = [(SweepPoint(run(each, full=False), reached=True), predict(each)) for each in points]
    assert sweep_sentences(SweepResult(p, (1, 4, 16), found), [({}, {}), ({}, {}), ({}, {})]) == [
        f"Unscaled, softmax {unscaled}; scaled, it {scaled}."
    ]


def test_words_can_be_spelled_in_ascii_and_histograms_say_what_they_are() -> None:
    exact = present(predict(replace(SMALL, d_k=4, scale="8/d")).columns[1].saturation)
    assert [ASCII.say(words) for words in exact.words()][:2] == ["saturated at d_k 1-23", "saturated at d_k 1-23"]
    swept = swept_over((16, 64))
    assert text_of(landmark_lines(swept, ENTROPY, 16, 120, 6, UNICODE)[0]).count("row entropy") == 2
    words = UNICODE.say(axis_words(swept, ENTROPY, 120, UNICODE))
    assert words == f"row entropy from 0 to {math.log(SMALL.n_keys):.3g}"
    assert axis_words(swept, ENTROPY, 40, UNICODE) == ""


@pytest.mark.parametrize(("width", "place"), [(36, 29), (60, 41), (160, 41)])  # after the longest title that fits
def test_the_reading_at_the_cursor_has_its_value_on_every_screen(width: int, place: int) -> None:
    p = replace(SMALL, d_k=64)
    measured = run(p).columns
    for line, column in zip(readings(p, width), measured, strict=True):
        value = present(column.measured["entropy"].value)
        assert line.find(f"{value:.3f}"[:4]) == place


def swept_over(d_ks: tuple[int, ...]) -> SweepCurve:
    points = dict[int, SweptPoint]()
    for d_k in d_ks:
        at = replace(SMALL, d_k=d_k)
        points[d_k] = SweptPoint(SweepPoint(run(at), reached=True), predict(at), [{}, {}])
    return SweepCurve(SMALL, d_ks, {d_k: point.prediction.columns for d_k, point in points.items()}, points)


def test_a_printed_table_has_errors_as_soon_as_they_fit_and_else_several_tables() -> None:
    swept = swept_over((8, 64))
    points = [(point.point, point.prediction) for point in swept.points.values()]
    asked = SweepResult(SMALL, (8, 64), points, statistics=("entropy", "max_weight", "one_hot_rows"))
    shown: dict[int, list[str]] = {}
    for width in range(30, 170):
        shown[width] = [text_of(line).rstrip() for line in sweep_lines(asked, [({}, {}), ({}, {})], width, UNICODE)]
        tables = [table for table in "\n".join(shown[width]).split("\n\n") if table]
        assert max(map(len, shown[width])) <= max(width, 60)  # one statistic takes no less
        assert all(len(table.splitlines()) == 5 for table in tables)
        labels = [STATISTIC[name].short_label for name in asked.statistics]
        assert [sum(label in table for table in tables) for label in labels] == [1] * len(labels)
        assert all(line.split()[0] in ("8", "64") for table in tables for line in table.splitlines()[3:])
    with_errors = [width for width, lines in shown.items() if "±" in "".join(lines)]
    assert with_errors == [*range(with_errors[0], 170)]
    assert max(map(len, shown[with_errors[0]])) == with_errors[0]
    assert len(shown[with_errors[0]]) == 5
    more = sweep_lines(replace(asked, statistics=()), [({}, {}), ({}, {})], 100, UNICODE)
    assert [len(text_of(line).rstrip()) <= 100 for line in more] == [True] * 5
    assert sweep_lines(replace(asked, points=()), [], 80, UNICODE) == []


@pytest.mark.parametrize("height", [4, 6, 20])
def test_the_table_counts_the_rows_that_it_hides(height: int) -> None:
    d_ks = (16, 32, 64, 80, 96, 128, 192, 256)
    lines = [text_of(line) for line in landmark_lines(swept_over(d_ks), ENTROPY, 16, 78, height, UNICODE)]
    shown = [line for line in lines[1:] if line.replace("▌", " ").split()[0].isdigit() and "more rows" not in line]
    hidden = [int(line.split()[0]) for line in lines if "more rows" in line]
    assert len(shown) + sum(hidden) == len(d_ks)


@for_each("width", range(40, 150, 3))
def test_both_columns_of_the_table_are_whole_and_have_the_same_width(width: int) -> None:
    for line in landmark_lines(swept_over((16, 64)), ENTROPY, 16, width, 20, UNICODE)[1:]:
        cells = {role: sum(len(text) for text, each in line if each == role) for role in ("unscaled", "scaled")}
        assert cells["unscaled"] == cells["scaled"] > 0


@pytest.mark.parametrize(("glyphs", "key"), [(UNICODE, "⠒ exact"), (ASCII, "_ exact")], ids=["unicode", "ascii"])
def test_the_exact_value_stands_beside_the_sign_of_its_curve(glyphs: Glyphs, key: str) -> None:
    p = replace(SMALL, d_k=8)
    here = TableContents(run(p).columns, predict(p).columns, [{}, {}])
    for line in reading_lines(p, here, ENTROPY, 80, glyphs):
        assert text_of(line).count(key) == 1


def test_widths_of_models_and_powers_of_two_of_keys_get_a_row() -> None:
    assert landmarks_of("n_keys", (2, 3, 4, 100, 128)) == [2, 4, 128]
    assert 64 in landmarks_of("d_k", (63, 64))
    assert 63 not in landmarks_of("d_k", (63, 64))
