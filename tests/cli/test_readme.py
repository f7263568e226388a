"""The READMEs show what their commands print, each in its language."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import README

ROOT = Path(__file__).parents[2]
CHINESE = (ROOT / "README.zh.md").read_text("utf-8")
BLOCKS = [
    (language, *block)
    for language, page in (("en", README), ("zh", CHINESE))
    for block in re.findall(r"```console\n\$ ([^\n]*)\n(.*?)```", page, re.DOTALL)
    if (language, block[0]) != ("zh", "attn-tui claims | tail -2")  # tests/cli/test_chinese.py has it
]


def lines(text: str) -> list[str]:
    """Return the lines that are not blank."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_there_are_commands() -> None:
    assert len(BLOCKS) > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "command", "shown"), BLOCKS, ids=[f"{language}: {command}" for language, command, _ in BLOCKS]
)
def test_a_command_prints_what_the_readme_shows(language: str, command: str, shown: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    printed = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": path, "ATTN_TUI_LANG": language},
    )
    assert printed.stderr == ""
    assert lines(printed.stdout) == lines(shown)
