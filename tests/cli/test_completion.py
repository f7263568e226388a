"""attn-tui completion: scripts that shells accept, and what they complete."""

import subprocess
from pathlib import Path
from shutil import which

import pytest
from attn_tui.core.parameters import FIELD
from attn_tui.core.scales import SCALE_RULES
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from cases import for_each
from cli_runner import Captured, assert_refused, printed

SHELLS = [
    pytest.param(shell, marks=pytest.mark.skipif(which(shell) is None, reason=f"{shell} is not installed"))
    for shell in ("bash", "zsh", "fish")
]

# Code that prints the completions of the last word. Zsh completes only on a terminal.
COMPLETE = {
    "bash": 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_attn_tui; echo "${COMPREPLY[*]}"',
    "fish": "source $argv[1]; complete --do-complete (string join -- ' ' $argv[2..]) | string split -f 1 \\t",
}


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: Captured) -> Path:
    """The script for the shell that the test is parametrized with."""
    file = tmp_path / "attn-tui"
    file.write_text(printed(["completion", request.getfixturevalue("shell")], capsys))
    return file


def output_of(shell: str, *words: str) -> str:
    """What a shell without start-up files prints."""
    alone = {"bash": "--norc", "zsh": "--no-rcs", "fish": "--no-config"}[shell]
    done = subprocess.run([shell, alone, *words], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_accepts_the_script(shell: str, script: Path) -> None:
    output_of(shell, "-n", str(script))
    assert all(name in script.read_text() for name in (*COMMANDS, *SCALE_RULES))


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shell.values[0] in COMPLETE])
@for_each(
    ("words", "completed"),
    [
        (["com"], ["compare", "completion"]),
        (["report", "--prec"], ["--precision"]),
        (["sweep", "--mask", "c"], ["causal"]),
        (["report", "--precision", ""], FIELD["precision"].choices),
        (["rules", "--format", "mark"], ["markdown"]),
        (["completion", "z"], ["zsh"]),
        (["--theme", "attn"], ["attn-dark", "attn-light"]),
        (["check", "--executor", "s"], ["serial"]),
        (["sweep", "--statistics", "entropy,dea"], ["entropy,dead_rows"]),
        (["help", "mod"], ["models"]),
    ],
)
def test_commands_options_and_values_are_completed(
    shell: str, words: list[str], completed: list[str], script: Path
) -> None:
    found = output_of(shell, "-c", COMPLETE[shell], str(script), "attn-tui", *words)
    assert {*found.split()} == {*completed}


def test_an_unknown_shell_is_refused_in_one_line(capsys: Captured) -> None:
    assert_refused(["completion", "tcsh"], "SHELL: … one of bash, zsh, fish … 'tcsh'", capsys)
