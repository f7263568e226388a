"""The entry point: find the command, run it, and report errors in one line.

Functions load modules here, because `program` first has to say what Ctrl-C does.
"""

from __future__ import annotations

import os
import sys

from . import interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..language.chosen import Language
    from .output import Output, OutputFormat

_FAULT = 1
_REFUSED = 2
_READER_GONE = 141


def program() -> None:
    """Run attn-tui as a process and exit.

    The process exits as soon as its output is flushed. The interpreter's own exit would first wait for thread pools
    to finish computations whose results are no longer needed.
    """
    interrupts.exit_at_once()
    try:
        code = main()
    except KeyboardInterrupt:  # while an error was reported
        code = interrupts.INTERRUPTED
    interrupts.exit_at_once()
    from contextlib import suppress

    from . import output

    with suppress(OSError, ValueError):  # the reader is gone, or stdout is closed
        output.flush_stdout()
    if util := sys.modules.get("multiprocessing.util"):
        util._run_finalizers(0)  # as at exit: returns semaphores to the system, whose keeper would warn otherwise
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run the command line `argv`, by default that of the process; return the exit code."""
    from ...core.errors import EXHAUSTED, NO_MEMORY, InputError
    from ..language.chosen import of_words
    from . import output

    words = sys.argv[1:] if argv is None else argv
    ascii_only = "--ascii" in words
    language: Language = "en"
    try:
        language = of_words(words, os.environ)
        code = _run(words, ascii_only, language)
        output.flush_stdout()
        return code
    except InputError as error:
        output.say(str(error), output.screen_glyphs(ascii_only, language))
        output.point(error.pointer, output.screen_glyphs(ascii_only, language))
    except MemoryError:
        output.say(NO_MEMORY, output.screen_glyphs(ascii_only, language))
    except KeyboardInterrupt:
        return interrupts.INTERRUPTED
    except BrokenPipeError:
        output.drop_stdout()
        return _READER_GONE
    except Exception as error:
        exhausted = next((line for text, line in EXHAUSTED.items() if text in str(error)), None)
        if exhausted is None:  # a bug in attn-tui or in a library
            from . import crash

            output.say(crash.report(error, words), output.screen_glyphs(ascii_only, language))
            return _FAULT
        output.say(exhausted, output.screen_glyphs(ascii_only, language))
    return _REFUSED


def _run(words: list[str], ascii_only: bool, language: Language) -> int:
    from . import output

    if words in (["--version"], ["-V"]):  # loads no parser
        from ...core import VERSION

        print(f"attn-tui {VERSION}")
        return 0
    from ..terminal import tuning
    from .commands.catalogue import COMMANDS
    from .parser import Finished

    words = _command_first(words)
    row = COMMANDS.get(words[0]) if words else None
    if row is None or row.tuned:
        tuning.set_environment()
    try:
        if row is not None:
            return _run_command(row.name, words[1:], ascii_only, language)
        from . import open_app

        request = open_app.parse(words, output.screen_glyphs(ascii_only, language))
        return open_app.run(request, ascii_only, language)
    except Finished:
        return 0


def _command_first(words: list[str]) -> list[str]:
    """Return the words with the command before the options of the screen, which may also stand before it."""
    from ..language.chosen import OPTION
    from .commands.catalogue import COMMANDS

    at = 0
    while at < len(words) and (words[at] in ("--ascii", OPTION) or words[at].startswith(f"{OPTION}=")):
        at += 1 + (words[at] == OPTION)
    before, after = words[:at], words[at:]
    return [after[0], *before, *after[1:]] if after and after[0] in COMMANDS else words


def _run_command(name: str, words: list[str], ascii_only: bool, language: Language) -> int:
    from ...core.errors import InputError
    from ...core.message import message, short
    from . import output
    from .commands.catalogue import COMMANDS
    from .help import parser_of

    command = COMMANDS[name].load()
    glyphs = output.screen_glyphs(ascii_only, language)
    parser = parser_of(name, glyphs)
    given = parser.read(words)
    request = command.request(given)
    for remark in request.remarks:
        output.say(message("note: {remark}", remark=remark), glyphs)
    where = _output(given, parser.formats)._replace(ascii_only=ascii_only, language=language)
    parts = given.get("resume")
    is_resumed = parts is not None and os.path.exists(parts)
    try:
        return command.run(request, where)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, InputError) or not is_resumed:
            raise
        raise InputError(
            "{path}: its parts cannot be used ({error}); remove the file", path=parts, error=short(repr(error))
        ) from error


def _output(given: dict[str, Any], formats: Sequence[str]) -> Output:
    """Return where the result goes, and in which of these formats."""
    from pathlib import Path

    from ...core.message import message, name
    from ...core.questions.parse import UsageError
    from .output import CONVERTED, ENDINGS, FIGURE, PARQUET, Output

    path, parts = given.get("output"), given.get("resume")
    format: OutputFormat | None = given.get("format")
    if path in (None, "-"):
        return Output(format or "table")
    if parts is not None and os.path.realpath(path) == os.path.realpath(parts):
        raise UsageError("-o {path}: is the file of finished parts of --resume", path=path)
    if not path:
        raise UsageError("{option}: {reason}", option="-o", reason=message("must have a value"))
    if str(path).endswith(PARQUET):
        if "csv" not in formats:
            raise UsageError(
                "-o {path}: a .parquet file has the rows of CSV, and this command prints no csv", path=path
            )
        if format not in (None, "csv"):
            raise UsageError(
                "-o {path}: a .parquet file has the rows of CSV; leave out --format {format}",
                path=path,
                format=name(format),
            )
        format = "csv"
    if str(path).endswith((FIGURE, *CONVERTED)):
        if "svg" not in formats:
            raise UsageError("-o {path}: only attn-tui sweep draws figures", path=path)
        if format not in (None, "svg"):
            raise UsageError("-o {path}: is a figure; leave out --format {format}", path=path, format=name(format))
        format = "svg"
    ending = os.path.splitext(path)[1].lower()
    if ending in ENDINGS:
        if ENDINGS[ending] not in formats:
            raise UsageError("-o {path}: this command prints no {format}", path=path, format=name(ENDINGS[ending]))
        format = format or ENDINGS[ending]
    return Output(format or "table", Path(path), overwrite=bool(given.get("overwrite")))
