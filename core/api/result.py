"""What all results of the library have in common: a few lines to print, and what the command writes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from textwrap import fill
from typing import Any, Generic, TypeAlias, TypeVar, cast

from ..errors import InputError, did_you_mean
from ..questions.question import Question
from ..tables.html import html_part
from ..tables.table import Table, markdown, pieces

FilePath: TypeAlias = str | PathLike[str]

T = TypeVar("T")
SHOWN = ("logit_std", "entropy", "effective_keys", "max_weight", "dead_rows")  # in a repr
_LINES, _WIDTH = 8, 160  # of a repr, below its first line


class Result:
    """A result that can be written as the command of its name writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Return what the command prints with `--format json`."""
        return cast("dict[str, Any]", json.loads("".join(pieces(self.table(), "json"))))

    def rows(self) -> list[dict[str, Any]]:
        """Return what the command prints with `--format csv`: `pandas.DataFrame(result.rows())`."""
        table = self.table()
        return [dict(zip(table.columns, row, strict=True)) for thing in table.things for row in table.rows(thing)]

    def table(self) -> Table[Any]:
        """Return the declaration of its JSON and CSV."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what the command writes to a file that ends in .html."""
        return html_part(self.table().page())

    def __repr__(self) -> str:
        first, *rest = filter(None, markdown(self.table().page()).splitlines())
        return short_lines(first, rest)


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Result, Generic[T]):
    """What a command finds out: `value` is the object itself."""

    value: T
    question: Question[Any]
    found: Any  # the answer to the question

    def table(self) -> Table[Any]:
        return self.question.table(self.found)


class Catalogue(dict[str, T]):
    """Declarations by name."""

    def __repr__(self) -> str:
        return fill(f"<{len(self)}: {', '.join(self)}>", 110)


def short_lines(first: str, lines: Sequence[str]) -> str:
    """Return the first lines, each cut at a width that can be read."""
    rest = [f"… {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return "\n".join(line[:_WIDTH] for line in (first, *lines[:_LINES], *rest))


def known_name(name: str, among: Iterable[str]) -> str:
    """Return a name that is among these; raise InputError if it is not."""
    if name not in (known := [*among]):
        raise InputError("{name}: unknown name{near}", name=name, near=did_you_mean(name, known))
    return name


def own_number(value: Any) -> Any:
    """Return a single number of NumPy, PyTorch or JAX as one of Python, and anything else as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
