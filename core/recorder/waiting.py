"""In a program that is being recorded: start the recorder as soon as PyTorch is imported, and report at the end."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .imports import after_import
from .options import VARIABLE, Options

if TYPE_CHECKING:
    from .recorder import Recorder


def wait() -> None:
    """Wait for the import of PyTorch."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    options = Options.from_json(text)
    if os.getpid() == options.process:
        atexit.register(_say_if_unused, options)
    after_import("torch", lambda: _start(options))


def _start(options: Options) -> None:
    try:
        from .recorder import Recorder

        Recorder(options, report=_report).start()
    except Exception as error:
        say(f"cannot record: {type(error).__name__}: {error}")


def _report(recorder: Recorder) -> None:
    """Say what was recorded. Processes that recorded nothing speak only if no other one recorded anything."""
    options = recorder.options
    first = os.getpid() == options.process
    if recorder.files or ((first or recorder.session.passes) and not _written(options)):
        say(recorder.summary)


def _say_if_unused(options: Options) -> None:
    if "torch" not in sys.modules and not _written(options):
        say("nothing recorded: the program did not import PyTorch")


def _written(options: Options) -> bool:
    """Return whether some process of this run wrote a file."""
    path = Path(options.path)
    folder, pattern = (path.parent, f"{path.stem}*{path.suffix}") if options.one_file else (path, "**/*.safetensors")
    try:
        return any(file.stat().st_mtime >= options.since for file in folder.glob(pattern))
    except OSError:
        return False


def say(text: str) -> None:
    """Print lines on stderr; never raise."""
    try:
        sys.stderr.write("".join(f"attn-tui: {line}\n" for line in text.splitlines()))
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
