"""attn-tui without a command: the app, or without a terminal the report or the inspection of a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from ...core import VERSION
from ...core.captures.capture import Hints
from ...core.errors import InputError, did_you_mean, not_one_of
from ...core.message import message
from ...core.parameters import FIELDS, Parameters, Value, parameters_from
from ..language.chosen import AUTO, Language, chosen
from ..terminal import tuning
from ..views.glyphs import Glyphs
from . import output
from .commands.catalogue import COMMANDS

if TYPE_CHECKING:
    from ..compute.process import ProcessEngine
    from ..panes.capture.requests import OpenCapture
    from .parser import Parser

FIRST_D_K = 4  # of the first run, where unscaled attention has not saturated yet: a held arrow crosses that point
_OF_FILES = (*Hints._fields, "expect")  # options that need a file


@dataclass(frozen=True)
class OpenApp:
    """The request of `attn-tui [FILE] [parameters]`."""

    given: Mapping[str, Value] = field(default_factory=dict[str, Value])  # parameters by name
    file: OpenCapture | None = None
    mouse: bool = True
    theme: str | None = None
    lang: str | None = None
    executor: str | None = None
    config: bool = True  # whether the settings file is read and written
    run: Path | None = None  # to watch
    max_logit: float | None = None  # the limit of its logits
    learn: str | None = None  # the item of the Learn tab to show; empty: where it was left
    remarks: tuple[str, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """The given parameters, and defaults for the others."""
        return parameters_from(self.given)


def parse(words: Sequence[str], glyphs: Glyphs) -> OpenApp:
    """Return the request in `words`; raise InputError, or Finished after --help and --version."""
    if not words:
        return OpenApp()  # loads no parser
    from ...core.captures.capture import capture_path
    from ...core.questions.parse import UsageError, no_effect, parameter_values, parameters_of
    from .captured import expected_rule

    if not words[0].startswith("-"):
        _require_file(words[0])
    given = app_parser(glyphs).read(words)
    file, *others = given.get("file") or [None]
    if others and file not in COMMANDS:
        raise UsageError(
            "unexpected argument {word!r}: the app opens one file or folder; `attn-tui inspect` prints several and "
            "`attn-tui compare` compares two",
            word=others[0],
        )
    if file in COMMANDS and not Path(file).exists():
        raise UsageError("{file} must come before its options: attn-tui {file} …", file=file)
    if file is not None:
        _require_file(file)
    _, remarks = parameters_of(given)
    if file is None:
        idle = [name for name in _OF_FILES if given.get(name) is not None]
        remarks += tuple(no_effect(f"--{name.replace('_', '-')}") for name in idle)
    return OpenApp(
        parameter_values(given),
        None if file is None else capture(capture_path(file), given | {"expect": expected_rule(given)}),
        not given.get("no_mouse"),
        given.get("theme"),
        given.get("lang"),
        _executor(given),
        not given.get("no_config"),
        remarks=remarks,
    )


def capture(file: Path, options: Mapping[str, Any] = {}) -> OpenCapture:
    """Return the request to open a file, with what the options say of it."""
    from ..panes.capture.requests import OpenCapture

    return OpenCapture(file, Hints(*map(options.get, Hints._fields)), options.get("expect"))


def _require_file(word: str) -> None:
    """Raise InputError for a word that looks like a command and is neither that nor a file."""
    from ...core.captures.capture import capture_path

    if not os.path.lexists(capture_path(word)) and Path(word).name == word and not Path(word).suffix:
        raise InputError(
            "{file} is neither a file nor a command{near}; the commands are {commands}",
            file=word,
            near=did_you_mean(word, COMMANDS),
            commands=", ".join(COMMANDS),
        )


def _executor(given: Mapping[str, Any]) -> str | None:
    """Return the executor, if one is given; raise ExecutorError if there is none of this name."""
    from ...core.work.engine_names import engine_name

    executor = given.get("executor")
    if executor is not None:
        engine_name(executor, "--executor")
    return executor


def app_parser(glyphs: Glyphs, with_file: bool = True) -> Parser:
    """Return the parser of `attn-tui` without a command."""
    from ...core.questions.captures.captured import CAPTURES, VerdictQuestion
    from .help import DESCRIPTION, EPILOG, LISTED, TOPICS, USAGE, commands_help
    from .parser import Parser
    from .working import EXECUTOR_HELP

    description = f"{glyphs.say(DESCRIPTION)}\n\n{glyphs.say(commands_help(glyphs))}"
    epilog = glyphs.say(message(EPILOG, topics=", ".join(TOPICS)))
    parser = Parser("attn-tui", USAGE, description, epilog, glyphs)
    if with_file:
        parser.listed = ("file", *LISTED)
        parser.add("file", "file", metavar="FILE", nargs="*", help=CAPTURES)
    parser.add_options(VerdictQuestion, _OF_FILES)
    parser.add("screen", "--no-mouse", action="store_true", help="leave the mouse to the terminal")
    parser.add("screen", "--theme", metavar="NAME", help="auto (default), attn-dark, attn-light or one of Textual's")
    parser.add("screen", "--executor", metavar="NAME", help=EXECUTOR_HELP)
    parser.add("screen", "--no-config", action="store_true", help="do not read or write the settings file")
    parser.add_common("screen")
    parser.add(
        "screen", "-V", "--version", action="version", version=f"attn-tui {VERSION}", help="show the version and exit"
    )
    parser.add_fields(FIELDS)
    return parser


def run(request: OpenApp, ascii_only: bool, language: Language) -> int:
    """Open the app, or print the report, or of a file its inspection, or what is said of an expected scale."""
    file = request.file
    if output.has_screen():
        return open_app(request, ascii_only)
    printed = output.Output(ascii_only=ascii_only, language=language)
    for remark in request.remarks:
        output.say(message("note: {remark}", remark=remark), printed.messages)
    if file is None:
        from .commands.report import ReportArguments, run

        return run(ReportArguments(request.parameters), printed)
    from .working import CommandRequest

    opened: dict[str, Any] = {"paths": (file.path,), **file.hints._asdict()}
    if file.expect is not None:
        from ...core.questions.captures.diagnose import DiagnoseCaptures
        from .commands.diagnose import run

        return run(CommandRequest(DiagnoseCaptures(expect=file.expect, **opened)), printed)
    from ...core.questions.captures.inspect import InspectCaptures
    from .commands.inspect import run

    return run(CommandRequest(InspectCaptures(**opened)), printed)


def open_app(request: OpenApp, ascii_only: bool) -> int:
    """Open the app; return the exit code. Raise InputError if stdin is not a terminal."""
    stdin = cast("TextIO | None", sys.stdin)  # None if it was closed
    if sys.platform == "win32":
        raise InputError("the app needs a POSIX terminal, such as that of WSL; `attn-tui report` prints instead")
    if stdin is None or not (stdin.isatty() or output.is_served()):
        raise InputError("stdin is not a terminal; `attn-tui report` prints instead")
    with tuning.paused_collector():
        from ..compute.process import ProcessEngine

        with closing(ProcessEngine()) as engine:
            engine.start()
            return _run(request, ascii_only, engine)


def _forget_columns() -> None:
    """Let the app be as large as its terminal, if that is known, even if COLUMNS and LINES say something else."""
    if output.is_served():
        return
    for name, size in zip(("COLUMNS", "LINES"), os.get_terminal_size(sys.stdout.fileno()), strict=True):
        if size:
            os.environ.pop(name, None)


def _run(request: OpenApp, ascii_only: bool, engine: ProcessEngine) -> int:
    """Request the first result, load the app while it is computed, and run it; return the exit code."""
    from ...core.questions.lab import Measure
    from ..settings import store

    own = request.config and not output.is_served()  # a served app is everybody's: it reads and saves no settings
    settings = store.load(store.config_file() if own else None, os.environ)
    settings = settings._replace(executor=request.executor or settings.executor)
    engine.executor = settings.executor
    first_run = settings.path is not None and not settings.path.exists()
    saved: Mapping[str, Value] = {"d_k": FIRST_D_K} if first_run and not request.given else settings.parameters
    parameters = parameters_from(request.given, parameters_from(saved))
    first_pane, given = "Lab", dict[str, Any]()
    if request.file is not None:
        engine.fetch(request.file)  # raises InputError before the app opens
        first_pane, given = "Capture", {"file": request.file}
    elif request.run is not None:
        first_pane, given = "Watch", {"run": request.run, "max_logit": request.max_logit}
    elif request.learn is not None:
        first_pane = "Learn"
        settings = settings._replace(learn={**settings.learn, **({"at": request.learn} if request.learn else {})})
    else:
        engine.ask(Measure(parameters, full=False))
    from rich.console import Console

    from ..app.app import AttnApp
    from ..app.keys import with_accepted_keys
    from ..terminal import signals
    from ..terminal.themes import app_themes, names

    if request.theme not in (None, AUTO, *names()):
        raise InputError("{option}: {reason}", option="--theme", reason=not_one_of(request.theme, (AUTO, *names())))
    language = chosen(request.lang or settings.lang, os.environ)
    glyphs = output.screen_glyphs(ascii_only or settings.ascii, language)
    settings = with_accepted_keys(settings, os.environ) if settings.keys else settings
    _forget_columns()
    app = AttnApp(
        parameters,
        engine,
        first_pane=first_pane,
        given=given | {"progress": settings.learn},
        glyphs=glyphs,
        settings=settings._replace(theme=request.theme or settings.theme),
        themes=app_themes(Console().color_system),
    )
    try:
        return signals.run(app, request.mouse and settings.mouse)
    except Exception:
        if app.as_left and settings.path is not None:
            output.say("note: attn-tui --no-config starts without the saved parameters", glyphs)
        raise
    finally:
        for problem in store.save_on_exit(settings, app.changed_settings()):
            output.say(problem, glyphs)
