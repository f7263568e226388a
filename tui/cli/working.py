"""Work that a command cuts into parts: its options, where it is done, its progress, and results as they come."""

from __future__ import annotations

import contextlib
import pickle
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from ...core.errors import InputError
from ...core.message import counted, message
from ...core.questions.question import Question, flag, option
from ...core.work.engine_names import DEFAULT_ENGINE, ENGINES, ExecutorError, LostExecutorError, engine_name
from ..language.cells import cells, to_left
from ..views.glyphs import UNICODE, Glyphs
from . import interrupts
from .interrupts import INTERRUPTED
from .output import Output, OutputFormat, say
from .parser import Arguments, Finished, Given, arguments

if TYPE_CHECKING:
    from ...core.program.text import Dialect
    from ...core.tables.table import Table
    from ...core.work.part import Part, PartExecutor, PartProgress


_DELAY = 1.0  # seconds before the line is first shown
_INTERVAL = 0.2  # seconds between updates


class ProgressLine:
    """A line on stderr that shows the progress of a computation, if stderr is a terminal; erased at the end.

    Ctrl-C takes effect in `show`, after a step: during a step it could leave a lock held that other threads wait
    for, and the process would hang. A second Ctrl-C takes effect immediately.
    """

    def __init__(self, what: str, glyphs: Glyphs = UNICODE) -> None:
        self._say = glyphs.say
        self._what = glyphs.say(what)
        self._shown = 0
        self._began = time.monotonic()
        self._next = self._began + _DELAY
        self._interrupted = False
        self._before = signal.getsignal(signal.SIGINT)

    def __enter__(self) -> ProgressLine:
        if self._is_ours:
            signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._draw("")
        if self._is_ours:
            signal.signal(signal.SIGINT, self._before)
        if kind is None:
            self._raise_if_interrupted()

    def show(self, fraction: float) -> None:
        """Show the fraction done, 0 to 1, and the time left; raise KeyboardInterrupt if Ctrl-C was pressed."""
        self._raise_if_interrupted()
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _INTERVAL
            done = f"{self._what} {100 * fraction:3.0f} %"
            took = now - self._began
            if fraction > 0 and took > _DELAY + 1:  # else it is a guess
                done += self._say(time_left(took * (1 / fraction - 1)))
            self._draw(done)

    def hide(self) -> None:
        """Erase the line until it is shown again, so that results can be printed on the same terminal."""
        self._draw("")

    @property
    def _is_ours(self) -> bool:
        """Whether Ctrl-C is left to this line; in the background, for example, it is ignored."""
        return self._before in (signal.default_int_handler, interrupts.exit_now)

    def _interrupt(self, *_: object) -> None:
        self._interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def _raise_if_interrupted(self) -> None:
        if self._interrupted:
            raise KeyboardInterrupt

    def _draw(self, text: str) -> None:
        """Replace the line, with no escape sequences that a terminal might not support."""
        with contextlib.suppress(OSError, ValueError, AttributeError):  # stderr is None if it was closed
            if not sys.stderr.isatty() or not (text or self._shown):
                return
            # Set first: Ctrl-C may arrive while the line is written.
            before, self._shown = self._shown, cells(text)
            sys.stderr.write("\r" + to_left(text, before) + ("\r" if not text else ""))
            sys.stderr.flush()


def time_left(seconds: float) -> str:
    """Return how much time is left, in words."""
    if seconds < 100:
        return message(", {seconds:.0f} s left", seconds=seconds)
    return message(", {minutes:.0f} min left", minutes=seconds / 60)


Q = TypeVar("Q", bound=Question[Any])
R = TypeVar("R")

EXECUTOR_HELP = message(
    "where parts of the work are done: {engines}; without N, as many as there are cores. The "
    "result is the same, byte for byte; default {default}",
    engines=ENGINES,
    default=DEFAULT_ENGINE,
)


def _open(executor: str) -> AbstractContextManager[PartExecutor]:
    from ...core.work.cluster import open_engine

    return open_engine(executor)


def executor_name(text: str) -> str:
    """Return the name of an executor; raise ExecutorError if there is none of this name."""
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
    open: Callable[[str], AbstractContextManager[PartExecutor]] = field(default=_open, compare=False)

    @property
    def by_content(self) -> bool:
        """Whether files are compared by all their bytes: over time, or with those of other machines."""
        return self.resume is not None or engine_name(self.executor)[0] == "dask"


SERIAL = Work("serial")


@dataclass(frozen=True)
class CommandRequest(Arguments, Generic[Q]):
    """A question that a command answers, and where the parts of its work are done."""

    question: Q
    work: Work = field(default_factory=Work)


def command_request(question: Q, given: Given, remarks: Iterable[str] = ()) -> CommandRequest[Q]:
    """Return a question with the options of its work, and remarks on others."""
    return CommandRequest(question, arguments(Work, given), remarks=tuple(remarks))


