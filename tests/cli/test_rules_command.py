"""attn-tui rules."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from attn_tui.core.lab import mechanisms, rules
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.results import MEASURED, RULES, SORTABLE
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.rules import CompareRules
from attn_tui.core.scales import SCALE_RULES
from attn_tui.tui.cli.main import main
from attn_tui.tui.cli.working import time_words
from cases import for_each
from cli_runner import Captured, out_of, printed

pytestmark = pytest.mark.usefixtures("short_rule_grids")

SMALL = ("rules", "--n-keys", "16", "--n-queries", "4", "--batch", "4")


def test_the_json_has_every_rule_as_a_report_measures_it(capsys: Captured) -> None:
    found = json.loads(printed([*SMALL, "--d-k", "32", "--format", "json"], capsys))
    assert (found["schema"], found["sort"]) == ("attn-tui/rules-2", {"column": "rule", "reverse": False})
    assert (found["parameters"]["d_k"], found["parameters"]["scale"]) == (32, "sqrt_d_k")
    assert [each["rule"] for each in found["rules"]] == [*RULES]
    for each in found["rules"]:
        column = run(Parameters(32, 16, 4, 4, scale=each["rule"])).columns[1]
        assert each["formula"] == SCALE_RULES[each["rule"]].formula
        assert (each["multiplier"], each["fault"]) == (column.multiplier, None)
        assert list(each["measured"]) == [*MEASURED]
        for name, estimate in each["measured"].items():
            assert estimate["value"] == pytest.approx(column.measured[name].value, rel=2e-4, abs=1e-6)
        assert len(each["entropy_fraction_over_d_k"]) == len(found["over_d_k"]["d_k"])


@pytest.mark.parametrize("column", SORTABLE)
def test_rules_are_sorted_by_any_column(column: str, capsys: Captured) -> None:
    words = ["--d-k", "1", "--precision", "float8_e5m2", "--sort", column, "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(out_of([*SMALL, *words], __name__, capsys))))
    assert sorted(row["rule"] for row in rows) == sorted(RULES)
    if column == "rule":
        assert [row["rule"] for row in rows] == [*RULES]
        return
    values = [row[column] for row in rows]
    assert values[-1] == ""  # 1/ln 1
    known = [float(value) for value in values[:-1]]
    assert known == sorted(known, reverse=True)


def test_csv_of_mechanisms_has_a_line_for_each_at_each_d_k(capsys: Captured) -> None:
    rows = list(csv.DictReader(io.StringIO(printed([*SMALL, "--mechanisms", "--format", "csv"], capsys))))
    assert len(rows) == len(mechanisms.COMPARED) * len(mechanisms.D_KS)
    bounded = [row for row in rows if row["score_bound"]]
    assert {row["mechanism"] for row in bounded} == {"additive", "cosine"}
    assert all(float(row["largest_score"]) <= float(row["score_bound"]) * 1.00001 for row in bounded)


@for_each("width", [40, 80, 100, 120, 200])
@pytest.mark.parametrize("words", [["--sort", "dead_rows"], ["--mechanisms"]], ids=" ".join)
def test_the_table_fits_the_screen(
    words: list[str], width: int, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    table = out_of([*SMALL, *words], __name__, capsys).rsplit("attn-tui", 1)[0]
    assert all(len(line) <= max(width, 60) for line in table.splitlines())
    if words[0] == "--sort":
        assert "rows %" in table
        assert ("from d_k 16 to 256" in table) == (width >= 80)
        assert "CSV" in table, "which has the other columns"
        assert "◆1/√d_k" in table


@pytest.mark.parametrize(
    ("words", "idle"),
    [
        ("--layer 3 --multiplier 2 --position 5 --context-factor 2", []),
        ("--gain 2", ["--gain"]),
        (
            "--mechanisms --gain 2 --d-k 8 --softcap 5 --sort max_weight --reverse",
            ["--d-k", "--softcap", "--sort", "--reverse"],
        ),
    ],
)
def test_options_without_effect_are_noted(words: str, idle: list[str], capsys: Captured) -> None:
    assert main([*SMALL, *words.split()]) == 0
    assert [line.split()[1:3] for line in capsys.readouterr().err.splitlines()] == [["note:", each] for each in idle]


@pytest.mark.parametrize(
    ("words", "measured"),
    [
        ([], (rules, "measure")),
        (["--mechanisms"], (mechanisms, "measure")),
    ],
    ids=["rules", "mechanisms"],
)
def test_ctrl_c_ends_it_without_a_file(
    words: list[str], measured: tuple[object, str], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[object]:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(*measured, interrupted)
    file = tmp_path / "rules.json"
    assert main([*SMALL, *words, "--format", "json", "-o", str(file)]) == 130
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")


def test_the_custom_rule_is_listed_if_it_is_set(capsys: Captured) -> None:
    for kind in ("table", "markdown"):
        assert "custom" not in out_of([*SMALL, "--format", kind], __name__, capsys).rsplit("attn-tui", 1)[0]
        for words in (["--multiplier", "0.3"], ["--scale", "custom"]):
            assert "custom" in out_of([*SMALL, *words, "--format", kind], __name__, capsys).rsplit("attn-tui", 1)[0]


def test_many_keys_are_measured_with_fewer_draws_unless_these_are_given(capsys: Captured) -> None:
    many = ["rules", "--n-keys", "1048576", "--dry-run"]
    assert main(many) == 0
    said = capsys.readouterr().err
    assert "1,048,576 keys: 2 draws of 16 queries are measured instead of 16 of 64" in said
    seconds = sum(part.seconds for part in CompareRules(Parameters(n_keys=1_048_576)).parts())
    assert f"which take about {time_words(seconds)};" in said
    assert main([*many, "--batch", "16", "--n-queries", "64"]) == 0
    assert "instead" not in capsys.readouterr().err
    assert main(["rules", "--n-keys", "8192", "--dry-run"]) == 0
    assert "instead" not in capsys.readouterr().err
