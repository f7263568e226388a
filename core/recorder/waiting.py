"""In a program that is being recorded: start the recorder as soon as PyTorch is imported, and report at the end."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from .imports import Waiting
from .options import VARIABLE, Options, files_of

if TYPE_CHECKING:
    from .recorder import Recorder

_messages = ""  # the file that keeps what is said


def wait() -> None:
    """Wait for the import of PyTorch."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    global _messages
    options = Options.from_json(text)
    _messages = options.messages
    if os.getpid() == options.process:
        atexit.register(_say_if_unused, options)
    Waiting("torch", lambda: _start(options)).start()


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
    return any(files_of(options, options.since))


def say(text: str) -> None:
    """Print lines on stderr, and keep them for the end of the run; never raise."""
    with suppress(OSError):
        if _messages:
            with open(_messages, "a", encoding="utf-8", errors="replace") as file:
                file.write(f"{text}\n")
    try:
        sys.stderr.write("".join(f"attn-tui: {line}\n" for line in text.splitlines()))
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass
