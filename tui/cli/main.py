"""The entry point: find the command, run it, and report errors in one line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ...core.errors import NO_MEMORY, InputError
from .. import tuning
from . import output
from .commands.catalogue import COMMANDS

_FAULT = 1
_REFUSED = 2
_INTERRUPTED = 130
_READER_GONE = 141


def program() -> NoReturn:
    """Run attn-tui as a process and exit.

    The process exits as soon as its output is flushed. The interpreter's own exit would first wait for thread pools
    to finish computations whose results are no longer needed.
    """
    code = main()
    with suppress(OSError, ValueError):  # the reader is gone, or stdout is closed
        output.flush_stdout()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process; return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    ascii_only = "--ascii" in words
    try:
        code = _run(words, ascii_only)
        output.flush_stdout()
        return code
    except InputError as error:
        output.say(str(error), output.screen_glyphs(ascii_only))
    except MemoryError:
        output.say(NO_MEMORY)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        output.drop_stdout()
        return _READER_GONE
    except Exception as error:  # a bug in attn-tui or in a library
        from . import crash

        output.say(crash.report(error, words), output.screen_glyphs(ascii_only))
        return _FAULT
    return _REFUSED


def _run(words: Sequence[str], ascii_only: bool) -> int:
    tuning.set_environment()
    glyphs = output.screen_glyphs(ascii_only)
    try:
        if words and words[0] in COMMANDS:
            return _run_command(words[0], words[1:], ascii_only)
        from . import open_app

        return open_app.run(open_app.parse(words, glyphs), ascii_only)
    except SystemExit:  # after --help and --version
        return 0


def _run_command(name: str, words: Sequence[str], ascii_only: bool) -> int:
    from .help import parser_of

    command = COMMANDS[name].load()
    glyphs = output.screen_glyphs(ascii_only)
    given = parser_of(name, glyphs).read(words)
    request = command.request(given)
    for remark in request.remarks:
        output.say(f"note: {remark}", glyphs)
    path = given.get("output")
    result = output.Output(given.get("format", "table"), None if path in (None, "-") else Path(path), ascii_only)
    return command.run(request, result)
