"""One declaration of a result, which is written as JSON, JSON Lines, CSV, Parquet, Markdown and HTML."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain, islice
from operator import attrgetter
from textwrap import indent
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar

from .. import VERSION
from ..errors import InputError
from ..files import MARK
from ..message import Message
from ..parameters import FIELD
from ..statistics.measurement import Estimate
from .formats import NONE, Say, csv_text, data, digits, escaped, json_line, json_text, pair

if TYPE_CHECKING:
    from ..captures.capture import Layer
    from ..diagnosis.results import AttentionCells

T = TypeVar("T")
Format: TypeAlias = Literal["json", "csv", "markdown"]  # of what a pane exports
Data: TypeAlias = Literal["json", "jsonl", "csv"]


@dataclass(frozen=True)
class Cell(Generic[T]):
    """One value of a line: its name and type in JSON and CSV, and its heading and words in tables for people.

    An estimate is in the object `measured` of JSON, and in two columns of CSV.
    """

    name: str  # empty: only for people
    kind: type  # of the column in CSV; object: only in JSON
    of: str | Callable[[T], Any] = ""  # how a thing has the value: the path of an attribute, by default the name
    label: str = ""  # with the unit; empty: only for programs
    words: Callable[[T], str] | None = None  # by default the text itself, or four digits of a number
    in_json: bool = True
    room: int = 0  # characters of its longest text, for tables whose values change on screen
    short: str = ""  # a heading for narrow screens

    def value(self, thing: T) -> Any:
        """Return the value of a thing."""
        return attrgetter(self.of or self.name)(thing) if isinstance(self.of, str) else self.of(thing)

    def text(self, thing: T) -> str:
        """Return the words for the value of a thing."""
        if self.words is not None:
            return self.words(thing)
        value = self.value(thing)
        return digits(value) if isinstance(value, float) else NONE if value is None or value == "" else f"{value}"


def text_cell(label: str, words: Callable[[T], str], room: int = 0) -> Cell[T]:
    """Return a cell that is only in tables for people."""
    return Cell("", str, words, label, words, room=room)


class TextGrid(NamedTuple):
    """A table for people; all columns but the first are aligned right."""

    header: Sequence[str]
    lines: Sequence[Sequence[str]]
    of_words: bool = False  # align all columns left


class _Message(Message):
    """A text, or a message, which keeps its values, of a kind that a page marks."""

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        if isinstance(text, Message):
            made.template, made.values, made.plural = text.template, text.values, text.plural
        return made


class Bold(_Message):
    """A paragraph or a cell that stands out."""


class Heading(_Message):
    """The title of a part of a page."""


class CommandLine(str):
    """The command that prints the same."""


Tone: TypeAlias = Literal["right", "wrong", "undecided", "downstream", "neutral"]


@dataclass(frozen=True)
class Statement:
    """What is said of some heads: a label, where they are, what q·k was and should be multiplied by, and why."""

    label: str
    where: str
    sentences: tuple[str, ...] = ()  # some may be empty
    tone: Tone = "neutral"
    used: str = ""
    expected: str = ""


class HeadMark(NamedTuple):
    """A head on a map."""

    layer: Layer
    head: int
    tone: Tone
    word: str  # for the legend
    says: str = ""
    sign: str = ""  # by default that of the tone


class VerdictMap(NamedTuple):
    """A map of layers and heads; only HTML has it."""

    marks: Sequence[HeadMark]


class Picture(NamedTuple):
    """The attention of a head, once or as it was and as it should be."""

    title: str
    matrices: Sequence[tuple[str, AttentionCells | str]]  # each after its caption; a text says why there is none


class Pictures(NamedTuple):
    """Pictures of heads, drawn when they are asked for; only HTML has them."""

    draw: Callable[[], Iterable[Picture]]


Block: TypeAlias = str | TextGrid | Statement | VerdictMap | Pictures  # of a page: a paragraph, a table, …


@dataclass(frozen=True, eq=False)
class Table(Generic[T]):
    """A result: what is said of all its things, and how each of them is written. Things may come one by one."""

    schema: str
    head: Mapping[str, Any]  # what JSON says before the list
    name: str  # of the list in JSON; empty: there is none
    things: Iterable[T]
    elements: Callable[[T], Iterable[Mapping[str, Any]]]  # of one thing, in JSON
    columns: Mapping[str, type]  # of CSV
    rows: Callable[[T], Iterable[Sequence[Any]]]  # of one thing, in CSV
    page: Callable[[], Iterable[Block]]  # for people
    after: Mapping[str, Any] = field(default_factory=dict[str, Any])  # what JSON says after the list
    tail: Callable[[Sequence[T]], Mapping[str, Any]] | None = None  # what it says of all things, between both
    asked: int | None = None  # elements of the complete list, if things come one by one


def table_of(
    schema: str,
    head: Mapping[str, Any],
    name: str,
    things: Iterable[T],
    cells: Sequence[Cell[T]],
    page: Callable[[], Iterable[Block]],
    place: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    tail: Callable[[Sequence[T]], Mapping[str, Any]] | None = None,
    asked: int | None = None,
) -> Table[T]:
    """Return a table with an element and a row for each thing; every row begins with the values of `place`."""
    place = place or {}
    columns = {**{name: _kind(name, value) for name, value in place.items()}, **columns_of(cells)}
    first = [*place.values()]
    return Table(
        schema, head, name, things, lambda each: [entry(cells, each)], columns,
        lambda each: [[*first, *row(cells, each)]], page, after or {}, tail, asked,
    )  # fmt: skip


def entry(cells: Iterable[Cell[T]], thing: T) -> dict[str, Any]:
    """Return a thing as an object of JSON."""
    found: dict[str, Any] = {}
    for cell in cells:
        if cell.name and cell.in_json:
            target = found.setdefault("measured", {}) if cell.kind is Estimate else found
            target[cell.name] = cell.value(thing)
    return found


def columns_of(cells: Iterable[Cell[T]]) -> dict[str, type]:
    """Return the names and types of the columns of CSV."""
    found: dict[str, type] = {}
    for cell in cells:
        if cell.kind is Estimate:
            found |= {cell.name: float, f"{cell.name}_stderr": float}
        elif cell.name and cell.kind is not object:
            found[cell.name] = str if cell.kind is list else cell.kind
    return found


def row(cells: Iterable[Cell[T]], thing: T) -> list[Any]:
    """Return the values of those columns."""
    values: list[Any] = []
    for cell in cells:
        if cell.name and cell.kind is not object:
            value = cell.value(thing)
            values += (
                pair(value) if isinstance(value, Estimate) else [" ".join(value) if cell.kind is list else value]
            )
    return values


def grid(cells: Iterable[Cell[T]], things: Iterable[T], of_words: bool = False) -> TextGrid:
    """Return the things as a table for people."""
    shown = [cell for cell in cells if cell.label]
    lines = [[cell.text(thing) for cell in shown] for thing in things]
    return TextGrid([cell.label for cell in shown], lines, of_words)


def parameter_types(names: Iterable[str]) -> dict[str, type]:
    """Return the types of columns that hold these parameters."""
    return {name: {"integer": int, "real": float}.get(FIELD[name].kind, str) for name in names}


def _kind(name: str, value: object) -> type:
    return parameter_types([name])[name] if name in FIELD else type(value)


def page_of(parameters: Sequence[str], table: TextGrid, remarks: Iterable[str], command: str) -> list[Block]:
    """Return the page of parameters, a table, remarks about it, and the command that prints it."""
    return [f"Parameters: {', '.join(parameters)}", table, *remarks, CommandLine(command)]


def written(table: Table[T], format: Format, say: Say = str) -> str:
    """Return a complete table as text."""
    return markdown(table.page(), say) if format == "markdown" else "".join(pieces(table, format))


def pieces(table: Table[T], format: Data) -> Iterator[str]:
    """Yield the text piece by piece as the things come: whole lines, and in JSON at last whether all are there."""
    match format:
        case "json":
            yield from _json(table)
        case "jsonl":
            things = table.things if table.asked is not None else [*table.things]
            count = sum(len([*table.elements(thing)]) for thing in things) if table.asked is None else table.asked
            yield json_line({**_head(table), **table.after, "lines": count})
            for thing in things:
                yield "".join(map(json_line, table.elements(thing)))
        case "csv":
            yield csv_text([[*table.columns]])
            for thing in table.things:
                yield csv_text(map(data, table.rows(thing)))


def _head(table: Table[T]) -> dict[str, Any]:
    return {"schema": f"attn-tui/{table.schema}", "version": VERSION, **table.head}


def _json(table: Table[T]) -> Iterator[str]:
    if not table.name:
        yield json_text(_head(table))
        return
    yield json_text(_head(table)).removesuffix("\n}\n") + f',\n  "{table.name}": ['
    count, seen = 0, list[T]()
    for thing in table.things:
        if table.tail is not None:
            seen.append(thing)
        elements = [indent(json_text(element).removesuffix("\n"), "    ") for element in table.elements(thing)]
        if elements:
            yield ("," if count else "") + "\n" + ",\n".join(elements)
        count += len(elements)
    rest = {**(table.tail(seen) if table.tail is not None else {}), **table.after}
    rest |= {} if table.asked is None else {"complete": count == table.asked}
    yield ("\n  " if count else "") + "]" + (",\n" + json_text(rest).removeprefix("{\n") if rest else "\n}\n")


def markdown(page: Iterable[Block], say: Say = str) -> str:
    """Return a page as Markdown."""
    return "\n".join(_block(block, say) for block in page if not isinstance(block, (VerdictMap, Pictures)))


def _block(block: str | TextGrid | Statement, say: Say) -> str:
    if isinstance(block, Statement):
        numbers = ", ".join(filter(None, (block.used, block.expected)))
        texts = (Bold(block.label), block.where, numbers, *block.sentences)
        return "  \n".join(_marked(text, say) for text in texts if text) + "\n"
    if not isinstance(block, TextGrid):
        return f"{_marked(block, say)}\n"
    header, *lines = ([_marked(cell, say) for cell in line] for line in (block.header, *block.lines))
    rule = [":--", *[":--" if block.of_words else "--:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def _marked(text: str, say: Say) -> str:
    match text:
        case CommandLine():
            return f"`{text}`"
        case Bold():
            return f"**{escaped(text, say)}**"
        case Heading():
            return f"## {escaped(text, say)}"
        case _:
            return escaped(text, say)


_ROWS = 1 << 14  # of a group: what is held in memory at a time


def require_parquet(name: str) -> None:
    """Raise InputError about the file of this name if PyArrow is missing."""
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("{name}: Parquet needs pip install 'attn-tui[table]'", name=name) from None


def parquet_pieces(table: Table[T]) -> Iterator[bytes]:
    """Yield a Parquet file piece by piece as the things come; its rows are those of CSV, with text as it is."""
    arrow: Any = import_module("pyarrow")
    write: Any = import_module("pyarrow.parquet")
    types: dict[type, Any] = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    fields = [(name, types.get(kind, arrow.string())) for name, kind in table.columns.items()]
    schema: Any = arrow.schema(fields, metadata={"attn-tui": MARK})
    sink = _Sink()
    rows = map(data, chain.from_iterable(map(table.rows, table.things)))
    with write.ParquetWriter(sink, schema) as writer:
        while group := [*islice(rows, _ROWS)]:
            columns: list[Sequence[Any]] = [*zip(*group, strict=True)]
            arrays = [arrow.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that keeps what is written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._kept += data
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        kept = bytes(self._kept)
        self._kept.clear()
        return kept
