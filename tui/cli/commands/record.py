"""attn-tui record: run a program and record its attention."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....core import VERSION
from ....core.files import FileError, check_file
from ....core.message import message
from ....core.recorder import options as recorder
from ....core.recorder.options import ENDING, VARIABLE, Options
from ...compute.question import flag, option, shared
from ...settings.parse import UsageError, no_effect, whole_number
from ..captured import Expected, expected_rule
from ..output import Output, say
from ..parser import Arguments, Command, Given, arguments

_DEFAULT = Options("")
# What the recorder, which speaks English, says of its options.
_REASONS = (
    (r"must be at least (?P<least>\d+), not (?P<value>.*)", message("must be at least {least}, not {value}")),
    (r"must be 0 or all, not (?P<value>.*)", message("must be 0 or all, not {value}")),
    (
        r"must be numbers such as 0,4,8-11 or a regular expression, not (?P<value>.*)",
        message("must be numbers such as 0,4,8-11 or a regular expression, not {value}"),
    ),
    (
        r"must end with (?P<ending>\S+), or be a folder together with every",
        message("must end with {ending}, or be a folder together with --every N"),
    ),
    (
        r"must be a folder if there is a file for each step",
        message("must be a folder if there is a file for each step"),
    ),
)
_PASSED = (
    "layers",
    "rows",
    "batch",
    "every",
    "max_steps",
    "values",
    "max_bytes",
    "ranks",
    "keep",
    "expect",
)  # to the recorder
_WHAT = "what is recorded"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number(title: str, name: str, words: str, default: int | None = None) -> Any:
    return option(title, name, "N", words, default, read=lambda text: whole_number(name, text))


def _size(text: str) -> int:
    try:
        return recorder.size_in_bytes(text)
    except ValueError:
        raise UsageError("--max-bytes: must be a size such as 500k, 256M or 2G, not {text!r}", text=text) from None


def _program_words(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(str, words[1:] if [*words[:1]] == ["--"] else words))


@dataclass(frozen=True)
class RecordArguments(Arguments):
    """The program to run, and how much of it to record."""

    command: tuple[str, ...] = option(
        "program",
        "",
        "COMMAND",
        "the program and its arguments, after --",
        default=(),
        read=_program_words,
        nargs="...",
    )
    recording: str = option(
        "files",
        "-o --output",
        "FILE",
        message("a {ending} file; with --every, a folder with a file for each recorded step", ending=ENDING),
        required=True,
    )
    every: int | None = _number(
        "files",
        "--every",
        message("record every Nth step: steps of an optimizer if there is one, else forward passes"),
    )
    max_steps: int | None = _number("files", "--max-steps", message("stop recording after N files"))
    keep: int | None = _number(
        "files", "--keep", message("keep the newest N files; older ones of this run are removed")
    )
    max_bytes: int = option(
        "files",
        "--max-bytes",
        "SIZE",
        "size of a file, such as 500k, 256M (default) or 2G; if it is too small, fewer rows and then fewer "
        "layers are kept",
        default=_DEFAULT.max_bytes,
        read=_size,
    )
    layers: str | None = option(
        _WHAT, "--layers", "LIST", "numbers and ranges (0,4,8-11) or a regular expression for module names"
    )
    rows: int = _number(
        _WHAT, "--rows", message("queries kept of each layer; default {rows}", rows=_DEFAULT.rows), _DEFAULT.rows
    )
    batch: int = _number(
        _WHAT, "--batch", message("texts kept; default {batch}", batch=_DEFAULT.batch), _DEFAULT.batch
    )
    values: bool = flag(_WHAT, "--values", "keep values and outputs, too")
    ranks: str = option(
        _WHAT,
        "--ranks",
        "RANKS",
        "processes of a distributed run: 0 (default) or all",
        default=_DEFAULT.ranks,
        choices=("0", "all"),
    )
    expect: str | None = shared(Expected, "expect")
    options: Options = _DEFAULT  # of the recorder


def _check(given: Given) -> RecordArguments:
    request = arguments(RecordArguments, given, expect=expected_rule(given))
    if not request.command:
        raise UsageError("missing command: attn-tui record -o FILE -- COMMAND, such as python train.py")
    place = request.recording
    options = Options(
        os.path.abspath(place) + ("/" if place.endswith("/") else ""),
        version=VERSION,
        **{name: getattr(request, name) for name in _PASSED},
    )
    wrong = recorder.problem(options)
    if wrong is not None:
        name, accepted = wrong
        reason = _as_message(accepted)
        if name == "path":
            raise UsageError("{option}: {path}: {reason}", option="-o", path=place, reason=reason)
        raise UsageError("{option}: {reason}", option=_option(name), reason=reason)
    _check_place(Path(place), options)
    idle = [_option(name) for name in ("max_steps", "keep") if name in given and options.every is None]
    remarks = [no_effect(option) for option in idle]
    if not options.one_file and next(Path(options.path).glob("step-*.safetensors"), None) is not None:
        remarks.append(
            message("{path} already holds steps of another run; a separate folder keeps runs apart", path=place)
        )
    return replace(request, options=options, remarks=tuple(remarks))


def _as_message(text: str) -> str:
    """Return a text of the recorder, which has no messages, as the message of its pattern."""
    for pattern, template in _REASONS:
        if found := re.fullmatch(pattern, text):
            return message(template, **found.groupdict())
    return text


def _check_place(path: Path, options: Options) -> None:
    """Raise FileError if the recording cannot be written."""
    if options.one_file:
        check_file(path)
        return
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError("{path}: cannot be made: {reason}", path=path, reason=error.strerror) from error
    if not os.access(path, os.W_OK):
        raise FileError("{path}: is not writable", path=path)


def run(request: RecordArguments, output: Output) -> int:
    """Become the program, with the recorder waiting in it; return only by raising UsageError if it cannot run."""
    program = _program(request.command[0])
    options = replace(request.options, process=os.getpid(), since=time.time())
    for file in recorder.files_of(options) if options.one_file else ():
        if file.is_file():
            file.unlink()  # of another run: what is left is of this one
    if hasattr(os, "pidfd_open"):
        options = _with_witness(options, output)
    for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execve(program, request.command, environment(os.environ, options))
    except OSError as error:
        raise UsageError(
            "{command}: cannot be run: {reason}", command=request.command[0], reason=error.strerror
        ) from error


def _with_witness(options: Options, output: Output) -> Options:
    """Leave a process that waits for the end of the program, which this one becomes, and says what that cannot."""
    handle, messages = tempfile.mkstemp(prefix="attn-tui-record-")
    os.close(handle)
    options = replace(options, messages=messages)
    sys.stdout.flush()
    if child := os.fork():
        os.waitpid(child, 0)
        return options
    if os.fork():  # the program has no child that it did not start
        os._exit(0)
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(nothing, stream)
        select.select([os.pidfd_open(options.process)], [], [])
        said = Path(options.messages).read_text("utf-8")
        files = recorder.files_of(options, options.since)
        unnamed = [str(file) for file in files if str(file) not in said and f"{file.parent}: " not in said]
        if unnamed:
            say(message("recorded by other processes: {files}", files=", ".join(unnamed)), output.messages)
        elif not files and not said:
            say(
                message("nothing recorded: no Python process loaded the recorder (with -I or -E, none does)"),
                output.messages,
            )
        os.unlink(options.messages)
    finally:
        os._exit(0)


def _program(name: str) -> str:
    """Return the path of a program; raise UsageError if it is not one."""
    found = shutil.which(name)
    if found is not None:
        return found
    if not Path(name).exists():
        raise UsageError("{name}: no such command", name=name)
    if name.endswith(".py"):
        raise UsageError("{name}: is not a program; try python {name}", name=name)
    raise UsageError("{name}: is not a program", name=name)


def environment(variables: Mapping[str, str], options: Options) -> dict[str, str]:
    """Return the variables for a program that is recorded."""
    folder = Path(recorder.__file__).resolve().parent / "program"
    before: Sequence[str] = [variables["PYTHONPATH"]] if variables.get("PYTHONPATH") else []
    return {**variables, "PYTHONPATH": os.pathsep.join([str(folder), *before]), VARIABLE: options.to_json()}


COMMAND = Command(
    usage="""attn-tui record -o FILE [--layers LIST] [--rows N] [--batch N] [--values]
                       [--every N] [--max-steps N] [--keep N] [--max-bytes SIZE]
                       [--ranks RANKS] [--expect FORMULA] -- COMMAND""",
    description="""\
Run a program and record the queries and keys of its attention. The program
needs PyTorch, but neither attn-tui nor any change: whatever it uses to compute
attention is seen as it runs, in every Python process that it starts. Output,
exit status and signals are the program's own. At the end, stderr says what was
seen and what was missed.""",
    examples="""\
examples:
  attn-tui record -o heads.safetensors -- python generate.py
  attn-tui record -o heads.safetensors --layers 0,8-11 --values -- python run.py
  attn-tui record -o run/ --every 100 --keep 20 -- torchrun train.py
""",
    arguments=RecordArguments,
    run=run,
    title="other",
    check=_check,
)
