"""The README shows what its commands print."""

import re
import shlex

import pytest
from cli_runner import README, Captured, printed

SWEEPS = re.findall(r"```console\n\$ attn-tui (sweep [^\n]*)\n(.*?)```", README, re.DOTALL)


def test_the_reports_are_what_the_command_prints(capsys: Captured) -> None:
    asked = ["report", "--n-keys", "10", "--format", "markdown", "--d-k"]
    lines = [line for d_k in ("16", "64", "256") for line in printed([*asked, d_k], capsys).splitlines()]
    shown = re.findall(r"^\| entropy \|.*$", README, re.M)
    assert shown == [line for line in lines if line.startswith("| entropy |")]
    assert shown


def test_there_are_sweeps() -> None:
    assert SWEEPS


@pytest.mark.parametrize(("command", "text"), SWEEPS)
def test_the_sweeps_are_what_the_command_prints(command: str, text: str, capsys: Captured) -> None:
    lines = printed(shlex.split(command), capsys).splitlines()
    assert [line for line in text.splitlines() if line.strip()] == [line for line in lines if line.strip()]
