"""What a command consists of: help, options, request, run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from .output import Output

if TYPE_CHECKING:
    from .parser import Parser

Given: TypeAlias = dict[str, Any]  # the options given, by name; values of parameters are still text


class Remarks(Protocol):
    """A request with remarks on its options."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on options that are valid but may not be intended, one line each."""
        ...


R = TypeVar("R", bound=Remarks)


@dataclass(frozen=True)
class Command(Generic[R]):
    """One command; `catalogue.COMMANDS` names its module."""

    usage: str
    description: str
    examples: str
    add_options: Callable[[Parser], None]
    request: Callable[[Given], R]  # checks the options before anything is computed; raises InputError
    run: Callable[[R, Output], int]  # returns the exit code
