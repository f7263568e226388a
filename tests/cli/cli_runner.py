"""Run commands: in this process where that is enough, or in another one."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.captures.capture import sample_path
from attn_tui.tui.cli.commands.catalogue import COMMANDS
from attn_tui.tui.cli.help import parser_of
from attn_tui.tui.cli.main import main
from attn_tui.tui.cli.parser import CliCommand
from attn_tui.tui.views.glyphs import UNICODE

COMMAND = (sys.executable, "-m", "attn_tui")
README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
SAMPLE = str(sample_path())
WRONG = str(Path(__file__).parents[1] / "data" / "wrong-scale.safetensors")
SMALL = ("--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2")

Captured = pytest.CaptureFixture[str]


@cache
def _parts(module: str) -> str:
    """Return the file of finished parts of a module's tests."""
    folder = tempfile.mkdtemp(prefix=module)
    atexit.register(shutil.rmtree, folder)
    return f"{folder}/parts"


def kept(words: Sequence[str], module: str) -> list[str]:
    """Return the command; tests of one module measure each part of its work once and share it by --resume."""
    resumes = words[0] in ("sweep", "rules", "inspect", "diagnose", "compare", "check", "claims")
    return [*words, "--resume", _parts(module)] if resumes else [*words]


def out_of(words: Sequence[str], module: str, capsys: Captured) -> str:
    """Return what a command whose parts are shared prints on stdout, whatever its exit code."""
    main(kept(words, module))
    return capsys.readouterr().out


def printed(words: Sequence[str], capsys: Captured) -> str:
    """What these words print on stdout; nothing may be printed on stderr."""
    assert main([*words]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refusal(words: Sequence[str], capsys: Captured) -> str:
    """The one line with which these words are refused."""
    assert main([*words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("attn-tui: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("attn-tui: ").strip()


def assert_refused(words: Sequence[str], pieces: str, capsys: Captured) -> None:
    """These words are refused in one line that has all these pieces, which are separated by ` … `."""
    line = refusal(words, capsys)
    assert all(piece in line for piece in pieces.split(" … ")), line


def request_of(command: str, *words: str) -> Any:
    """The request that these words make."""
    loaded: CliCommand[Any] = COMMANDS[command].load()
    return loaded.request(parser_of(command, UNICODE).read(words))


def attn(
    *words: str,
    env: Mapping[str, str] | None = None,
    stdout: int = subprocess.PIPE,
    first: Callable[[], object] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """attn-tui in another process, with a locale that shows Unicode unless `env` says otherwise."""
    unset = ("LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS")
    usual = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**usual, "LANG": "C.UTF-8", **(env or {})},
        timeout=300,
        check=False,
        preexec_fn=first,
    )


def python(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python code in another process."""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
