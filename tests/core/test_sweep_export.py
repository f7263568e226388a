"""Sweeps as JSON, CSV and Markdown: every number is beside its own column and its own exact value."""

import csv
import io
import json
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import Point
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Measurement
from attn_tui.core.tables.lab import SweepResult, report_table, sweep_table
from attn_tui.core.tables.statistics import theory_title
from attn_tui.core.tables.table import written
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.prediction import Prediction, status_given
from attn_tui.tui.panes.sweep.print_table import sweep_sentences
from sweeps import points

ASKED = Parameters(n_keys=128, n_queries=8, batch=4, scale="8/d")
D_KS = (4, 16)


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    found = [(point, predict(point.parameters)) for point in points(ASKED, D_KS)]
    return SweepResult(ASKED, D_KS, found, "attn-tui sweep")


def rows(sweep: SweepResult) -> list[dict[str, str]]:
    """The lines of CSV."""
    return [*csv.DictReader(io.StringIO(written(sweep_table(sweep), "csv")))]


def in_words(number: float | None, factor: int) -> str:
    if number == 0 and factor == 100:
        return "none"
    return "—" if number is None else f"{factor * number:.4g}"


def test_markdown_has_each_measured_value_beside_the_exact_one_of_its_column(swept: SweepResult) -> None:
    lines = [line for line in written(sweep_table(swept), "markdown").splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert header[:5] == ["d_k", *(f"entropy, {title}" for title in ("unscaled", "theory", "scaled", "theory"))]
    for row, (point, prediction) in zip(rows, swept.points, strict=True):
        expected = [str(point.parameters.d_k)]
        for name in swept.shown:
            for column, exact in zip(point.measurement.columns, prediction.columns, strict=True):
                factor = 100 if name in ("max_weight", "dead_rows", "one_hot_rows") else 1
                expected += [in_words(value, factor) for value in (column.measured[name].value, exact.values[name])]
        assert [cell.split()[0] for cell in row] == expected
    at = [number for number, title in enumerate(header) if title == "logit std, theory"]
    assert [float(rows[0][number]) for number in at] == [2.0, 4.0]  # √4, and 8/4 times that


def test_csv_has_each_exact_value_in_the_line_of_its_column(swept: SweepResult) -> None:
    for row in rows(swept):
        if row["statistic"] == "logit_variance":
            d_k, c = float(row["d_k"]), float(row["multiplier"])
            assert c == (1 if row["scale"] == "none" else 8 / d_k)
            assert float(row["theory"]) == pytest.approx(c * c * d_k)


def test_rounded_formats_have_their_lost_weight_and_nan_rows() -> None:
    p = replace(ASKED, precision="float16", arithmetic="eager", std_q=100.0, std_k=90.0)
    found = SweepResult(p, D_KS, [(point, predict(point.parameters)) for point in points(p, D_KS)], "attn-tui sweep")
    *_, last = json.loads(written(sweep_table(found), "json"))["points"]
    for column, measured in zip(last["columns"], found.points[-1][0].measurement.columns, strict=True):
        for name in ("weight_lost", "nan_rows"):
            assert column["measured"][name]["value"] == measured.measured[name].value
        assert column["measured"]["nan_rows"]["value"] > 0
        assert column["status"] == "NaN"
    assert {"weight_lost", "nan_rows"} <= {row["statistic"] for row in rows(found)}
    assert not {"weight_lost", "nan_rows"} & {*replace(found, parameters=ASKED).written}
    one = replace(p, against="none,precision=float32,arithmetic=fused")
    assert {"weight_lost", "nan_rows"} <= {*replace(found, parameters=one).written}


def test_json_says_where_softmax_saturates_and_each_column_s_status(swept: SweepResult) -> None:
    found: Any = json.loads(written(sweep_table(swept), "json"))
    for shown, (point, prediction) in zip(found["points"], swept.points, strict=True):
        for column, exact, measured in zip(
            shown["columns"], prediction.columns, point.measurement.columns, strict=True
        ):
            assert column["status"] == status_given(exact.saturation, measured.measured)
            assert column["saturation"]["ratio"] == column["saturation"]["std"] / column["saturation"]["threshold"]
        assert [column["saturation"]["saturated_at"] for column in shown["columns"]] == [[[10, 16_384]], [[1, 6]]]
    statuses = [[column["status"] for column in point["columns"]] for point in found["points"]]
    assert statuses == [["healthy", "saturated"], ["saturated", "healthy"]]


def test_the_status_needs_no_requested_statistic(swept: SweepResult) -> None:
    few = SweepResult(ASKED, D_KS, swept.points, "", statistics=["entropy"])
    [first, _] = json.loads(written(sweep_table(few), "json"))["points"]
    assert [column["status"] for column in first["columns"]] == ["healthy", "saturated"]
    assert list(first["columns"][0]["measured"]) == ["entropy"]


def test_without_a_known_law_saturation_is_absent_and_the_status_is_measured() -> None:
    capped = Parameters(d_k=64, n_keys=32, n_queries=8, batch=4, softcap=50.0, components="uniform")
    found: list[tuple[Point, Prediction]] = [(point, predict(point.parameters)) for point in points(capped, (64,))]
    assert isinstance(found[0][0].measurement, Measurement)
    [point] = json.loads(written(sweep_table(SweepResult(capped, (64,), found, "")), "json"))["points"]
    assert [column["saturation"] for column in point["columns"]] == [None, None]
    assert [column["status"] for column in point["columns"]] == ["saturated", "healthy"]


def test_exact_values_beside_rounded_ones_are_named_in_every_format() -> None:
    asked = Parameters(d_k=4, n_keys=8, n_queries=4, batch=2, precision="bfloat16", arithmetic="eager")
    for p, title in ((asked, "theory (exact arithmetic)"), (replace(asked, precision="float32"), "theory")):
        found = SweepResult(p, (4,), [(point, predict(p)) for point in points(p, (4,))], "attn-tui sweep")
        assert f"| entropy, {title} |" in written(sweep_table(found), "markdown")
        assert json.loads(written(sweep_table(found), "json"))["theory_arithmetic"] == "exact"
        assert {row["theory_arithmetic"] for row in rows(found)} == {"exact"}
        assert f"| {title} |" in written(report_table(run(p), predict(p)), "markdown")
        sentences = sweep_sentences(found, [])
        assert ("Exact values are those of exact arithmetic, whatever the number format." in sentences) == (
            p == asked
        )
    assert theory_title([replace(asked, precision="float32"), asked]) == "theory (exact arithmetic)"
