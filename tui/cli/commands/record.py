"""attn-tui record: run a program and record its attention."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from ....core import VERSION
from ....core.files import FileError, check_file, check_replaceable
from ....core.message import message
from ....core.questions.captures.captured import VerdictQuestion
from ....core.questions.parse import UsageError, no_effect, whole_number
from ....core.questions.question import flag, option, shared
from ....core.recorder import options as recorder
from ....core.recorder.options import ENDING, VARIABLE, Options
from ....core.recorder.reports import ProcessEvent, ProcessReport, report, reports_in
from ..captured import expected_rule
from ..output import Output, say
from ..parser import OVERWRITE, Arguments, CliCommand, Given, arguments

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
_WHAT = "what is recorded"
_SHEBANG = 256  # bytes at the beginning of a script, of which Linux reads as many


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
    expect: str | None = shared(VerdictQuestion, "expect")
    overwrite: bool = flag("files", "--overwrite", OVERWRITE)
    options: Options = _DEFAULT  # of the recorder


_PASSED = {field.name for field in fields(Options)} & {field.name for field in fields(RecordArguments)}


def _request(given: Given) -> RecordArguments:
    request = arguments(RecordArguments, given, expect=expected_rule(given))
    if not request.command:
        raise UsageError("missing command: attn-tui record -o FILE -- COMMAND, such as python train.py")
    place = request.recording
    try:
        path = os.path.abspath(place)
    except OSError as error:  # this folder was removed
        raise FileError("{path}: {reason}", path=place, reason=error.strerror) from error
    options = Options(
        path + ("/" if place.endswith("/") else ""),
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
        if match := re.fullmatch(pattern, text):
            return message(template, **match.groupdict())
    return text


def _check_place(path: Path, options: Options) -> None:
    """Raise FileError if the recording cannot be written, or would replace what is not one."""
    if options.one_file:
        check_file(path)
    else:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError("{path}: cannot be made: {reason}", path=path, reason=error.strerror) from error
        if not os.access(path, os.W_OK):
            raise FileError("{path}: is not writable", path=path)
    file = recorder.foreign_file(options)
    if file is None:
        return
    shown = path.parent / file.relative_to(Path(options.path).parent)
    if not shown.is_file():
        raise FileError("{path}: is not a regular file", path=shown)
    check_replaceable(shown, recording=True)


def run(request: RecordArguments, output: Output) -> int:
    """Become the program, with the recorder waiting in it; return only by raising UsageError if it cannot run."""
    program = _program(request.command[0])
    options = recorder.with_earlier_files(replace(request.options, process=os.getpid()))
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):  # the program runs, without a witness
            options = _with_witness(options, _is_python(program), output)
    for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execve(program, request.command, environment(os.environ, options))
    except OSError as error:
        report(options, ProcessEvent.SAID)  # below
        raise UsageError(
            "{command}: cannot be run: {reason}", command=request.command[0], reason=error.strerror
        ) from error


def _is_python(program: str) -> bool:
    """Return whether a program is Python or a script of Python's."""
    if re.fullmatch(r"(python|pypy)[\d.]*", Path(program).name):
        return True
    with suppress(OSError), open(program, "rb") as file:
        return re.match(rb"#!\s*(\S*/)?(env\s+(-S\s+)?)?(\S*/)?python[\d.]*\s", file.read(_SHEBANG)) is not None
    return False


