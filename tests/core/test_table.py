"""Tables: one declaration in every format; lists are written as their things come, whole at the end."""

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from attn_tui.core.captures.capture import CaptureContents, sample_path
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.statistics.measurement import Estimate, RoughEstimate
from attn_tui.core.tables import table
from attn_tui.core.tables.heads import files_words
from attn_tui.core.tables.table import (
    Bold,
    Cell,
    CommandLine,
    Data,
    Table,
    TextGrid,
    grid,
    markdown,
    pieces,
    table_of,
)

NAMES = ("=1+1", "ü", "a,b\n")


def numbers(things: Iterable[int], asked: int | None = 3) -> Table[int]:
    """Numbers, each an element and two rows."""
    return Table(
        "test-1",
        {"about": "numbers"},
        "numbers",
        things,
        lambda n: [{"n": n, "name": NAMES[n]}],
        {"n": int, "name": str, "half": float, "even": bool},
        lambda n: [[n, NAMES[n], None if n == 1 else n / 2, n % 2 == 0]] * 2,
        list,
        tail=lambda seen: {"sum": sum(seen)},
        asked=asked,
    )


def whole(table: Table[Any], format: Data) -> str:
    return "".join(pieces(table, format))


@pytest.mark.parametrize("format", ["json", "jsonl", "csv"])
def test_each_thing_is_written_before_the_next_is_computed(format: Data) -> None:
    written, begun = list[str](), list[int]()

    def things() -> Iterator[int]:
        for n in range(3):
            begun.append(len(written))
            yield n

    for piece in pieces(numbers(things()), format):
        written.append(piece)
        assert format == "json" or piece.endswith("\n")
    assert begun == [1, 2, 3]
    assert "".join(written) == whole(numbers(range(3)), format)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_json_is_one_indented_object_and_says_whether_it_is_complete(count: int) -> None:
    text = whole(numbers(range(count)), "json")
    found = json.loads(text)
    assert text == json.dumps(found, indent=2) + "\n"
    assert (found["schema"], found["about"]) == ("attn-tui/test-1", "numbers")
    assert found["numbers"] == [{"n": n, "name": NAMES[n]} for n in range(count)]
    assert found["sum"] == sum(range(count))
    assert [*found][-1] == "complete"
    assert found["complete"] == (count == 3)
    assert "complete" not in json.loads(whole(numbers(range(count), None), "json"))


def test_json_lines_are_the_elements_after_what_is_said_of_all() -> None:
    for asked in (3, None):
        first, *lines = map(json.loads, whole(numbers(range(3), asked), "jsonl").splitlines())
        del first["version"]
        assert first == {"schema": "attn-tui/test-1", "about": "numbers", "lines": 3}
        assert lines == [{"n": n, "name": NAMES[n]} for n in range(3)]


def test_csv_has_the_header_even_without_rows() -> None:
    assert whole(numbers([]), "csv") == "n,name,half,even\n"
    rows = [*csv.DictReader(io.StringIO(whole(numbers(range(3)), "csv")))]
    assert [row["name"] for row in rows[::2]] == ["'=1+1", "ü", r"a,b\n"]
    assert [row["half"] for row in rows[::2]] == ["0.0", "", "1.0"]


THINGS = {"a|b": Estimate(2.0, 0.5), "=c": RoughEstimate(math.inf, 0.25), "d": Estimate(None, None)}
CELLS: list[Cell[str]] = [
    Cell("name", str, lambda name: name, "thing"),
    Cell("size", Estimate, lambda name: THINGS[name], "size, m", lambda name: f"{THINGS[name].value}"),
    Cell("tags", list, lambda name: [*name]),
    Cell("inner", object, lambda name: {"size": (math.nan, 1.5)}),
    Cell("twice", float, lambda name: 2 * (THINGS[name].value or 0.0), "twice", in_json=False),
]


def of_cells(place: dict[str, Any] | None = None) -> Table[str]:
    return table_of("test-1", {}, "things", THINGS, CELLS, list, place)


def test_one_declaration_of_cells_is_an_object_a_line_and_a_row_for_people() -> None:
    found = json.loads(whole(of_cells(), "json"))["things"]
    assert [*found[0]] == ["name", "measured", "tags", "inner"]
    assert [each["measured"]["size"] for each in found] == [
        {"value": 2.0, "stderr": 0.5},
        {"value": None, "stderr": None, "stderr_at_least": 0.25},
        {"value": None, "stderr": None},
    ]
    rows = [*csv.reader(io.StringIO(whole(of_cells({"d_k": 4}), "csv")))]
    assert rows == [
        ["d_k", "name", "size", "size_stderr", "tags", "twice"],
        ["4", "a|b", "2.0", "0.5", "a | b", "4.0"],
        ["4", "'=c", "", "", "'= c", ""],
        ["4", "d", "", "", "d", "0.0"],
    ]
    assert grid(CELLS, ["a|b"]) == TextGrid(["thing", "size, m", "twice"], [["a|b", "2.0", "4"]])


def test_a_number_that_json_lacks_is_null_wherever_it_stands() -> None:
    assert json.loads(whole(of_cells(), "json"))["things"][0]["inner"] == {"size": [None, 1.5]}
    assert json.loads(whole(of_cells(), "jsonl").splitlines()[1])["inner"] == {"size": [None, 1.5]}


def test_markdown_escapes_all_text_and_marks_what_stands_out() -> None:
    page = ["a*b", TextGrid(["", "n"], [[Bold("c|d"), "1\x1b[0m"]]), CommandLine("attn-tui x")]
    assert markdown(page) == "a\\*b\n\n|  | n |\n| :-- | --: |\n| **c\\|d** | 1\\\\x1b\\[0m |\n\n`attn-tui x`\n"


@pytest.mark.parametrize(("size", "groups"), [(1, 6), (4, 2), (100, 1)])
def test_parquet_is_written_in_groups_of_typed_rows(size: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    monkeypatch.setattr(table, "_ROWS", size)
    found = [*table.parquet_pieces(numbers(range(3)))]
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
    found = arrow.read_table(io.BytesIO(b"".join(table.parquet_pieces(numbers([])))))
    assert (found.num_rows, found.column_names) == (0, ["n", "name", "half", "even"])


def test_a_title_names_the_file_or_how_many_and_what_is_common_to_all() -> None:
    one = open_capture(sample_path())
    other, bare = replace(one, model="other"), replace(one, model=None, licence=None)

    def words(*captures: CaptureContents) -> list[str]:
        return files_words(captures, lambda _: "name")

    assert words(one) == ["name", one.model, one.licence]
    assert words(one, one) == ["2 files", one.model, one.licence]
    assert words(one, other) == ["2 files", one.licence]
    assert words(bare) == ["name"]
