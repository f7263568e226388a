"""attn-tui on the command line: the app on a terminal, plain output everywhere else, one line for what goes wrong."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ..core.errors import NO_MEMORY, InputError
from ..core.parameters import Parameters
from . import output
from .usage import COMMANDS, OpenApp
from .views.glyphs import Glyphs

if TYPE_CHECKING:
    from .requests import Claims, Cost, Inspect, Report, Request, Rules, Softmax, Sweep
    from .second_process import SecondProcess

# Set before NumPy and Textual are loaded: one BLAS thread is the fastest here, and frames follow held keys closely.
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "TEXTUAL_FPS": "240",
}
_FAULT = 1
_REFUSED = 2
_INTERRUPTED = 130
_READER_GONE = 141


def program() -> NoReturn:
    """The process from beginning to end.

    It ends as soon as all that was to be written is on its way. Python's own end would first wait until every pool
    of threads has finished what it is computing, though nobody is left who wants it.
    """
    code = main()
    with suppress(OSError, ValueError):  # nobody reads it any more, or it was closed
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # it is, where it was closed before
            sys.stdout.flush()
    os._exit(code)


def main(argv: list[str] | None = None) -> int:
    """Do what these words ask for; the exit code."""
    words = sys.argv[1:] if argv is None else argv
    ascii_only = "--ascii" in words
    try:
        code = _run(words, ascii_only)
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  # it is, where it was closed
            sys.stdout.flush()
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
    except Exception as error:  # a defect of ours, or of what we lean on
        from . import crash

        output.say(crash.report(error, words), output.screen_glyphs(ascii_only))
        return _FAULT
    return _REFUSED


def _run(words: Sequence[str], ascii_only: bool) -> int:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        request = _request(words, output.screen_glyphs(ascii_only))
    except SystemExit:  # after --help and --version
        return 0
    if isinstance(request, OpenApp):
        if request.file is not None:
            _require_file(request.file)
        if output.is_terminal():
            return _open_app(request, ascii_only)
        request = _plain_request(request)
    for remark in request.remarks:
        output.say(f"note: {remark}", output.screen_glyphs(ascii_only))
    return _print(request, ascii_only)


def _request(words: Sequence[str], glyphs: Glyphs) -> Request:
    """What these words ask for; nothing has to be loaded to see that no words open the app."""
    if not words:
        return OpenApp()
    from .options import parse

    return parse(words, glyphs)


def _print(request: Report | Inspect | Claims | Cost | Softmax | Sweep | Rules, ascii_only: bool) -> int:
    """Have it measured and printed, by what loads NumPy and Rich only now."""
    from .requests import Cost, Inspect, Report, Rules, Softmax, Sweep

    if isinstance(request, Report):
        from .plain.report import report

        return report(request, ascii_only)
    if isinstance(request, Sweep):
        from .plain.sweep import sweep

        return sweep(request, ascii_only)
    if isinstance(request, Rules):
        from .plain.rules import print_rules

        return print_rules(request, ascii_only)
    if isinstance(request, Inspect):
        from .plain.inspect import inspect

        return inspect(request, ascii_only)
    if isinstance(request, Cost):
        from .plain.cost import cost

        return cost(request, ascii_only)
    if isinstance(request, Softmax):
        from .plain.softmax import softmax

        return softmax(request, ascii_only)
    from .plain.claims import claims

    return claims(request, ascii_only)


def _plain_request(request: OpenApp) -> Report | Inspect:
    """What stands in for the app where there is no terminal."""
    from .requests import Inspect, Report

    if request.file is None:
        return Report(request.parameters, remarks=request.remarks)
    return Inspect(request.file, axes=request.axes, remarks=request.remarks)


def _open_app(request: OpenApp, ascii_only: bool) -> int:
    if sys.stdin is None or not sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison]
        raise InputError("the app reads its keys from a terminal, and stdin is none; attn-tui report prints instead")
    from .second_process import SecondProcess

    with closing(SecondProcess()) as second:
        return _run_app(request, ascii_only, second)


def _run_app(request: OpenApp, ascii_only: bool, second: SecondProcess) -> int:
    if request.file is not None:
        from ..core.captures.reader import open_capture

        open_capture(request.file, request.axes)  # what cannot be read is said here, in the shell
    gc.disable()  # what starting makes is there to stay; looking it over again and again takes a fifth of the time
    from . import remember

    settings = remember.load(remember.config_file() if request.config else None, os.environ)
    parameters = Parameters(**{**settings.parameters, **request.given})  # pyright: ignore[reportArgumentType]
    second.begin(parameters)
    from rich.console import Console

    from . import lifelines
    from .themes import names, own_in

    if request.theme not in (None, *names()):
        raise InputError(f"--theme: {request.theme!r} is not accepted; it takes one of {', '.join(names())}")
    from .app import AttnApp

    glyphs = output.screen_glyphs(ascii_only or settings.ascii)
    theme = request.theme or settings.theme
    themes = own_in(Console().color_system)
    app = AttnApp(parameters, request.file, request.axes, glyphs, replace(settings, theme=theme), themes, second)
    code = lifelines.run(app, request.mouse and settings.mouse)
    for problem in remember.leave(settings, app.lasting()):
        output.say(problem, glyphs)
    return code


def _require_file(file: Path) -> None:
    """Say what is known, where a word is neither a file nor a command."""
    if not os.path.lexists(file) and file.name == str(file) and not file.suffix:
        raise InputError(f"{file} is neither a file nor a command; the commands are {', '.join(COMMANDS)}")
