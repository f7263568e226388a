"""What is loaded before anything is asked for: start-up is fast because little is imported."""

import subprocess
import sys

import pytest

HEAVY = {"textual", "rich", "numpy", "scipy", "safetensors", "ml_dtypes", "threadpoolctl"}


def loaded(*arguments: str) -> set[str]:
    """The top-level names of all that a Python process imports."""
    return {name.partition(".")[0] for name in modules(*arguments)}


def modules(*arguments: str) -> set[str]:
    """The names of all that it imports; it must end well."""
    command = [sys.executable, "-X", "importtime", *arguments]
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    assert process.returncode == 0, process.stderr
    lines = [line for line in process.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


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


FIRST_RESULTS = """
import asyncio, sys
from attn_tui.core.parameters import Parameters
from attn_tui.tui import second_process
from attn_tui.tui.app import AttnApp

async def script():
    second_process._side_by_side, second_process._PATIENCE = lambda: True, 1e12
    second, p = second_process.SecondProcess(), Parameters(n_keys=16, n_queries=8, batch=2)
    second.begin(p)
    app = AttnApp(p, second=second)
    async with app.run_test(size=(120, 40)) as pilot:
        for d_k, key in ((p.d_k, ""), (p.d_k + 1, "right"), (2 * p.d_k, "up")):
            await pilot.press(*([key] if key else []))
            while not (app.lab.theory and app.lab.measurement.subject.d_k == d_k):
                await pilot.pause(0.01)
    second.close()
    print("numpy" in sys.modules)

asyncio.run(asyncio.wait_for(script(), 30))
"""


def test_where_a_second_process_measures_the_lab_needs_no_numpy() -> None:
    command = [sys.executable, "-c", FIRST_RESULTS]
    process = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert process.stdout == "False\n", process.stderr


def test_theory_needs_numpy_alone() -> None:
    assert loaded("-c", "import attn_tui.core.lab.theory") & HEAVY == {"numpy"}


def test_a_report_is_printed_without_textual_or_scipy() -> None:
    names = loaded("-m", "attn_tui.tui", "report", "--batch", "2")
    assert "numpy" in names
    assert not names & {"textual", "scipy"}


def test_options_of_the_app_load_nothing_that_only_commands_need() -> None:
    ask = "from attn_tui.tui import options, output; options.parse({}, output.screen_glyphs(False))"
    only_theirs = {f"attn_tui.tui.{name}" for name in ("command_options", "requests", "sweep_options")}
    assert not modules("-c", ask.format(["--no-config", "--d-k", "128"])) & only_theirs
    assert modules("-c", ask.format(["report", "--d-k", "128"])) >= only_theirs
