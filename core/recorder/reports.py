"""What the processes of a recorded run report: to the user on stderr, and to the process that waits for the end.

The witness, as that process is called here, reads a pipe, which others open by its path in /proc: no disk has to be
writable. Only what fits into the pipe at once is written, so that reports of several processes do not mix.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .imports import ImportWatcher
from .options import VARIABLE, Options, recorded_files
from .summary import with_earlier

if TYPE_CHECKING:
    from .recorder import Recorder


_MOST = 900  # characters: with four bytes each, fewer than a pipe takes at once


class ProcessEvent(Enum):
    """What happened in a process."""

    LOADED = "the recorder was loaded"
    IMPORTED = "PyTorch was imported"
    SAID = "what was recorded, or why nothing was, is on stderr"
    UNSAID = "the same, but stderr is closed"
    SAW_PASSES = "passes were seen, and nothing was recorded"
    SAW_NOTHING = "no pass was seen"
    ENDED = "the exit handlers ran"


class ProcessReport(NamedTuple):
    """One report of a process."""

    process: int
    event: ProcessEvent
    words: str


def report(options: Options, event: ProcessEvent, words: str = "") -> None:
    """Tell the witness, if there is one and it can be reached."""
    if options.reports is None:
        return
    path, link = options.reports
    with suppress(OSError):
        if os.readlink(path) != link:  # in another container, the path may be that of another process
            return
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        try:
            line = json.dumps([os.getpid(), event.name, words[:_MOST]], ensure_ascii=False)
            os.write(pipe, line.encode("utf-8", "surrogateescape") + b"\n")
        finally:
            os.close(pipe)


def reports_in(text: bytes) -> list[ProcessReport]:
    """Return what was reported."""
    lines = map(json.loads, text.decode("utf-8", "surrogateescape").splitlines())
    return [ProcessReport(process, ProcessEvent[event], words) for process, event, words in lines]


def say(options: Options, text: str) -> None:
    """Print lines on stderr, and report them; never raise."""
    event = ProcessEvent.SAID
    try:
        sys.stderr.write("".join(f"attn-tui: {line}\n" for line in text.splitlines()))
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        event = ProcessEvent.UNSAID
    report(options, event, text)


def wait() -> None:
    """Wait for the import of PyTorch."""
    text = os.environ.get(VARIABLE)
    if text is None:
        return
    options = Options.from_json(text)
    report(options, ProcessEvent.LOADED)
    atexit.register(_end, options)
    ImportWatcher("torch", lambda: _start(options)).start()


def _start(options: Options) -> None:
    report(options, ProcessEvent.IMPORTED)
    try:
        from .recorder import Recorder

        Recorder(options, report=_report).start()
    except Exception as error:
        say(options, f"cannot record: {type(error).__name__}: {error}")


def _report(recorder: Recorder) -> None:
    """Say what was recorded. Of processes that recorded nothing, a witness says what the most telling one saw."""
    options = recorder.options
    passes = recorder.session.passes
    if recorder.files or (_is_first(options) and passes and not _recorded(options)):
        say(options, recorder.summary)
    elif options.reports is not None:
        report(options, ProcessEvent.SAW_PASSES if passes else ProcessEvent.SAW_NOTHING, recorder.summary)
    elif (_is_first(options) or passes) and not _recorded(options):
        say(options, recorder.summary)


def _end(options: Options) -> None:
    if options.reports is None and "torch" not in sys.modules and _is_first(options) and not _recorded(options):
        say(options, with_earlier("nothing recorded: the program did not import PyTorch", options))
    report(options, ProcessEvent.ENDED)


def _is_first(options: Options) -> bool:
    """Return whether this process is the one that the command became."""
    return os.getpid() == options.process


def _recorded(options: Options) -> bool:
    """Return whether some process of this run wrote a file."""
    with suppress(OSError):  # such as too many open files
        return any(recorded_files(options))
    return False
