"""Work that a command cuts into parts: its options, where it is done, and its progress."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...core.errors import InputError
from ...core.message import counted, message
from ...core.plain import plain
from ...core.work.engine_names import DEFAULT_ENGINE, ENGINES, EngineError, engine_name
from .output import Output, say
from .parser import Finished, Given, Parser
from .progress import ProgressLine

if TYPE_CHECKING:
    from ...core.captures.capture import Meaning
    from ...core.captures.head import CaptureFile
    from ...core.diagnosis.configuration import Configuration
    from ...core.work.engines import Engine
    from ...core.work.heads import Source
    from ...core.work.part import Done, Part
    from .captured import Head

R = TypeVar("R")

EXECUTOR_HELP = message(
    "where parts of the work are done: {engines}; without N, as many as there are cores. The "
    "result is the same, byte for byte; default {default}",
    engines=ENGINES,
    default=DEFAULT_ENGINE,
)


def _open(executor: str) -> AbstractContextManager[Engine]:
    from ...core.work.opening import open_engine

    return open_engine(executor)


@dataclass(frozen=True)
class Work:
    """Where the parts of some work are done, and what is kept of them."""

    executor: str = DEFAULT_ENGINE
    resume: Path | None = None  # the file of finished parts
    dry_run: bool = False  # only say how much it would be
    open: Callable[[str], AbstractContextManager[Engine]] = field(default=_open, compare=False)

    @property
    def by_content(self) -> bool:
        """Whether files are compared by all their bytes: over time, or with those of other machines."""
        return self.resume is not None or engine_name(self.executor)[0] == "dask"


USUAL = Work()


def add_work(parser: Parser) -> None:
    """Add the options of every command that may take long."""
    title = "work"
    parser.add(title, "--executor", metavar="NAME", help=EXECUTOR_HELP)
    parser.add(
        title,
        "--resume",
        metavar="FILE",
        help="write parts to this file as they are finished; if it exists, do only those that are missing",
    )
    parser.add(
        title,
        "--dry-run",
        action="store_true",
        help="do nothing, but say how many parts there are, how long they take one core, and how many bytes are sent",
    )


def work_of(given: Given) -> Work:
    """Return what the options of `add_work` say; raise EngineError if there is no engine of this name."""
    executor = given.get("executor", DEFAULT_ENGINE)
    engine_name(executor, "--executor")
    resume = given.get("resume")
    return Work(executor, None if resume is None else Path(resume), given["dry_run"])


@contextmanager
def one_engine(work: Work) -> Generator[Work, None, None]:
    """Open engines when they are first needed, and keep them for all that is done within, such as a second pass."""
    opened: dict[str, Engine] = {}
    with ExitStack() as stack:

        def open_once(executor: str) -> AbstractContextManager[Engine]:
            if executor in opened:
                return nullcontext(replace(opened[executor], remark=""))  # it is said already
            opened[executor] = stack.enter_context(work.open(executor))
            return nullcontext(opened[executor])

        yield replace(work, open=open_once)


class HeadsRequest(Protocol):
    """What requests that read heads of captures have in common."""

    @property
    def files(self) -> tuple[Path, ...]: ...
    @property
    def axes(self) -> str | None: ...
    @property
    def mask_true(self) -> Meaning | None: ...
    @property
    def tensor(self) -> str | None: ...
    @property
    def work(self) -> Work: ...


def opened(
    request: HeadsRequest, output: Output, others: Sequence[Path] = (), given: Configuration | None = None
) -> list[CaptureFile]:
    """Return the captures of a request, after their notes are said; raise InputError if one cannot be read.

    `others` are files that the output must not overwrite either, `given` is the user's configuration.
    """
    from ...core.captures.reader import open_captures
    from ...core.diagnosis.disagreement import with_disagreements

    found = open_captures(request.files, request.axes, request.mask_true, request.tensor)
    captures = [with_disagreements(each, given) for each in found]
    output.check([*request.files, *others, *(file for capture in captures for file in capture.files)])
    for path, capture in zip(request.files, captures, strict=True):
        for note in capture.notes:
            whole = message("{path}: {note}", path=plain(path), note=note) if len(captures) > 1 else note
            say(message("note: {note}", note=whole), output.messages)
    return captures


def on_heads(
    work: Callable[..., Iterator[tuple[float, R | None]]],
    captures: Sequence[CaptureFile],
    chosen: Sequence[Sequence[Head]],
    arguments: tuple[Any, ...],
    what: str,
    request: HeadsRequest,
    output: Output,
) -> Generator[R | InputError, None, None]:
    """Yield the result of some `core.work.heads` for each head chosen of each capture, in order."""
    from ...core.work.heads import check_files, parts, source_of, with_layer

    plan: list[Part[Any]] = []
    sources: list[Source] = []
    for path, capture, heads in zip(request.files, captures, chosen, strict=True):
        sources.append(
            source_of(capture, path, request.axes, request.mask_true, request.work.by_content, request.tensor)
        )
        plan += parts(work, sources[-1:], (((layer.position, head), layer) for layer, head in heads), arguments)
    layers = (layer for heads in chosen for layer, _ in heads)
    with closing(results_of(plan, request.work, what, output, partial(check_files, sources))) as results:
        for layer, result in zip(layers, results, strict=True):
            yield result if isinstance(result, InputError) else with_layer(result, layer)


def complete(results: Generator[R | InputError, None, None]) -> list[R]:
    """Return the results; close them and raise the first error."""
    found: list[R] = []
    with closing(results):
        for result in results:
            if isinstance(result, InputError):
                raise result
            found.append(result)
    return found


def results_of(
    parts: Iterable[Part[Any]], work: Work, what: str, output: Output, check: Callable[[Engine], object] = bool
) -> Generator[Any | InputError, None, None]:
    """Yield the results of parts in order; show `what` is done, and how much of it. `check` the engine first.

    Close what is returned when not all is read: the engine and the signal handler belong to the thread that reads.
    Raise EngineError if the engine cannot start, or is lost. Other InputErrors are results.
    """
    plan = [*parts]
    if work.dry_run:
        raise Estimated(plan, output)
    total = sum(part.seconds for part in plan) or 1.0
    # A single part has news of its progress in this thread only.
    alone = replace(work, executor="serial") if len(plan) == 1 and work.executor.startswith("threads") else work
    with performed(lambda: plan, alone, output, check) as steps, ProgressLine(what, output.messages) as progress:
        for done in steps:
            if done.results and output.on_screen:
                progress.hide()
            for result in done.results:
                if isinstance(result, EngineError):
                    raise result
                yield result
            progress.show(done.seconds / total)


@contextmanager
def performed(
    parts: Callable[[], Iterable[Part[R]]], work: Work, output: Output, check: Callable[[Engine], object] = bool
) -> Generator[Generator[Done[R], None, None], None, None]:
    """Open the engine and the file of finished parts; the value is what `core.work.run` yields of `parts()`."""
    from ...core.work.run import run
    from ...core.work.spool import open_spool

    with (
        nullcontext() if work.resume is None else open_spool(work.resume) as spool,
        work.open(work.executor) as engine,
    ):
        check(engine)
        glyphs = output.messages
        if engine.remark:
            say(message("note: {remark}", remark=engine.remark), glyphs)
        if known := 0 if spool is None else spool.count(parts()):
            say(
                counted(
                    "note: {number} finished part is in {file} already",
                    "note: {number} finished parts are in {file} already",
                    known,
                    file=work.resume,
                ),
                glyphs,
            )
        with closing(run(parts(), engine, spool)) as steps:
            yield steps


def time_words(seconds: float) -> str:
    """Return an estimated time of one core in words."""
    if seconds >= 360:
        return message("{hours:.3g} core-hours", hours=seconds / 3600)
    return message("{seconds:.2g} seconds of one core", seconds=seconds)


class Estimated(Finished):
    """The end of a dry run, which has said how much the work would be; `least` if it may be more."""

    def __init__(self, parts: Iterable[Part[Any]], output: Output, least: bool = False) -> None:
        super().__init__()
        count, seconds, size = 0, 0.0, 0
        for part in parts:
            size = size or len(pickle.dumps(part))
            count += 1
            seconds += part.seconds
        known = {
            "parts": counted("{number} part", "{number} parts", count),
            "time": time_words(seconds),
            "kilobytes": count * size / 1000,
        }
        text = (
            message("{parts}, at least {time}, {kilobytes:.3g} kB to be sent", **known)
            if least
            else message("{parts}, about {time}, {kilobytes:.3g} kB to be sent", **known)
        )
        output.write([output.messages.say(text) + "\n"])
