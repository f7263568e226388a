"""attn-tui sweep, as people and scripts meet it."""

import csv
import io
import json
import os
import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.lab.experiment import run
from attn_tui.core.lab.sweep import Target
from attn_tui.core.lab.theory import predict
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.catalogue import STATISTICS
from attn_tui.tui.cli import main
from attn_tui.tui.command import sweep_line
from attn_tui.tui.options import parse
from attn_tui.tui.requests import Sweep
from attn_tui.tui.views.glyphs import UNICODE
from test_cli import FOREVER, Captured, on_terminal, printed, refusal

SMALL = ["sweep", "--n-keys", "16", "--n-queries", "4", "--batch", "4"]
NESTED = [statistic.name for statistic in STATISTICS if not statistic.optional]
README = Path(__file__).parents[2] / "README.md"


def as_json(words: list[str], capsys: Captured) -> Any:
    return json.loads(printed([*SMALL, *words, "--format", "json"], capsys))


def test_the_json_has_every_point_with_its_theory(capsys: Captured) -> None:
    found = as_json(["--d-k", "64,3", "--seed", "5"], capsys)
    assert (found["schema"], found["complete"], found["d_k"]) == ("attn-tui/sweep-1", True, [3, 64])
    assert (found["parameters"]["seed"], "d_k" in found["parameters"]) == (5, False)
    assert [point["d_k"] for point in found["points"]] == [3, 64]
    p = Parameters(d_k=64, n_keys=16, n_queries=4, batch=4, seed=5)
    point = found["points"][1]
    assert (point["draws"], point["reached"]) == (4, None)
    columns = zip(point["columns"], run(p, full=False).columns, predict(p).columns, strict=True)
    for column, measured, exact in columns:
        assert column["scale"] == {"rule": measured.rule, "multiplier": measured.multiplier}
        assert list(column["measured"]) == list(column["theory"]) == NESTED
        assert column["measured"]["entropy"]["value"] == pytest.approx(measured.measured["entropy"].value, rel=1e-4)
        assert column["theory"]["entropy"] == exact.values["entropy"]


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize(
    "words",
    [
        ["--d-k", "2:9:log3"],
        ["--d-k", " 2, 4:5", "--vary", "seed=7,9", "--statistics", "max-weight,logit_std"],
        ["--d-k", "4", "--stderr", "0.02", "--of", "max_weight", "--most-draws", "40", "--ascii"],
        ["--d-k", "4,8", "--vary", "multiplier=0.1,0.2", "--components", "laplace"],
    ],
)
def test_the_printed_command_prints_the_same_bytes_again(form: str, words: list[str], capsys: Captured) -> None:
    first = printed([*SMALL, *words, "--format", form], capsys)
    if form == "csv":
        assert printed([*SMALL, *words, "--format", form], capsys) == first
        return
    lines = [json.loads(first)["command"]] if form == "json" else [s.strip("`") for s in first.splitlines()]
    (command,) = [line for line in lines if line.startswith("attn-tui sweep")]
    assert printed(shlex.split(command)[1:], capsys) == first


def test_a_command_makes_the_same_request_again() -> None:
    for words in (
        ["--d-k", "1:64:log5", "--vary", "scale=d_k,none", "--statistics", "all", "--format", "csv"],
        ["--scale", "0.05", "--stderr", "1e-05", "--of", "grad_q_median", "--most-draws", "77", "--mean-q", "-1"],
        ["--vary", "multiplier=0.5"],
    ):
        request = parse(["sweep", *words], UNICODE)
        assert isinstance(request, Sweep)
        assert parse(shlex.split(sweep_line(request))[1:], UNICODE) == request
    assert parse(["sweep", "--stderr", "0.5"], UNICODE) == Sweep(Parameters(), "1:4096:log24", target=Target(0.5))


def test_csv_has_a_line_for_each_value_and_files_can_be_joined(capsys: Captured) -> None:
    rows = list(csv.DictReader(io.StringIO(printed([*SMALL, "--d-k", "2,8", "--format", "csv"], capsys))))
    assert len(rows) == 2 * 2 * len(NESTED)
    assert {row["d_k"] for row in rows} == {"2", "8"}
    report = printed(["report", "--d-k", "8", *SMALL[1:], "--format", "csv"], capsys).splitlines()[0]
    assert list(rows[0]) == [*report.split(","), "reached"]


def test_a_precision_that_is_asked_for_stands_in_each_point(capsys: Captured) -> None:
    found = as_json(["--d-k", "2,64", "--stderr", "0.01", "--of", "max_weight"], capsys)
    assert found["target"] == {"statistic": "max_weight", "stderr": 0.01, "most_draws": 4096}
    for point in found["points"]:
        assert point["reached"]
        assert point["draws"] % 4 == 0
        assert all(column["measured"]["max_weight"]["stderr"] <= 0.01 for column in point["columns"])
    short = printed([*SMALL, "--d-k", "2", "--stderr", "1e-9", "--most-draws", "8"], capsys)
    assert "8 *" in short
    assert "1 of 1 points: after 8 draws" in short


