"""What is loaded before anything is asked for: start-up is fast because little is imported."""

import subprocess
import sys

import pytest

HEAVY = {"textual", "rich", "numpy", "scipy", "safetensors", "ml_dtypes", "threadpoolctl"}


def loaded(*arguments: str) -> set[str]:
    """The top-level names of all that a Python process imports; it must end well."""
    command = [sys.executable, "-X", "importtime", *arguments]
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert process.returncode == 0, process.stderr
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().split(".")[0] for line in lines}


@pytest.mark.parametrize("module", ["attn_tui.core", "attn_tui.core.parameters"])
def test_parameters_need_neither_terminal_nor_numpy(module: str) -> None:
    assert "attn_tui" in (names := loaded("-c", f"import {module}"))
    assert not names & HEAVY


def test_an_experiment_needs_numpy_alone() -> None:
    names = loaded("-c", "import attn_tui.core.lab.experiment")
    assert names & HEAVY == {"numpy"}


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["report", "--help"]], ids=" ".join)
def test_what_needs_no_numbers_is_printed_without_anything_heavy(words: list[str]) -> None:
    assert not loaded("-m", "attn_tui.tui", *words) & HEAVY


def test_the_app_is_there_before_numpy() -> None:
    assert loaded("-c", "import attn_tui.tui.app") & HEAVY == {"textual", "rich"}


def test_theory_needs_numpy_alone() -> None:
    assert loaded("-c", "import attn_tui.core.lab.theory") & HEAVY == {"numpy"}


def test_a_report_is_printed_without_textual_or_scipy() -> None:
    names = loaded("-m", "attn_tui.tui", "report", "--batch", "2")
    assert "numpy" in names
    assert not names & {"textual", "scipy"}
