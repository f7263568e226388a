"""Lists that are written as their things come: each before the next one is asked for, whole at the end."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from attn_tui.core.export.listing import parquet
from attn_tui.core.export.listing.listing import Listing, Streamed, json_lines, pieces, whole

NAMES = ("=1+1", "ü", "a,b\n")


def listing(asked: int = 3, tail: Any = dict) -> Listing[int]:
    """Numbers, each an element and two rows."""
    return Listing(
        {"schema": "test-1"},
        "numbers",
        asked,
        lambda n: [{"n": n, "name": NAMES[n]}],
        {"n": "integer", "name": "string", "half": "number", "even": "boolean"},
        lambda n: [[n, NAMES[n], None if n == 1 else n / 2, n % 2 == 0]] * 2,
        tail,
    )


@pytest.mark.parametrize("format", ["json", "jsonl", "csv"])
def test_each_thing_is_written_before_the_next_is_computed(format: Streamed) -> None:
    written, begun = list[str](), list[int]()

    def things() -> Iterator[int]:
        for n in range(3):
            begun.append(len(written))
            yield n

    for piece in pieces(listing(), format, things()):
        written.append(piece)
        assert format == "json" or piece.endswith("\n")
    assert begun == [1, 2, 3]
    assert "".join(written) == whole(listing(), format, range(3))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_is_one_indented_object_and_says_whether_it_is_complete(count: int) -> None:
    text = whole(listing(tail=lambda: {"sum": sum(range(count))}), "json", range(count))
    found = json.loads(text)
    assert text == json.dumps(found, indent=2) + "\n"
    assert found == {
        "schema": "test-1",
        "numbers": [{"n": n, "name": NAMES[n]} for n in range(count)],
        "sum": sum(range(count)),
        "complete": count == 3,
    }


def test_json_lines_are_the_elements_after_what_is_said_of_all() -> None:
    first, *lines = map(json.loads, whole(listing(), "jsonl", range(3)).splitlines())
    assert first == {"schema": "test-1", "lines": 3}
    assert lines == [{"n": n, "name": NAMES[n]} for n in range(3)]
    text = json.dumps({"a": 1, "heads": [], "numbers": lines})
    assert [*map(json.loads, json_lines(text, "numbers", ["heads"]).splitlines())] == [{"a": 1, "lines": 3}, *lines]


def test_a_number_that_json_lacks_is_a_fault_and_never_written() -> None:
    broken = Listing[int]({}, "numbers", 1, lambda n: [{"n": float("nan")}], {}, lambda n: [])
    for format in ("json", "jsonl"):
        with pytest.raises(ValueError, match="JSON"):
            whole(broken, format, [1])


def test_csv_has_the_header_even_without_rows() -> None:
    assert whole(listing(), "csv", []) == "n,name,half,even\n"
    rows = [*csv.DictReader(io.StringIO(whole(listing(), "csv", range(3))))]
    assert [row["name"] for row in rows[::2]] == ["'=1+1", "ü", r"a,b\n"]
    assert [row["half"] for row in rows[::2]] == ["0.0", "", "1.0"]


@pytest.mark.parametrize(("size", "groups"), [(1, 6), (4, 2), (100, 1)])
def test_parquet_is_written_in_groups_of_typed_rows(size: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    monkeypatch.setattr(parquet, "_ROWS", size)
    found = [*parquet.parquet_pieces(listing(), range(3))]
    assert len([piece for piece in found if piece]) == groups + 1  # and the end
    file = arrow.ParquetFile(io.BytesIO(b"".join(found)))
    assert file.num_row_groups == groups
    assert [str(field.type) for field in file.schema_arrow] == ["int64", "string", "double", "bool"]
    assert file.read().to_pylist() == [
        {"n": n, "name": NAMES[n], "half": None if n == 1 else n / 2, "even": n % 2 == 0}
        for n in range(3)
        for _ in range(2)
    ]


def test_parquet_without_rows_has_the_columns() -> None:
    arrow: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    found = arrow.read_table(io.BytesIO(b"".join(parquet.parquet_pieces(listing(), []))))
    assert (found.num_rows, found.column_names) == (0, ["n", "name", "half", "even"])
