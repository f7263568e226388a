"""attn-tui report, and attn-tui without a terminal."""

import json
import re
from pathlib import Path

import pytest
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, SMALL, Captured, attn, printed, refusal


def test_a_model_with_a_longer_context_than_measured_says_so(capsys: Captured) -> None:
    note = "longest context 163,840, measured at 16 keys"
    words = ["report", "--model", "deepseek-v3", "--batch", "2", "--n-queries", "4", "--n-keys", "16"]
    assert note in printed(words, capsys).replace("\n", " ")
    assert note in printed([*words, "--format", "markdown"], capsys)
    assert json.loads(printed([*words, "--format", "json"], capsys))["notes"] == [note]
    for model in (["--model", "gpt2", "--n-keys", "1024"], []):
        assert "notes" not in json.loads(printed(["report", *SMALL, *model, "--format", "json"], capsys))


def test_the_table_has_a_title_both_columns_a_summary_and_histograms(capsys: Captured) -> None:
    table = printed(["report", *SMALL, "--components", "uniform", "--std-q", "2"], capsys)
    assert table.startswith("d_k 8 · keys 16 · queries 4 · batch 2 · scale 1/√d_k · components uniform")
    assert "std of q 2" in table
    assert "Unscaled, " in table
    assert "attention weights" in table
    assert re.search(r"unscaled × 1 +theory +scaled × 0.354 \(1/√d_k\) +theory", table)
    assert all(line == line.rstrip() for line in table.splitlines())


def test_parameters_arrive(capsys: Captured) -> None:
    words = ["--components", "student_t", "--degrees-of-freedom", "7", "--mean-q", "-1e-3", "--correlation", "-.5"]
    words += ["--mask", "causal", "--seed=9", "--scale", "d_k"]
    parameters = json.loads(printed(["report", *SMALL, *words, "--format", "json"], capsys))["parameters"]
    expected = {"components": "student_t", "degrees_of_freedom": 7, "mean_q": -0.001, "correlation": -0.5, "seed": 9}
    assert parameters.items() >= (expected | {"mask": "causal", "scale": "d_k", "d_k": 8, "batch": 2}).items()


def test_a_model_sets_parameters_that_other_options_override(capsys: Captured) -> None:
    words = ["report", "--model", "gpt-oss-120b", "--batch", "2", "--n-queries", "4", "--n-keys", "16"]
    found = json.loads(printed([*words, "--format", "json"], capsys))
    expected = {"model": "gpt-oss-120b", "d_k": 64, "scale": "yarn", "context_factor": 32.0, "sink": "logit"}
    assert found["parameters"].items() >= (expected | {"n_keys": 16}).items()
    assert found["columns"][1]["scale"]["multiplier"] == pytest.approx(0.22666, rel=1e-4)
    assert printed(words, capsys).startswith("model gpt-oss 120B, changed · d_k 64 · keys 16 ·")


@for_each(
    ("name", "meant"),
    [
        ("gema-2-27b", "gemma-2-27b"),
        ("Gemma 2 27B", "gemma-2-27b"),
        ("gpt-oss-12b", "gpt-oss-120b"),
        ("xyz", ""),
        ("gpt_oss", "gpt-oss-20b"),
        ("gptoss120b", "gpt-oss-120b"),
        ("llama3", "llama-3-8b"),
        ("PHI3mini", "phi-3-mini"),
        ("qwen_25_7b", "qwen2.5-7b"),
        ("kimi_k3", "kimi-k2"),
    ],
)
def test_an_unknown_model_is_refused_in_one_line(name: str, meant: str, capsys: Captured) -> None:
    assert main(["report", "--model", name]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    said = f" (did you mean {meant}?)" if meant else "; --help lists all"
    assert line == f"attn-tui: --model: unknown model {name!r}{said}"


def test_a_word_is_completed_before_another_one_is_suggested(capsys: Captured) -> None:
    assert main(["report", "--precision", "float8"]) == 2
    assert "did you mean float8_e4m3fn?" in capsys.readouterr().err
    assert main(["report", "--precision", "BF16"]) == 2
    assert "did you mean bfloat16?" in capsys.readouterr().err


@for_each("words", [["--scale", "0.05"], ["--scale", "custom", "--multiplier", "0.05"], ["--multiplier", "0.05"]])
@for_each("command", [["report", *SMALL], ["inspect", SAMPLE, "--layer", "1", "--head", "2"]])
def test_a_scale_can_be_a_number(command: list[str], words: list[str], capsys: Captured) -> None:
    found = json.loads(printed([*command, *words, "--format", "json"], capsys))
    scales = [entry["scale"] for entry in found.get("columns", found.get("heads"))]
    assert {"rule": "custom", "formula": "0.05", "multiplier": 0.05} in scales


@pytest.mark.parametrize(("words", "command"), [(SMALL, "report"), ((SAMPLE,), "inspect")])
def test_without_a_terminal_the_app_prints_what_the_command_prints(
    words: tuple[str, ...], command: str, capsys: Captured
) -> None:
    assert printed(words, capsys) == printed([command, *words], capsys)


def test_options_without_effect_are_noted(capsys: Captured) -> None:
    for command in (["report"], []):
        words = [*command, *SMALL, "--degrees-of-freedom", "7", "--scale", "d_k", "--multiplier", "2"]
        assert main(words) == 0
        notes = capsys.readouterr().err.splitlines()
        assert [line.split()[:3] for line in notes] == [
            ["attn-tui:", "note:", option] for option in ("--multiplier", "--degrees-of-freedom")
        ]


def test_settings_do_not_change_what_is_printed_without_a_terminal(own_config: Path) -> None:
    plain = attn()
    (own_config / "attn-tui").mkdir()
    (own_config / "attn-tui" / "config.toml").write_text("ascii = true\n[parameters]\nseed = 5\n")
    assert attn(env={"ATTN_TUI_SEED": "6", "ATTN_TUI_THEME": "mauve"}).stdout == plain.stdout


def test_a_dry_run_says_how_long_a_report_takes(capsys: Captured) -> None:
    words = ["report", "--n-keys", "8192", "--n-queries", "8192", "--batch", "1000", "--dry-run"]
    assert re.fullmatch(r"about [\d.]+ core-hours\n", printed(words, capsys))
    assert re.fullmatch(r"about [\d.]+ seconds of one core\n", printed(["report", *SMALL, "--dry-run"], capsys))


def test_too_many_keys_are_refused_with_how_many_there_may_be(capsys: Captured) -> None:
    assert "from 1 to 1048576, not '2M'" in refusal(["report", "--n-keys", "2M"], capsys)
    assert "at most 65536" in refusal(["report", "--n-keys", "128k", "--d-k", "2k"], capsys)
    assert refusal(["report", "--n-keys", "0"], capsys).endswith("not '0'")
