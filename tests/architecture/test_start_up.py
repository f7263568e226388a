"""What is loaded before anything is asked for: start-up is fast because little is imported."""

import subprocess
import sys

import pytest

HEAVY = {"textual", "rich", "numpy", "scipy"}


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


def test_the_version_is_printed_without_textual_or_scipy() -> None:
    names = loaded("-m", "attn_tui.tui", "--version")
    assert not names & {"textual", "scipy"}
