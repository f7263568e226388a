"""attn-tui diagnose: verdicts on the heads of a file."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, SMALL, WRONG, Captured, printed, refusal


def verdicts(words: list[str], capsys: Captured) -> dict[tuple[str, int], tuple[str, str | None]]:
    heads = json.loads(printed(["diagnose", *words, "--format", "json"], capsys))["heads"]
    return {(each["layer"], each["head"]): (each["verdict"], each["cause"]) for each in heads}


def test_every_head_of_a_file_has_a_verdict(capsys: Captured) -> None:
    found = verdicts([WRONG], capsys)
    assert {found["0", head] for head in range(6)} == {("healthy", None)}
    assert {found["1", head] for head in range(6)} == {("cause", "scale-missing")}
    expected = ["scale-twice", None, "scale-quarter", "softcap-extra", "scale-other", None]
    assert [found["2", head][1] for head in range(6)] == expected
    assert {found["3", head] for head in range(6)} == {("no-evidence", None)}


def test_every_format_says_the_same(capsys: Captured) -> None:
    words = ["diagnose", WRONG, "--layer", "2", "--head", "0"]
    [row] = csv.DictReader(io.StringIO(printed([*words, "--format", "csv"], capsys)))
    assert (row["cause"], row["also"]) == ("scale-twice", "scale-1-over-d")
    assert "scale-twice = scale-1-over-d" in printed([*words, "--format", "markdown"], capsys)
    table = printed(words, capsys)
    assert "scale-twice, or scale-1-over-d" in table
    for words in ("layer 2, head 0", "× 0.03125", "× 0.1768 = 1/√32"):
        assert words in table


def test_layers_and_heads_that_agree_share_a_line(capsys: Captured) -> None:
    table = printed(["diagnose", WRONG], capsys)
    lines = [re.split(r"  +", line.strip()) for line in table.splitlines() if re.match(r" +\d", line)]
    assert [(*line[:3], line[-1]) for line in lines] == [
        ("0", "0–5", "× 0.1768", "right"),
        ("1", "0–5", "× 1", "scale-missing"),
        ("2", "0", "× 0.03125", "scale-twice"),
        ("2", "1 and 5", "× 0.1768", "right"),
        ("2", "2", "× 0.4204", "scale-quarter"),
        ("2", "3", "—", "softcap-extra"),
        ("2", "4", "× 0.1874", "scale-other"),
        ("3", "0–5", "—", "no-evidence"),
    ]
    assert table.endswith("24 heads: 10 wrong, 8 right, 6 without evidence\n")


def test_queries_and_keys_alone_are_no_evidence(capsys: Captured) -> None:
    assert set(verdicts([SAMPLE, "--layer", "0"], capsys).values()) == {("no-evidence", None)}
    table = printed(["diagnose", SAMPLE, "--layer", "0"], capsys)
    assert "inspect FILE --rules all" in table.replace("\n", " ")
    assert "--rules all" not in printed(["diagnose", WRONG, "--layer", "1"], capsys)


def test_the_app_judges_a_file_against_what_is_expected_where_it_cannot_open(capsys: Captured) -> None:
    assert printed([WRONG, "--expect", "1/d"], capsys) == printed(["diagnose", WRONG, "--expect", "1/d"], capsys)
    assert main(["--expect", "1/d", *SMALL]) == 0
    assert "--expect has no effect" in capsys.readouterr().err


def test_a_configuration_says_what_is_expected(tmp_path: Path, capsys: Captured) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "granite", "attention_multiplier": 0.03125}')
    found = verdicts([WRONG, "--layer", "2", "--config", str(config)], capsys)
    assert found["2", 0] == ("healthy", None)
    assert found["2", 1][0] == "cause"
    config.write_text("{")
    assert "config.json: is not JSON" in refusal(["diagnose", WRONG, "--config", str(config)], capsys)
    assert "no such file" in refusal(["diagnose", WRONG, "--config", str(tmp_path / "other")], capsys)


@pytest.mark.parametrize("side", ["q", "lse"])
def test_numbers_that_are_not_finite_are_named_at_birth(side: str, tmp_path: Path, capsys: Captured) -> None:
    rng = np.random.default_rng(0)
    arrays = {"q": rng.normal(size=(1, 2, 12, 8)), "k": rng.normal(size=(1, 2, 12, 8))}
    z = arrays["q"] @ arrays["k"].swapaxes(-1, -2) / np.sqrt(8)
    arrays["lse"] = np.log(np.exp(z).sum(axis=-1))
    arrays[side][0, 1, 3] = np.nan
    file = tmp_path / "capture.npz"
    named: dict[str, Any] = {
        f"layers.{layer}.attn.{name}": array for layer in (0, 1) for name, array in arrays.items()
    }
    np.savez(file, **named)
    found = json.loads(_out(["diagnose", str(file), "--format", "json"], capsys))["heads"]
    assert [each["cause"] for each in found] == [None, "not-finite", None, None]
    assert [each["verdict"] for each in found] == ["healthy", "cause", "healthy", "undecided"]
    assert "layer 0" in found[3]["says"]
    assert side in found[1]["says"]


def _out(words: list[str], capsys: Captured) -> str:
    """What is printed beside notes on the file."""
    assert main(words) == 0
    return capsys.readouterr().out


def test_mistakes_are_refused_in_one_line(capsys: Captured) -> None:
    assert "no layer 9" in refusal(["diagnose", WRONG, "--layer", "9"], capsys)
    assert "--head" in refusal(["diagnose", WRONG, "--head", "x"], capsys)
    assert "no such file" in refusal(["diagnose", "nothing.npz"], capsys)
