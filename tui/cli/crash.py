"""Crash reports: an unexpected error is described in a file, and one line says where. The newest ten are kept."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from ...core.files import write_file
from ...core.message import message

_MOST = 10  # reports, including the new one
_LONGEST = 200  # characters of an error's message in the line; the report has the whole message
_PACKAGES = ("attn-tui", "textual", "rich", "numpy", "ml_dtypes", "threadpoolctl", "platformdirs")
_TERMINAL = ("TERM", "COLORTERM", "TERM_PROGRAM", "COLUMNS", "LINES", "NO_COLOR", "LANG", "LC_ALL", "LC_CTYPE")


def report(error: BaseException, words: Sequence[str]) -> str:
    """Write a crash report for an error and the command line `words`; return the line for stderr."""
    summary = _summary(error)
    try:
        path = _write("".join(_parts(error, words)))
    except Exception as failure:  # a full disk, for example, must not hide the error
        return message(
            "unexpected error: {error}; its report could not be written: {failure}",
            error=summary,
            failure=_summary(failure),
        )
    return message("unexpected error: {error}; full report in {path}", error=summary, path=path)


def _summary(error: BaseException) -> str:
    """Return `ValueError: message` in one line, shortened."""
    line = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def _write(text: str) -> Path:
    """Write a new file in the state directory, readable by the user only; raise OSError."""
    from platformdirs import user_state_path

    folder = user_state_path("attn-tui")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"crash-{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}.txt"
    write_file(text.encode("utf-8", "backslashreplace"), path, replace=False, private=True)
    _make_room(path)
    return path


def _make_room(newest: Path) -> None:
    """Remove the oldest reports, by the times in their names."""
    with suppress(OSError):
        others = sorted(path for path in newest.parent.glob("crash-*-*-*-*-*.txt") if path != newest)
        for old in others[: 1 - _MOST]:
            old.unlink()


def _parts(error: BaseException, words: Sequence[str]) -> Iterator[str]:
    yield "attn-tui ended with an unexpected error.\n\n"
    yield f"time      {time.strftime('%Y-%m-%d %H:%M:%S %z')}\n"
    yield f"command   {shlex.join(['attn-tui', *words])}\n"
    yield f"python    {' '.join(sys.version.split())}\n"
    yield f"system    {platform.platform()}\n"
    yield f"packages  {', '.join(f'{name} {_version(name)}' for name in _PACKAGES)}\n"
    width, height = shutil.get_terminal_size((0, 0))
    known = [f"{name}={os.environ[name]}" for name in _TERMINAL if name in os.environ]
    yield f"terminal  {' '.join([f'{width} x {height}', *known])}\n\n"
    yield from traceback.format_exception(error)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "is missing"
