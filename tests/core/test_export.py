"""Reports, heads and sweeps as JSON, CSV and Markdown."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from attn_tui.core import VERSION
from attn_tui.core.captures.capture import CaptureContents, HeadSubject, sample_path
from attn_tui.core.captures.head import CaptureFile
from attn_tui.core.captures.heads import measure_head, named_rule
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import SweepPoint
from attn_tui.core.message import plain
from attn_tui.core.parameters import FIELDS, Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.core.statistics.measurement import Column, Estimate, Measurement
from attn_tui.core.statistics.status import status
from attn_tui.core.tables.formats import csv_text
from attn_tui.core.tables.heads import Inspected, inspect_table
from attn_tui.core.tables.lab import SweepResult, report_table, sweep_table
from attn_tui.core.tables.statistics import theory_title
from attn_tui.core.tables.table import Table, written
from attn_tui.core.theory.predict import predict
from attn_tui.core.theory.prediction import PredictedColumn, Prediction, status_given
from attn_tui.core.theory.saturation import saturation
from attn_tui.tui.views.results.sweep import sweep_sentences
from cases import for_each
from sweeps import points

ODD = Parameters(d_k=7, n_keys=5, n_queries=3, batch=2, scale="custom", multiplier=0.1, mean_q=-0.25, seed=3)
exact_values = cache(lambda: predict(ODD))
NAMES = [statistic.name for statistic in STATISTICS]


@pytest.fixture(scope="module")
def measurement() -> Measurement[Parameters]:
    return run(ODD)


@pytest.fixture(scope="module")
def capture() -> CaptureFile:
    return open_capture(sample_path())


@pytest.fixture(scope="module")
def heads(capture: CaptureFile) -> list[Measurement[HeadSubject]]:
    layer = capture.layers[1]
    rules = [named_rule("none", layer), named_rule("file", layer)]
    return [measure_head(capture, layer, head, rules) for head in (0, 1)]


def with_estimates(estimate: Estimate) -> tuple[Measurement[Parameters], Prediction]:
    """A measurement and a theory with the same value everywhere."""
    column = Column("none", 1.0, dict.fromkeys(NAMES, estimate), {})
    exact = PredictedColumn(dict.fromkeys(NAMES, estimate.value), saturation(ODD, "none"))
    return Measurement(ODD, 2, 2, (column, column)), Prediction(ODD, (exact, exact))


def strict(text: str) -> Any:
    """JSON without NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def cells(markdown: str) -> list[list[str]]:
    """The rows of a Markdown table, without the line under its header."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert len({len(row) for row in table}) == 1
    assert all(set(cell) <= set(":-") for cell in table[1])
    return [table[0], *table[2:]]


def of_heads(heads: list[Measurement[HeadSubject]]) -> Table[Inspected]:
    """The table of heads of the sample."""
    found: list[Inspected] = [(head, None) for head in heads]
    return inspect_table([open_capture(sample_path())], found, sum(len(head.columns) for head in heads))


def test_report_json_has_the_promised_structure(measurement: Measurement[Parameters]) -> None:
    report = strict(written(report_table(measurement, exact_values()), "json"))
    assert list(report) == ["schema", "version", "parameters", "theory_arithmetic", "columns"]
    assert report["theory_arithmetic"] == "exact"
    assert report["schema"] == "attn-tui/report-2"
    assert report["version"] == VERSION
    assert report["parameters"] == {field.name: getattr(ODD, field.name) for field in FIELDS}
    scales = [
        {"rule": "none", "formula": "1", "multiplier": 1.0},
        {"rule": "custom", "formula": "0.1", "multiplier": 0.1},
    ]
    assert [column["scale"] for column in report["columns"]] == scales
    for column, found, exact in zip(report["columns"], measurement.columns, exact_values().columns, strict=True):
        assert list(column) == ["scale", "measured", "theory", "saturation", "status"]
        assert exact.saturation is not None
        assert column["saturation"] == {
            "threshold": exact.saturation.threshold,
            "std": exact.saturation.std,
            "ratio": exact.saturation.std / exact.saturation.threshold,
            "saturated_at": [[*interval] for interval in exact.saturation.saturated_at],
        }
        assert column["status"] == status_given(exact.saturation, found.measured)
        assert list(column["measured"]) == NAMES
        assert column["theory"] == exact.values
        for name, estimate in found.measured.items():
            written_as = "stderr_at_least" if estimate.is_rough else "stderr"
            assert (column["measured"][name]["value"], column["measured"][name][written_as]) == (*estimate,)


def test_inspect_json_has_the_promised_structure(
    capture: CaptureContents, heads: list[Measurement[HeadSubject]]
) -> None:
    found = strict(written(of_heads(heads), "json"))
    assert list(found) == ["schema", "version", "file", "heads", "complete"]
    assert found["schema"] == "attn-tui/inspect-2"
    assert found["file"] == {
        "path": str(sample_path()),
        "model": capture.model,
        "source": capture.source,
        "licence": "Apache-2.0",
        "notes": [],
        "unused": [],
    }
    assert [(h["layer"], h["head"], h["d_k"], h["scale"]["rule"]) for h in found["heads"]] == [
        (1, 0, 32, "none"), (1, 0, 32, "file"), (1, 1, 32, "none"), (1, 1, 32, "file"),
    ]  # fmt: skip
    assert found["heads"][1]["scale"]["multiplier"] == capture.layers[1].scale
    assert found["heads"][1]["measured"]["entropy"]["stderr"] is None
    assert [h["status"] for h in found["heads"]] == [status(c.measured) for head in heads for c in head.columns]


@pytest.mark.parametrize("number", [None, math.nan, math.inf, -math.inf])
def test_missing_values_are_absent_in_every_format(number: float | None) -> None:
    result = with_estimates(Estimate(number, number))
    absent = {"value": None, "stderr": None}
    column = strict(written(report_table(*result), "json"))["columns"][0]
    assert column["measured"] == dict.fromkeys(NAMES, absent)
    assert column["theory"] == dict.fromkeys(NAMES)
    for row in csv.DictReader(io.StringIO(written(report_table(*result), "csv"))):
        assert (row["value"], row["stderr"], row["theory"]) == ("", "", "")
    shown = [row for row in cells(written(report_table(*result), "markdown"))[1:] if row[0] != "saturation"]
    assert {cell for row in shown for cell in row[1:]} <= {"", "—"}


def test_a_value_without_standard_error_is_shown_alone() -> None:
    result = with_estimates(Estimate(0.5, None))
    values = {row[0]: row[1:] for row in cells(written(report_table(*result), "markdown"))[1:]}
    assert values["entropy"] == ["0.5", "0.5"] * 2
    assert values["max weight"] == ["50 %", "50 %"] * 2
    row = next(csv.DictReader(io.StringIO(written(report_table(*result), "csv"))))
    assert (row["value"], row["stderr"]) == ("0.5", "")


def test_csv_is_tidy_and_agrees_with_json(measurement: Measurement[Parameters]) -> None:
    text = written(report_table(measurement, exact_values()), "csv")
    assert "\r" not in text
    assert text.endswith("\n")
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = strict(written(report_table(measurement, exact_values()), "json"))["columns"]
    assert len(rows) == len(NAMES) * 2
    last = ["multiplier", "status", "statistic", "value", "stderr", "theory", "theory_arithmetic"]
    assert list(rows[0])[-7:] == last
    assert {row["theory_arithmetic"] for row in rows} == {"exact"}
    assert len(set(rows[0])) == len(rows[0])
    for row in rows:
        assert [row["d_k"], row["mean_q"], row["components"], row["seed"]] == ["7", "-0.25", "normal", "3"]
        column = next(c for c in columns if c["scale"]["rule"] == row["scale"])
        assert float(row["multiplier"]) == column["scale"]["multiplier"]
        assert row["status"] == column["status"]
        for key in ("value", "stderr"):
            number = column["measured"][row["statistic"]][key]
            assert (float(row[key]) if row[key] else None) == number
        assert (float(row["theory"]) if row["theory"] else None) == column["theory"][row["statistic"]]


def test_csv_of_heads_is_tidy_and_agrees_with_json(
    capture: CaptureContents, heads: list[Measurement[HeadSubject]]
) -> None:
    rows = list(csv.DictReader(io.StringIO(written(of_heads(heads), "csv"))))
    entries = strict(written(of_heads(heads), "json"))["heads"]
    names = "file layer layer_name head d_k scale multiplier status statistic value stderr"
    assert list(rows[0]) == names.split()
    assert len(rows) == len(NAMES) * len(entries)
    for number, row in enumerate(rows):
        entry = entries[number // len(NAMES)]
        assert [row["layer"], row["head"], row["d_k"]] == [str(entry[k]) for k in ("layer", "head", "d_k")]
        assert row["status"] == (entry["status"] or "")
        value = entry["measured"][row["statistic"]]["value"]
        assert (float(row["value"]) if row["value"] else None) == value


def test_markdown_has_every_measured_and_exact_value(measurement: Measurement[Parameters]) -> None:
    text = written(report_table(measurement, exact_values()), "markdown")
    assert text.startswith(
        "Parameters: d_k 7, keys 5, queries 3, batch 2, d_v 64, scale custom, multiplier 0.1, mask none"
    )
    header, *rows = cells(text)
    assert header == ["", "unscaled × 1", "theory", "scaled × 0.1", "theory"]
    by_label = {row[0]: row[1:] for row in rows}
    assert by_label["status"] == ["saturated", "", "uniform", ""]
    assert by_label["saturation"] == ["saturated from d_k 4 up", "", "saturated from d_k 303 up", ""]
    assert "weight on sink" not in by_label
    for statistic in (statistic for statistic in STATISTICS if not statistic.conditional):
        values: list[float | None] = []
        for column, exact in zip(measurement.columns, exact_values().columns, strict=True):
            values += [column.measured[statistic.name].value, exact.values[statistic.name]]
        for cell, value in zip(by_label[statistic.label], values, strict=True):
            assert (cell == "—") == (value is None)
            if value == 0 and statistic.unit == "share":
                assert cell == "none"
            elif value is not None:
                shown = float(cell.split()[0]) / (100 if cell.endswith(" %") else 1)
                assert shown == pytest.approx(value, rel=1e-3)
                assert cell.endswith("%") == (statistic.unit == "share")


def test_markdown_of_heads_has_a_line_for_each(heads: list[Measurement[HeadSubject]]) -> None:
    header, *rows = cells(written(of_heads(heads), "markdown"))
    assert [*header[:4], header[-1]] == ["layer", "head", "d_k", "multiplier", "status"]
    assert [row[:4] for row in rows][:2] == [["1", "0", "32", "1"], ["1", "0", "32", "0.1768"]]
    value = heads[0].columns[1].measured["max_weight"].value
    assert value is not None
    assert float(rows[1][header.index("max weight, %")]) == pytest.approx(100 * value, rel=1e-3)
    assert [row[-1] for row in rows] == [status(column.measured) for head in heads for column in head.columns]


def test_markdown_of_one_head_names_it(capture: CaptureContents, heads: list[Measurement[HeadSubject]]) -> None:
    text = written(inspect_table([capture], [(heads[1], None)], 2, whole=True), "markdown")
    assert text.splitlines()[0].endswith("layer 1, head 1, d_k 32")
    header, line, *_ = cells(text)
    assert header == ["", "unscaled × 1", "the file's × 0.1768"]
    assert line == ["status", *(status(column.measured) for column in heads[1].columns)]


def test_the_spelling_is_applied_to_every_cell(measurement: Measurement[Parameters]) -> None:
    def ascii_only(text: str) -> str:
        return text.replace("‖", "||").encode("ascii", "replace").decode()

    text = written(report_table(measurement, exact_values()), "markdown", ascii_only)
    assert text.isascii()
    assert any(row[0] == r"\|\|J\|\|_F" for row in cells(text))


@for_each("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_csv_has_no_text_that_a_spreadsheet_takes_for_a_formula(start: str) -> None:
    formula = f"{start}cmd|' /C calc'!A0"
    lines = [*csv.reader(io.StringIO(csv_text([[formula], [formula, "a=b", "1/√d_k", "", "a\r=b"]])))]
    shown = "'" + plain(formula)
    assert lines == [[shown], [shown, "a=b", "1/√d_k", "", r"a\r=b"]]


def test_csv_has_numbers_as_they_are() -> None:
    assert csv_text([["n"], [-1, -0.5, -1e-300, 3, None, True]]) == "n\n-1,-0.5,-1e-300,3,,true\n"
    assert csv_text([["n"], ["-1", "-0.5", "+2e-3", "-1+1"]]) == "n\n-1,-0.5,+2e-3,'-1+1\n"


def test_a_layer_named_like_a_formula_is_text_in_csv(
    capture: CaptureFile, heads: list[Measurement[HeadSubject]]
) -> None:
    layer = replace(capture.layers[1], name="=1+1")
    named = [replace(head, subject=replace(head.subject, layer=layer)) for head in heads]
    rows = [*csv.DictReader(io.StringIO(written(of_heads(named), "csv")))]
    assert {row["layer_name"] for row in rows} == {"'=1+1"}
    assert any(row["value"].startswith("-") for row in rows)


ASKED = Parameters(n_keys=128, n_queries=8, batch=4, scale="8/d")
D_KS = (4, 16)


@pytest.fixture(scope="module")
def swept() -> SweepResult:
    found = [(point, predict(point.parameters)) for point in points(ASKED, D_KS)]
    return SweepResult(ASKED, D_KS, found)


def rows(sweep: SweepResult) -> list[dict[str, str]]:
    """The lines of CSV."""
    return [*csv.DictReader(io.StringIO(written(sweep_table(sweep, "attn-tui sweep"), "csv")))]


def in_words(number: float | None, factor: int) -> str:
    if number == 0 and factor == 100:
        return "none"
    return "—" if number is None else f"{factor * number:.4g}"


def test_markdown_has_each_measured_value_beside_the_exact_one_of_its_column(swept: SweepResult) -> None:
    lines = [
        line
        for line in written(sweep_table(swept, "attn-tui sweep"), "markdown").splitlines()
        if line.startswith("|")
    ]
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
    found = SweepResult(p, D_KS, [(point, predict(point.parameters)) for point in points(p, D_KS)])
    *_, last = json.loads(written(sweep_table(found, "attn-tui sweep"), "json"))["points"]
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
    found: Any = json.loads(written(sweep_table(swept, "attn-tui sweep"), "json"))
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
    few = SweepResult(ASKED, D_KS, swept.points, statistics=["entropy"])
    [first, _] = json.loads(written(sweep_table(few, "attn-tui sweep"), "json"))["points"]
    assert [column["status"] for column in first["columns"]] == ["healthy", "saturated"]
    assert list(first["columns"][0]["measured"]) == ["entropy"]


def test_without_a_known_law_saturation_is_absent_and_the_status_is_measured() -> None:
    capped = Parameters(d_k=64, n_keys=32, n_queries=8, batch=4, softcap=50.0, components="uniform")
    found: list[tuple[SweepPoint, Prediction]] = [
        (point, predict(point.parameters)) for point in points(capped, (64,))
    ]
    assert isinstance(found[0][0].measurement, Measurement)
    [point] = json.loads(written(sweep_table(SweepResult(capped, (64,), found), "attn-tui sweep"), "json"))["points"]
    assert [column["saturation"] for column in point["columns"]] == [None, None]
    assert [column["status"] for column in point["columns"]] == ["saturated", "healthy"]


def test_exact_values_beside_rounded_ones_are_named_in_every_format() -> None:
    asked = Parameters(d_k=4, n_keys=8, n_queries=4, batch=2, precision="bfloat16", arithmetic="eager")
    for p, title in ((asked, "theory (exact arithmetic)"), (replace(asked, precision="float32"), "theory")):
        found = SweepResult(p, (4,), [(point, predict(p)) for point in points(p, (4,))])
        assert f"| entropy, {title} |" in written(sweep_table(found, "attn-tui sweep"), "markdown")
        assert json.loads(written(sweep_table(found, "attn-tui sweep"), "json"))["theory_arithmetic"] == "exact"
        assert {row["theory_arithmetic"] for row in rows(found)} == {"exact"}
        assert f"| {title} |" in written(report_table(run(p), predict(p)), "markdown")
        sentences = sweep_sentences(found, [])
        assert ("Exact values are those of exact arithmetic, whatever the number format." in sentences) == (
            p == asked
        )
    assert theory_title([replace(asked, precision="float32"), asked]) == "theory (exact arithmetic)"
