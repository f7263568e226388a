"""Write tables in Parquet, with PyArrow, which is loaded only here."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import chain, islice
from typing import Any, TypeVar

from ..errors import InputError
from .formats import data
from .table import Table

T = TypeVar("T")

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
    schema: Any = arrow.schema([(name, types.get(kind, arrow.string())) for name, kind in table.columns.items()])
    sink = _Sink()
    rows = map(data, chain.from_iterable(map(table.rows, table.things)))
    with write.ParquetWriter(sink, schema) as writer:
        while group := [*islice(rows, _ROWS)]:
            columns: list[Sequence[Any]] = [*zip(*group, strict=True)]
            arrays = [arrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


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