@contextmanager
def one_engine(work: Work) -> Generator[Work, None, None]:
    """Open executors when they are first needed, and keep them for all that is done within, such as a second pass."""
    opened: dict[str, PartExecutor] = {}
    with ExitStack() as stack:

        def open_once(executor: str) -> AbstractContextManager[PartExecutor]:
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
    parts: Iterable[Part[Any]], work: Work, what: str, output: Output, check: Callable[[PartExecutor], object] = bool
) -> Generator[Any | InputError, None, None]:
    """Yield the results of parts in order; show `what` is done, and how much of it. `check` the executor first.

    Close what is returned when not all is read: the executor and the signal handler belong to the thread that reads.
    Raise ExecutorError if the executor cannot start, or is lost. Other InputErrors are results.
    """
    from ...core.work.worker import keep_memory

    plan = [*parts]
    if work.dry_run:
        raise DryRun(plan, output)
    total = sum(part.seconds for part in plan) or 1.0
    # A single part has news of its progress in this thread only.
    alone = replace(work, executor="serial") if len(plan) == 1 and work.executor.startswith("threads") else work
    keep_memory()
    with performed(lambda: plan, alone, output, check) as steps, ProgressLine(what, output.messages) as progress:
        for done in steps:
            if done.results and output.on_screen:
                progress.hide()
            for result in done.results:
                if isinstance(result, ExecutorError):
                    raise result
                yield result
            progress.show(done.seconds / total)


def answer(question: Question[R], work: Work, what: str, output: Output) -> R:
    """Return the answer to a question; raise what `results_of` raises, and an InputError among the results."""
    return question.result(complete(results_of(question.parts(), work, what, output)))


@contextmanager
def performed(
    parts: Callable[[], Iterable[Part[R]]], work: Work, output: Output, check: Callable[[PartExecutor], object] = bool
) -> Generator[Generator[PartProgress[R], None, None], None, None]:
    """Open the executor and the file of finished parts; the value is what `core.work.engines.run` yields of them."""
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


class DryRun(Finished):
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


T = TypeVar("T")

_MISSING = 2  # the exit code if some cannot be read, or the workers are lost


class ResultStream(Generic[T]):
    """Iterates over results that could be computed, and tells at the end what is missing.

    Ctrl-C and the loss of the workers end them. An InputError stands for a result that cannot be computed.
    """

    def __init__(
        self, results: Generator[T | InputError, None, None], asked: int, what: Literal["heads", "points"]
    ) -> None:
        self._results = results
        self._asked, self._what = asked, what
        self.count = 0
        self._left_out = 0
        self._refusal: InputError | None = None
        self._ended: KeyboardInterrupt | LostExecutorError | None = None  # why there are no more

    def __iter__(self) -> Generator[T, None, None]:
        try:
            with closing(self._results) as results:
                for result in results:
                    if isinstance(result, InputError):
                        self._refusal = self._refusal or result
                        self._left_out += 1
                    else:
                        self.count += 1
                        yield result
        except (KeyboardInterrupt, LostExecutorError) as error:
            self._ended = error

    def all(self) -> list[T]:
        """Return them; raise KeyboardInterrupt or LostExecutorError if that ended them early."""
        answers = [*self]
        if self._ended is not None:
            raise self._ended
        return answers

    def emit(
        self,
        output: Output,
        text: Callable[[Sequence[T]], str],
        table: Callable[[Iterable[T]], Table[T]],
        code: Callable[[Sequence[T], Dialect], str] | None = None,
        figure: Callable[[Sequence[T]], str] | None = None,
    ) -> int:
        """Write them in the format of the output, some formats as they come; nothing, if there are none.

        Return the exit code as `code` does.
        """
        with closing(iter(self)) as things:
            first = next(things, None)
            if first is not None and output.is_streamed:
                output.emit(str, lambda: table(chain([first], things)))
            elif first is not None:
                found = [first, *things]
                program = None if code is None else partial(code, found)
                drawn: dict[OutputFormat, Callable[[], str]] = {}
                if figure is not None:
                    drawn["svg"] = partial(figure, found)
                output.emit(lambda: text(found), lambda: table(found), program, drawn)
        return self.code(output)

    def code(self, output: Output) -> int:
        """Return the exit code, after what is missing is said; raise the first error if there are no results."""
        if self._refusal is not None and not self.count and not self._ended:
            raise self._refusal
        glyphs = output.messages
        if self._refusal is not None:
            left_out = {"refusal": self._refusal, "count": self._left_out, "asked": self._asked}
            say(
                message("{refusal} ({count} of {asked} points are left out)", **left_out)
                if self._what == "points"
                else message("{refusal} ({count} of {asked} heads are left out)", **left_out),
                glyphs,
            )
        if self._ended is None:
            return 0 if self._refusal is None else _MISSING
        where, interrupted = "", isinstance(self._ended, KeyboardInterrupt)
        if output.path is not None:
            where = (
                message(" in {path}", path=output.path)
                if self.count
                else message("; {path} is not written", path=output.path)
            )
        kept = {
            "why": message("interrupted") if interrupted else self._ended,
            "count": self.count,
            "asked": self._asked,
            "where": where,
        }
        say(
            message("{why}: kept {count} of {asked} points{where}", **kept)
            if self._what == "points"
            else message("{why}: kept {count} of {asked} heads{where}", **kept),
            glyphs,
        )
        return INTERRUPTED if interrupted else _MISSING
