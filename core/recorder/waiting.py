"""In a program that is being recorded: start the recorder as soon as PyTorch is imported, and report at the end."""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from .imports import ImportWatcher
from .options import VARIABLE, Options, recorded_files
from .reports import ProcessEvent, report, say
from .summary import with_earlier

if TYPE_CHECKING:
    from .recorder import Recorder


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