def test_gradients_and_formats_are_measured_where_they_are_asked_for(capsys: Captured) -> None:
    found = as_json(["--d-k", "8", "--statistics", "grad_q_median,weight_error"], capsys)
    for column in found["points"][0]["columns"]:
        assert list(column["measured"]) == ["grad_q_median", "weight_error"]
        assert all(estimate["value"] is not None for estimate in column["measured"].values())
    assert "weight error" in printed([*SMALL, "--d-k", "8", "--vary", "precision=float16"], capsys)


@pytest.mark.parametrize("width", ["60", "80", "160"])
def test_the_table_fits_the_screen(width: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    table = printed([*SMALL, "--d-k", "16,256", "--statistics", "all"], capsys).rsplit("attn-tui", 1)[0]
    assert all(len(line) <= int(width) for line in table.splitlines())
    for statistic in STATISTICS:
        assert statistic.label in table
    assert printed([*SMALL, "--d-k", "16,256", "--ascii"], capsys).isascii()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        *((["--d-k", grid], f"--d-k: {grid!r}") for grid in ("0", "5:1", "1:1e9", "1:9:log0", "text", "")),
        (["--statistics", "entropi"], "it takes all, or some of logit_mean"),
        (["--statistics", ""], "--statistics: ''"),
        (["--vary", "d-k=3"], "NAME one of n-keys"),
        (["--vary", "n-keys"], "it takes NAME=VALUES"),
        (["--vary", "n-keys=0"], "--vary n-keys: '0'"),
        (["--vary", "scale=0.1"], "--vary multiplier=0.05,0.1"),
        (["--vary", "seed=1", "--vary", "batch=2"], "one second axis"),
        (["--stderr", "0"], "a number above 0"),
        (["--stderr", "nan"], "a number above 0"),
        (["--stderr", "1", "--of", "logit_max"], "--of: 'logit_max' has no standard error"),
        (["--stderr", "1", "--most-draws", "3"], "less than one batch of 4 draws"),
        (["--scale", "log_d_k", "--d-k", "1:4"], "has no value at d_k = 1"),
    ],
)
def test_what_cannot_be_swept_gets_one_line(words: list[str], says: str, capsys: Captured) -> None:
    assert says in refusal([*SMALL, *words], capsys)


def test_options_without_effect_are_said(capsys: Captured) -> None:
    assert main([*SMALL, "--d-k", "2", "--of", "entropy", "--vary", "n-keys=3"]) == 0
    err = capsys.readouterr().err
    assert "--n-keys has no effect" in err
    assert "--of has no effect" in err


def test_ctrl_c_keeps_the_points_that_are_done(tmp_path: Path, capsys: Captured, monkeypatch: Any) -> None:
    from attn_tui.tui.plain import sweep as plain

    def interrupted(*asked: Any, **options: Any) -> Any:
        for number, step in enumerate(stream(*asked, **options)):
            yield step
            if number == 2:
                raise KeyboardInterrupt

    stream = plain.stream
    monkeypatch.setattr(plain, "stream", interrupted)
    file = tmp_path / "sweep.json"
    assert main([*SMALL, "--d-k", "1:9", "--format", "json", "-o", str(file)]) == 130
    found = json.loads(file.read_text())
    assert (found["complete"], [point["d_k"] for point in found["points"]]) == (False, [1, 2, 3])
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"attn-tui: interrupted: kept 3 of 9 points in {file}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["sweep.json"]
    assert main([*SMALL, "--d-k", "1:9"]) == 130
    assert "Interrupted: 3 of 9 points." in capsys.readouterr().out


def test_ctrl_c_before_any_point_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "sweep.csv"
    file.write_text("before")

    def interrupt(process: Any, _: int) -> None:
        os.kill(process.pid, signal.SIGINT)

    words = ["sweep", *FOREVER, "--format", "csv", "-o", str(file)]
    code, seen = on_terminal(words, interrupt, b"sweeping 23 points")
    assert code == 130
    assert "kept 0 of 23 points" in seen
    assert file.read_text() == "before"


def test_the_readme_shows_what_its_sweeps_print(capsys: Captured) -> None:
    shown = re.findall(r"```console\n\$ attn-tui (sweep [^\n]*)\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(shown) >= 3
    for command, text in shown:
        lines = printed(shlex.split(command), capsys).splitlines()
        assert [line for line in text.splitlines() if line.strip()] == [line for line in lines if line.strip()]
