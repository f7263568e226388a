"""The README shows what its commands print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import README

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```console\n\$ ([^\n]*)\n(.*?)```", README, re.DOTALL)


def lines(text: str) -> list[str]:
    """Return the lines that are not blank, with long numbers rounded: their last digits depend on the machine."""
    rounded = re.sub(r"\d+\.\d{9,}", lambda number: f"{float(number[0]):.8f}", text)
    return [line.rstrip() for line in rounded.splitlines() if line.strip()]


def test_there_are_commands() -> None:
    assert len(BLOCKS) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_prints_what_the_readme_shows(command: str, shown: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    printed = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path},
    )
    assert printed.stderr == ""
    assert lines(printed.stdout) == lines(shown)
