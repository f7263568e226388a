"""A part of some work: small enough to send, and answered with the same bytes by every worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from ..errors import InputError

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
