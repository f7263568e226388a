"""A result that is a list of things, written as they come: as JSON, JSON Lines or CSV."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from ...parameters import FIELD
from ..formats import csv_text, json_text

T = TypeVar("T")
Streamed: TypeAlias = Literal["json", "jsonl", "csv"]
CellType: TypeAlias = Literal["integer", "number", "boolean", "string"]

_TYPES: Mapping[str, CellType] = {"integer": "integer", "real": "number"}  # by the kind of a field


@dataclass(frozen=True, eq=False)
class Listing(Generic[T]):
    """What is said of a list of things of type T, and how each of them is written."""

    head: Mapping[str, Any]  # what JSON says before the list
    name: str  # of the list in JSON
    asked: int  # elements of the complete list
    elements: Callable[[T], Sequence[Mapping[str, Any]]]  # of one thing, in JSON
    columns: Mapping[str, CellType]  # of CSV
    rows: Callable[[T], Iterable[Sequence[Any]]]  # of one thing, in CSV
    tail: Callable[[], Mapping[str, Any]] = dict  # what JSON says after the list


def field_types(names: Iterable[str]) -> dict[str, CellType]:
    """Return the types of columns that hold these parameters."""
    return {name: _TYPES.get(FIELD[name].kind, "string") for name in names}


def whole(listing: Listing[T], format: Streamed, things: Iterable[T]) -> str:
    """Return a complete list as text."""
    return "".join(pieces(listing, format, things))


def pieces(listing: Listing[T], format: Streamed, things: Iterable[T]) -> Iterator[str]:
    """Yield the text piece by piece as the things come: whole lines, and in JSON at last whether all are there."""
    match format:
        case "json":
            yield from _json(listing, things)
        case "jsonl":
            yield _line({**listing.head, "lines": listing.asked})
            for thing in things:
                yield "".join(map(_line, listing.elements(thing)))
        case "csv":
            yield csv_text([*listing.columns], [])
            for thing in things:
                yield csv_text([*listing.columns], listing.rows(thing)).partition("\n")[2]


def json_lines(text: str, name: str, others: Sequence[str] = ()) -> str:
    """Return one JSON object as JSON Lines: what it says beside the list of this name, then each of its elements.

    `others` are left out.
    """
    head: dict[str, Any] = json.loads(text)
    for other in others:
        del head[other]
    elements: list[Mapping[str, Any]] = head.pop(name)
    return "".join(map(_line, [{**head, "lines": len(elements)}, *elements]))


def _line(element: Mapping[str, Any]) -> str:
    return json.dumps(element, allow_nan=False) + "\n"


def _json(listing: Listing[T], things: Iterable[T]) -> Iterator[str]:
    count = 0
    yield json_text(listing.head).removesuffix("\n}\n") + f',\n  "{listing.name}": ['
    for thing in things:
        elements = [indent(json_text(each).removesuffix("\n"), "    ") for each in listing.elements(thing)]
        if elements:
            yield ("," if count else "") + "\n" + ",\n".join(elements)
        count += len(elements)
    rest = json_text({**listing.tail(), "complete": count == listing.asked}).removeprefix("{\n")
    yield ("\n  " if count else "") + "],\n" + rest
