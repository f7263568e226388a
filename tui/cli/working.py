"""Work that a command cuts into parts: where it is done, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ...core.engine_names import EngineError
from ...core.errors import InputError
from .output import Output, say, screen_glyphs
from .progress import ProgressLine

if TYPE_CHECKING:
    from ...core.captures.capture import Capture, Layer, Meaning
    from ...core.work.part import Part

R = TypeVar("R")


class HeadsRequest(Protocol):
    """What requests that read heads of a capture have in common."""

    @property
    def file(self) -> Path: ...
    @property
    def axes(self) -> str | None: ...
    @property
    def mask_true(self) -> Meaning | None: ...
    @property
    def executor(self) -> str: ...


def on_heads(
    work: Callable[..., Iterator[tuple[float, R | None]]],
    capture: Capture,
    chosen: Sequence[tuple[Layer, int]],
    arguments: tuple[Any, ...],
    what: str,
    request: HeadsRequest,
    output: Output,
) -> Iterator[R | InputError]:
    """Yield the result of some `core.work.heads` for each head of the request's file, in order."""
    from ...core.work.heads import parts, source_of

    sources = [source_of(capture, request.file, request.axes, request.mask_true)]
    places = (((layer.position, head), layer) for layer, head in chosen)
    return results_of(parts(work, sources, places, arguments), request.executor, what, output)


def readable(results: Iterable[R | InputError]) -> tuple[list[R], InputError | None]:
    """Return the results of heads that can be read, and the first error; raise that error if there is no result."""
    found: list[R] = []
    refusal: InputError | None = None
    for result in results:
        if isinstance(result, InputError):
            refusal = refusal or result
        else:
            found.append(result)
    if refusal is not None and not found:
        raise refusal
    return found, refusal


def complete(results: Iterable[R | InputError]) -> list[R]:
    """Return the results; raise the first error."""
    found: list[R] = []
    for result in results:
        if isinstance(result, InputError):
            raise result
        found.append(result)
    return found


def results_of(parts: Iterable[Part[Any]], executor: str, what: str, output: Output) -> Iterator[Any | InputError]:
    """Yield the results of parts in order; show `what` is done, and how much of it.

    Raise EngineError if the engine cannot start, or is lost. Other InputErrors are results.
    """
    from ...core.work.opening import open_engine
    from ...core.work.run import run

    plan = [*parts]
    total = sum(part.seconds for part in plan) or 1.0
    alone = executor.startswith("threads") and len(plan) == 1  # which has news of its progress in this thread only
    with ProgressLine(what) as progress, open_engine("serial" if alone else executor) as engine:
        if engine.remark:
            say(f"note: {engine.remark}", screen_glyphs(output.ascii_only))
        with closing(run(plan, engine)) as work:
            for done in work:
                for result in done.results:
                    if isinstance(result, EngineError):
                        raise result
                    yield result
                progress.show(done.seconds / total)
