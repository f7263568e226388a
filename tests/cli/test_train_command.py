"""attn-tui train: what is printed, and what is refused."""

import csv
import io
import json

from attn_tui.core.training.settings import RATES
from attn_tui.tui.cli.main import main
from cli_runner import Captured, printed, request_of

SHORT = ("--steps", "12", "--seeds", "2")


def test_the_table_has_a_line_for_each_rule_at_each_width(capsys: Captured) -> None:
    assert main(["train", "--d-k", "4,8", "--rules", "none,sqrt_d_k", *SHORT]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines if line[-2:-1] == ["%"] or "→" in line] == [
        [d_k, rule] for d_k in ("4", "8") for rule in ("none", "sqrt_d_k")
    ]


def test_one_step_and_one_seed_are_singular(capsys: Captured) -> None:
    assert main(["train", "--d-k", "4", "--rules", "none", "--steps", "1", "--seeds", "1"]) == 0
    head = " ".join(capsys.readouterr().out.split("\n\n")[0].split())
    assert head.endswith("· 1 step · 1 seed")


def test_help_has_the_learning_rate_of_each_optimizer(capsys: Captured) -> None:
    shown = " ".join(printed(["train", "--help"], capsys).split())
    for name, rate in RATES.items():
        assert f"{rate:g} for {name}" in shown
        assert request_of("train", "--optimizer", name).question.race.rate == rate


def test_json_has_the_settings_and_csv_the_same_results(capsys: Captured) -> None:
    words = ["train", "--d-k", "4", "--optimizer", "adam", "--lr", "0.02", "--warm-up", "3", *SHORT]
    assert main([*words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["optimizer"], found["learning_rate"], found["warm_up"], found["seeds"]) == ("adam", 0.02, 3, 2)
    results = found["races"][0]["results"]
    assert [each["rule"] for each in results] == ["none", "sqrt_d_k", "d_k"]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert all(f" {100 * each['entropy_before']:.0f} → " in table for each in results)
    assert main([*words, "--format", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [float(line["loss"]) for line in lines] == [each["loss"] for each in results]
