"""`--scale` with a formula: every command that takes a rule, the command line that repeats it, and errors."""

import json
import shlex
from collections.abc import Sequence

import pytest
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, SMALL, Captured, printed, refusal

FORMULA = "log(n)/sqrt(d)"
HEAD = ("--layer", "0", "--head", "0", "--format", "json")


def columns(words: Sequence[str], capsys: Captured) -> list[dict[str, object]]:
    found = json.loads(printed([*words, "--format", "json"], capsys))
    return found["columns"] if "columns" in found else found["points"][0]["columns"]


@pytest.mark.parametrize(
    ("words", "multiplier"),
    [
        (["report", *SMALL], 2.772588722 / 8**0.5),
        (["sweep", "--d-k", "4", *SMALL[2:]], 2.772588722 / 2),
        (["softmax", "--scores", "1,2", "--d-k", "4", "--n-keys", "16"], 2.772588722 / 2),
    ],
    ids=["report", "sweep", "softmax"],
)
def test_a_command_prints_the_formula_and_its_multiplier(
    words: list[str], multiplier: float, capsys: Captured
) -> None:
    unscaled, scaled = columns([*words, "--scale", FORMULA], capsys)
    assert unscaled["scale"] == {"rule": "none", "formula": "1", "multiplier": 1.0}
    assert scaled["scale"] == {"rule": FORMULA, "formula": FORMULA, "multiplier": pytest.approx(multiplier)}


def test_the_command_that_repeats_a_sweep_quotes_the_formula(capsys: Captured) -> None:
    words = ["sweep", "--d-k", "4", *SMALL[2:], "--scale", FORMULA, "--format", "json"]
    first = printed(words, capsys)
    command = json.loads(first)["command"]
    assert f"'{FORMULA}'" in command
    assert printed(shlex.split(command)[1:], capsys) == first


def test_a_captured_head_is_inspected_under_a_formula(capsys: Captured) -> None:
    ours, rule = (
        json.loads(printed(["inspect", SAMPLE, *HEAD, "--scale", scale], capsys))["heads"][1]  # beside the file's
        for scale in ("0.43*log(n)/sqrt(d)", "ssmax")
    )
    assert ours["scale"]["formula"] == "0.43*log(n)/sqrt(d)"
    for name, estimate in rule["measured"].items():
        value = estimate["value"]
        assert ours["measured"][name]["value"] == (value and pytest.approx(value, rel=1e-6)), name


def test_a_replay_of_every_rule_includes_the_formula(capsys: Captured) -> None:
    words = ["inspect", SAMPLE, *HEAD, "--rules", "all", "--scale", "2/sqrt(d)"]
    (head,) = json.loads(printed(words, capsys))["heads"]
    (found,) = (each for each in head["replayed"] if "2/sqrt(d)" in each["rules"])
    assert found["multiplier"] == pytest.approx(2 / 32**0.5)
    assert found["divergence"] > 0
    assert "leave out --scale" in refusal([*words[:-1], "sqrt_d_k"], capsys)


@pytest.mark.parametrize(
    "words", [["report"], ["sweep"], ["rules"], ["softmax"], ["inspect", SAMPLE]], ids=lambda w: w[0]
)
def test_a_faulty_formula_is_refused_with_a_caret_under_the_character(words: list[str], capsys: Captured) -> None:
    assert main([*words, "--scale", "log(n)/sqr(d)"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    line, shown, caret = err.splitlines()
    assert line.startswith(
        "attn-tui: --scale: character 8 of 'log(n)/sqr(d)': unknown name sqr; a formula contains d, n"
    )
    assert shown == "  log(n)/sqr(d)"
    assert caret == "         ^"


def test_an_escape_in_a_formula_is_not_sent_to_the_terminal(capsys: Captured) -> None:
    assert main(["report", "--scale", "1/\x1b[2Jd"]) == 2
    assert "\x1b" not in capsys.readouterr().err
