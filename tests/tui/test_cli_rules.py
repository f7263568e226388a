"""attn-tui rules, as people and scripts meet it."""

import csv
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.attention.scales import SCALE_RULES
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.rule_rows import MEASURED, RULES, SORTABLE, Order
from attn_tui.core.parameters import Parameters
from attn_tui.tui.cli import main
from attn_tui.tui.command import rules_line
from attn_tui.tui.options import parse
from attn_tui.tui.requests import Rules
from attn_tui.tui.views.glyphs import UNICODE
from test_cli import Captured, printed, refusal

SMALL = ["rules", "--n-keys", "16", "--n-queries", "4", "--batch", "4"]
P = Parameters(n_keys=16, n_queries=4, batch=4)


@pytest.fixture(autouse=True)
def short_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few d_k, so that tests are quick."""
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.LAST", 16)
    monkeypatch.setattr("attn_tui.core.lab.rule_curves.DRAWS", 2)
    monkeypatch.setattr("attn_tui.core.lab.mechanisms.D_KS", (16, 64))


def test_the_json_has_every_rule_as_a_report_measures_it(capsys: Captured) -> None:
    found = json.loads(printed([*SMALL, "--d-k", "32", "--format", "json"], capsys))
    assert (found["schema"], found["sort"]) == ("attn-tui/rules-1", {"column": "rule", "reverse": False})
    assert (found["parameters"]["d_k"], found["parameters"]["scale"]) == (32, "sqrt_d_k")
    assert [each["rule"] for each in found["rules"]] == [*RULES]
    over = found["over_d_k"]
    for each in found["rules"]:
        column = run(Parameters(32, 16, 4, 4, scale=each["rule"])).columns[1]
        assert each["formula"] == SCALE_RULES[each["rule"]].formula
        assert (each["multiplier"], each["fault"]) == (column.multiplier, None)
        assert list(each["measured"]) == [*MEASURED]
        for name, estimate in each["measured"].items():
            assert estimate["value"] == pytest.approx(column.measured[name].value, rel=2e-4, abs=1e-6)
        assert len(each["entropy_fraction_over_d_k"]) == len(over["d_k"])


@pytest.mark.parametrize(
    ("form", "words"),
    [
        *((form, [kind]) for form in ("table", "json", "markdown") for kind in ("--reverse", "--mechanisms")),
        ("table", ["--sort", "max-weight", "--precision", "float16", "--softcap", "5", "--ascii"]),
        ("json", ["--multiplier", "0.05", "--d-k", "1", "--sort", "multiplier"]),
    ],
)
def test_the_printed_command_prints_the_same_bytes_again(form: str, words: list[str], capsys: Captured) -> None:
    first = printed([*SMALL, *words, "--format", form], capsys)
    lines = [json.loads(first)["command"]] if form == "json" else [s.strip("`") for s in first.splitlines()]
    (command,) = [line for line in lines if line.startswith("attn-tui rules")]
    assert printed(shlex.split(command)[1:], capsys) == first


def test_a_command_makes_the_same_request_again() -> None:
    for words in (
        ["--sort", "dead-rows", "--reverse", "--format", "csv", "--position", "0"],
        ["--mechanisms", "--gain", "3"],
        ["--scale", "0.25"],
    ):
        request = parse(["rules", *words], UNICODE)
        assert isinstance(request, Rules)
        assert parse(shlex.split(rules_line(request))[1:], UNICODE) == request
    assert parse(["rules"], UNICODE) == Rules(Parameters())
    assert parse(["rules", "--sort", "rule"], UNICODE) == Rules(Parameters(), Order())


@pytest.mark.parametrize("column", SORTABLE)
def test_rules_are_sorted_by_the_column_that_is_asked_for(column: str, capsys: Captured) -> None:
    words = ["--d-k", "1", "--precision", "float8_e5m2", "--sort", column, "--format", "csv"]
    rows = list(csv.DictReader(io.StringIO(printed([*SMALL, *words], capsys))))
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
    assert len(rows) == 5 * 2
    bounded = {row["mechanism"] for row in rows if row["score_bound"]}
    assert bounded == {"additive", "cosine"}
    assert all(
        float(row["largest_score"]) <= float(row["score_bound"]) * 1.00001 for row in rows if row["score_bound"]
    )


@pytest.mark.parametrize("width", ["40", "80", "100", "120", "200"])
@pytest.mark.parametrize("words", [["--sort", "dead_rows"], ["--mechanisms"]], ids=" ".join)
def test_the_table_fits_the_screen(
    words: list[str], width: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    table = printed([*SMALL, *words], capsys).rsplit("attn-tui", 1)[0]
    assert all(len(line) <= max(int(width), 60) for line in table.splitlines())
    if words[0] == "--sort":
        assert "rows %" in table
        assert ("4 to 16" in table) == (int(width) >= 100)
        assert ("No room for" in table) == (int(width) < 100)
        assert "◆1/√d_k" in table


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sort", "entropy"], "--sort: 'entropy' is not accepted; it takes one of rule, multiplier, logit_std"),
        (["--d-k", "0"], "--d-k: '0' is not accepted"),
        (["--reversed"], "did you mean --reverse?"),
        (["64"], "'64' is one word too many"),
    ],
)
def test_what_cannot_be_compared_gets_one_line(words: list[str], says: str, capsys: Captured) -> None:
    assert says in refusal([*SMALL, *words], capsys)


def notes(words: list[str], capsys: Captured) -> str:
    assert main([*SMALL, *words]) == 0
    return capsys.readouterr().err


def test_options_without_effect_are_said(capsys: Captured) -> None:
    assert notes(["--layer", "3", "--multiplier", "2", "--position", "5", "--context-factor", "2"], capsys) == ""
    assert "--gain has no effect" in notes(["--gain", "2"], capsys)
    told = notes(["--mechanisms", "--gain", "2", "--d-k", "8", "--softcap", "5", "--sort", "max_weight"], capsys)
    assert [line.split()[2] for line in told.splitlines()] == ["--d-k", "--softcap", "--sort"]


@pytest.mark.parametrize("words", [[], ["--mechanisms"]], ids=["rules", "mechanisms"])
def test_ctrl_c_ends_it_without_a_file(words: list[str], tmp_path: Path, capsys: Captured, monkeypatch: Any) -> None:
    from attn_tui.tui.plain import rules as plain

    def interrupted(*_: Any) -> Any:
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(plain.mechanisms if words else plain.rule_curves, "stream", interrupted)
    file = tmp_path / "rules.json"
    assert main([*SMALL, *words, "--format", "json", "-o", str(file)]) == 130
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr() == ("", "")