def _with_witness(options: Options, is_python: bool, output: Output) -> Options:
    """Leave a process that waits for the end of the program, which this one becomes, and says what that cannot.

    The recorder reports to it through a pipe, because no disk may be writable. Raise OSError if there can be none.
    """
    streams = _standard_streams()
    inbox, outbox = os.pipe()
    link = os.readlink(f"/proc/self/fd/{outbox}")  # by this path others will open it
    reader, writer = os.pipe()
    if sys.stdout:  # it may have been closed before Python started
        sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            middle = os.getpid()
            if os.fork() == 0:  # the program has no child that it did not start
                os.close(reader)
                _witness(options, inbox, {2, inbox, outbox}, partial(_introduce, middle, writer), is_python, output)
        finally:
            os._exit(0)
    os.close(writer)
    with suppress(ChildProcessError):  # SIGCHLD is ignored
        os.waitpid(child, 0)
    witness, parent = map(int, os.read(reader, 64).split() or (0, 0))
    for stream in (reader, inbox, outbox, *streams):
        os.close(stream)
    if witness == 0:
        return options
    if parent == options.process:  # it adopts orphans, and would wait for this one
        os.kill(witness, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(witness, 0)
        return options
    return replace(options, reports=(f"/proc/{witness}/fd/{outbox}", link))


def _standard_streams() -> list[int]:
    """Open files for standard streams that are closed, where pipes would be; return what was opened."""
    opened = [os.open(os.devnull, os.O_RDWR)]
    while opened[-1] < 3:
        opened.append(os.open(os.devnull, os.O_RDWR))
    return opened


def _introduce(middle: int, writer: int) -> None:
    """Tell the command the number of this process, and of the one that has adopted it."""
    while os.getppid() == middle:  # which is about to end
        time.sleep(0.001)
    os.write(writer, f"{os.getpid()} {os.getppid()}".encode())
    os.close(writer)


def _witness(
    options: Options,
    inbox: int,
    kept: Collection[int],
    introduce: Callable[[], None],
    is_python: bool,
    output: Output,
) -> None:
    """Wait for the end of the program; say what no process of it has said."""
    os.setsid()
    process = os.pidfd_open(options.process)
    introduce()
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (*kept, process):
            with suppress(OSError):  # the list itself
                os.close(number)
    for _ in range(2):
        os.open(os.devnull, os.O_RDWR)  # stdin and stdout
    reports = reports_in(_read_until_end(process, inbox))
    for unsaid in (each.words for each in reports if each.event is ProcessEvent.UNSAID):
        for line in unsaid.splitlines():
            say(line, output.messages)
    told = [report.words for report in reports if report.event in (ProcessEvent.SAID, ProcessEvent.UNSAID)]
    said = "".join(told)
    files = recorder.recorded_files(options)
    unnamed = [str(file) for file in files if str(file) not in said and f"{file.parent}: " not in said]
    if unnamed:
        say(message("recorded by processes that did not report: {files}", files=", ".join(unnamed)), output.messages)
    elif not files and not told:
        for line in _nothing(reports, options, is_python):
            say(line, output.messages)


def _read_until_end(process: int, inbox: int) -> bytes:
    """Return what arrives until a process has ended."""
    os.set_blocking(inbox, False)
    waiting = select.poll()
    for source in (process, inbox):
        waiting.register(source, select.POLLIN)
    text, ready = b"", list[int]()
    while process not in ready:
        ready = [each for each, _ in waiting.poll()]
        with suppress(BlockingIOError):
            while more := os.read(inbox, select.PIPE_BUF):
                text += more
    return text


def _nothing(reports: Sequence[ProcessReport], options: Options, is_python: bool) -> Sequence[str]:
    """Return why nothing was recorded, as far as reports tell, and that an earlier file is unchanged, in lines."""
    for event in (ProcessEvent.SAW_PASSES, None, ProcessEvent.SAW_NOTHING):
        why = _cut_short(reports) if event is None else ""
        if why:
            return [_with_earlier(why, options)]
        summaries = [report.words for report in reports if report.event is event]
        if summaries:  # they say the latter, too
            return summaries[-1].splitlines()
    if any(report.event is ProcessEvent.LOADED for report in reports):
        why = message("nothing recorded: no process imported PyTorch")
    elif is_python:
        why = message("nothing recorded: this Python did not load the recorder; -I, -E and -S keep it out")
    else:
        why = message(
            "nothing recorded: no Python process loaded the recorder; -I, -E, -S, another PYTHONPATH, sudo and "
            "containers keep it out"
        )
    return [_with_earlier(why, options)]


def _cut_short(reports: Sequence[ProcessReport]) -> str:
    """Return which process has not run to its end; empty if all have."""
    loaded, imported, ended = (
        [report.process for report in reports if report.event is event]
        for event in (ProcessEvent.LOADED, ProcessEvent.IMPORTED, ProcessEvent.ENDED)
    )
    cut = [process for process in imported or loaded if process not in ended]
    running = [*filter(_runs, cut)]
    if running:
        return message("nothing recorded so far: process {process} still runs", process=running[0])
    if cut:
        return message(
            "nothing recorded: process {process} was killed, or left by os._exit or exec, before it reported",
            process=cut[0],
        )
    return ""


def _with_earlier(why: str, options: Options) -> str:
    file = recorder.earlier_file(options)
    return why if file is None else message("{why}; {file} was there before and is unchanged", why=why, file=file)


def _runs(process: int) -> bool:
    """Return whether a process has not ended; one that nobody has waited for yet has."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[0] not in "ZX"
    return False


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


COMMAND = CliCommand(
    usage="""attn-tui record -o FILE [--layers LIST] [--rows N] [--batch N] [--values]
                       [--every N] [--max-steps N] [--keep N] [--max-bytes SIZE]
                       [--overwrite] [--ranks RANKS] [--expect FORMULA]
                       -- COMMAND""",
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
    options=(RecordArguments,),
    request=_request,
    run=run,
    title="other",
)
