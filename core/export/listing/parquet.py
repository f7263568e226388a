"""Write tables in Parquet, with PyArrow, which is loaded only here."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import Any, TypeVar

from ...errors import InputError
from .listing import CellType, Listing

T = TypeVar("T")

_ROWS = 1 << 14  # of a group: what is held in memory at a time


def require_parquet(name: str) -> None:
    """Raise InputError about the file of this name if PyArrow is missing."""
    try:
        import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("{name}: Parquet needs pip install 'attn-tui[table]'", name=name) from None


def parquet_pieces(listing: Listing[T], things: Iterable[T]) -> Iterator[bytes]:
    """Yield a Parquet file piece by piece as the things come; its rows are those of CSV, with text as it is."""
    arrow: Any = import_module("pyarrow")
    write: Any = import_module("pyarrow.parquet")
    types: dict[CellType, Any] = {
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "boolean": arrow.bool_(),
        "string": arrow.string(),
    }
    schema: Any = arrow.schema([(name, types[kind]) for name, kind in listing.columns.items()])
    sink = _Sink()
    rows = chain.from_iterable(map(listing.rows, things))
    with write.ParquetWriter(sink, schema) as writer:
        while group := [*islice(rows, _ROWS)]:
            columns: list[Sequence[Any]] = [*zip(*group, strict=True)]
            arrays = [arrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


def parquet(csv: str) -> bytes:
    """Return the rows of some CSV as a Parquet file; numbers and booleans are typed, and empty cells are null."""
    arrow: Any = import_module("pyarrow")
    read: Any = import_module("pyarrow.csv")
    write: Any = import_module("pyarrow.parquet")
    options = read.ConvertOptions(strings_can_be_null=True, null_values=[""])
    table = read.read_csv(arrow.BufferReader(csv.encode()), convert_options=options)
    sink = arrow.BufferOutputStream()
    write.write_table(table, sink)
    return sink.getvalue().to_pybytes()


class _Sink(io.RawIOBase):
    """A file that keeps what is written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._kept = bytearray()
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._kept += data
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def taken(self) -> bytes:
        """Return what was written since the last time."""
        kept = bytes(self._kept)
        self._kept.clear()
        return kept
