"""Work that a command cuts into parts: its options, where it is done, and its progress."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import InputError
from ...core.message import counted, message
from ...core.work.engine_names import DEFAULT_ENGINE, ENGINES, EngineError, engine_name
from ..compute.question import flag, option
from .output import Output, say
from .parser import Finished
from .progress import ProgressLine

if TYPE_CHECKING:
    from ...core.work.engines import Engine
    from ...core.work.part import Done, Part

R = TypeVar("R")

EXECUTOR_HELP = message(
    "where parts of the work are done: {engines}; without N, as many as there are cores. The "
    "result is the same, byte for byte; default {default}",
    engines=ENGINES,
    default=DEFAULT_ENGINE,
)


def _open(executor: str) -> AbstractContextManager[Engine]:
    from ...core.work.cluster import open_engine

    return open_engine(executor)


def executor_name(text: str) -> str:
    """Return the name of an executor; raise EngineError if there is none of this name."""
    engine_name(text, "--executor")
    return text


@dataclass(frozen=True)
class Work:
    """Where the parts of some work are done, and what is kept of them: the options of what may take long."""

    executor: str = option("work", "--executor", "NAME", EXECUTOR_HELP, default=DEFAULT_ENGINE, read=executor_name)
    resume: Path | None = option(
        "work",
        "--resume",
        "FILE",
        "write parts to this file as they are finished; if it exists, do only those that are missing",
        read=Path,
    )
    dry_run: bool = flag(
        "work",
        "--dry-run",
        "do nothing, but say how many parts there are, how long they take one core, and how many bytes are sent",
    )
    open: Callable[[str], AbstractContextManager[Engine]] = field(default=_open, compare=False)

    @property
    def by_content(self) -> bool:
        """Whether files are compared by all their bytes: over time, or with those of other machines."""
        return self.resume is not None or engine_name(self.executor)[0] == "dask"


USUAL = Work()


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
    """Open the engine and the file of finished parts; the value is what `core.work.engines.run` yields of them."""
    from ...core.work.engines import run
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
