"""What a process loads: start-up is fast because little is imported, and the process that paints never has NumPy."""

import subprocess
import sys

import pytest

HEAVY = {"textual", "rich", "numpy", "scipy", "safetensors", "ml_dtypes", "threadpoolctl", "shtab"}


def loaded(code: str) -> set[str]:
    """The names of all modules that a Python process has loaded after this code."""
    command = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules, file=sys.stderr)"]
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    return set(process.stderr.splitlines()[-1].split())


def run_with(*words: str) -> str:
    return f"from attn_tui.tui.cli.main import main; main({[*words]})"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "needs"),
    [
        ("attn_tui.core.parameters", set[str]()),
        ("attn_tui.core.captures.files", set[str]()),
        ("attn_tui.core.learning.claim", set[str]()),
        ("attn_tui.core.lab.results", set[str]()),
        ("attn_tui.core.lab.experiment", {"numpy"}),
        ("attn_tui.core.theory.predict", {"numpy"}),
        ("attn_tui.tui.compute.process", set[str]()),
        ("attn_tui.tui.app.app", {"textual", "rich"}),
    ],
)
def test_what_a_module_needs(module: str, needs: set[str]) -> None:
    names = loaded(f"import {module}")
    assert "attn_tui" in names
    assert names & HEAVY == needs


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["report", "--help"]], ids=" ".join)
def test_what_needs_no_numbers_is_printed_without_anything_heavy(words: list[str]) -> None:
    assert not loaded(run_with(*words)) & HEAVY


def test_a_report_is_printed_without_textual_or_scipy() -> None:
    names = loaded(run_with("report", "--batch", "2"))
    assert "numpy" in names
    assert not names & {"textual", "scipy"}


def test_a_command_loads_no_other_command() -> None:
    folder = "attn_tui.tui.cli.commands"
    found = {name for name in loaded(run_with("cost")) if name.startswith(folder + ".")}
    assert found == {f"{folder}.catalogue", f"{folder}.cost"}


EVERY_PANE = """
import asyncio, sys
from attn_tui.core.parameters import Parameters
from attn_tui.tui.app.app import AttnApp
from attn_tui.tui.compute.process import ProcessEngine
from attn_tui.tui.panes.catalogue import PANES
from attn_tui.tui.panes.pane import Pane

async def script():
    asked, answered = set(), set()
    ask, show = ProcessEngine.ask, Pane.on_answered
    ProcessEngine.ask = lambda *given, receive: (asked.add(receive.__self__.NAME), ask(*given, receive=receive))
    Pane.on_answered = lambda pane, message: (answered.add(pane.NAME), show(pane, message))
    engine = ProcessEngine()
    engine.start()
    app = AttnApp(Parameters(n_keys=16, n_queries=8, batch=2), engine)
    async with app.run_test(size=(120, 40)) as pilot:
        for name in PANES:
            app.action_pane(name)
            await pilot.press("right", "up", "v")
            while asked - answered:
                await pilot.pause(0.01)
    engine.close()
    print("numpy" in sys.modules, answered >= {"Lab", "Sweep", "Softmax", "Rules", "Capture", "Learn"})

asyncio.run(asyncio.wait_for(script(), 60))
"""


@pytest.mark.slow
def test_the_process_that_paints_never_loads_numpy() -> None:
    command = [sys.executable, "-c", EVERY_PANE]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert process.stdout == "False True\n", process.stderr
