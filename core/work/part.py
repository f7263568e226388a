"""A part of some work, small enough to send, and where parts are performed, with the same bytes by every worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from ..errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

R = TypeVar("R")

# What work yields after each short step: the finished fraction, and the results since the previous step.
Steps: TypeAlias = "Iterable[tuple[float, tuple[R, ...]]]"


@dataclass(frozen=True)
class Part(Generic[R]):
    """A function and its arguments. Only their names and numbers are sent, never scores."""

    work: Callable[..., Steps[R]]  # of a module, so that its name can be sent
    arguments: tuple[Any, ...]
    seconds: float = 0.0  # of one core, estimated
    count: int = 1  # of its results, unless an InputError ends them

    def steps(self) -> Steps[R]:
        """Return the steps of the work."""
        return self.work(*self.arguments)


@dataclass(frozen=True, eq=False)
class PartProgress(Generic[R]):
    """Results of a part, or only news of the progress."""

    seconds: float  # of the work finished so far, as estimated
    results: tuple[R | InputError, ...] = ()
    part: Part[R] | None = None  # that the results are of; None if there are none
    complete: bool = False  # whether these are the last results of the part


def results_of(done: PartProgress[R]) -> tuple[R, ...]:
    """Return the results; raise an InputError among them."""
    found: list[R] = []
    for result in done.results:
        if isinstance(result, InputError):
            raise result
        found.append(result)
    return tuple(found)


class Store(Protocol):
    """Where the results of finished parts are kept."""

    def get(self, part: Part[Any]) -> tuple[Any, ...] | None:
        """Return the results of a part, or None if it is not finished."""
        ...

    def add(self, part: Part[Any], results: tuple[Any, ...]) -> None:
        """Keep the results of a part."""
        ...


class MemoryStore:
    """Results of finished parts in memory, so that work that was stopped continues."""

    def __init__(self) -> None:
        self._results: dict[Part[Any], tuple[Any, ...]] = {}

    def get(self, part: Part[Any]) -> tuple[Any, ...] | None:
        """Return the results of a part, or None if it is not finished."""
        return self._results.get(part)

    def add(self, part: Part[Any], results: tuple[Any, ...]) -> None:
        """Keep the results of a part."""
        self._results[part] = results


def perform(part: Part[R], stopped: Callable[[], bool] = lambda: False) -> tuple[R | InputError, ...]:
    """Return all results of a part; an InputError ends them and is the last. `stopped` is asked after each step."""
    found: list[R | InputError] = []
    try:
        for _, results in part.steps():
            found += results
            if stopped():
                break
    except InputError as error:
        found.append(error)
    return tuple(found)


Perform: TypeAlias = "Callable[[Part[Any]], tuple[Any, ...]]"
# Begins a run: returns the function that performs its parts, and one that stops those that are running.
Begin: TypeAlias = "Callable[[], tuple[Perform, Callable[[], object]]]"


def begin_elsewhere(perform: Perform = perform) -> tuple[Perform, Callable[[], object]]:
    """Begin a run whose running parts cannot be stopped, or end themselves when they are cancelled."""
    return perform, lambda: None


# Calls a function with arguments on each worker, and returns what it returns by the name of the worker.
Everywhere: TypeAlias = "Callable[..., Mapping[str, Any]]"


@dataclass(frozen=True, eq=False)
class PartExecutor:
    """Where parts are performed: an executor and its number of workers, or this thread."""

    name: str
    workers: int = 1
    executor: Executor | None = None
    begin: Begin = begin_elsewhere
    remark: str = ""  # what the user should know of it
    everywhere: Everywhere | None = None  # None: its workers are on this machine, or cannot be addressed
    missing: Callable[[], float] = float  # for how many seconds there has been no worker


SERIAL = PartExecutor("serial")
