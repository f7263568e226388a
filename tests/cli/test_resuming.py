"""--resume: finished parts are kept in a file; --dry-run: how much the work would be; Parquet."""

import csv
import io
import json
import math
import os
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.message import message
from attn_tui.core.parameters import Parameters
from attn_tui.core.statistics.measurement import Estimate
from attn_tui.core.work import sweeps
from attn_tui.core.work.part import Part
from attn_tui.core.work.spool import SpoolError, open_spool, results_in, text_of
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, Captured, assert_refused, printed
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

SMALL = ("--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2")
SWEEP = ("sweep", "--n-keys", "4:40:log9", "--n-queries", "4", "--batch", "2", "--d-k", "2,30", "--format", "json")


@pytest.fixture
def none_is_performed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function after which any part that is performed fails the test."""

    def failed(self: Part[Any]) -> Any:
        raise AssertionError(f"performed again: {self}")

    return lambda: monkeypatch.setattr(Part, "steps", failed)


def test_work_goes_on_after_a_file_that_was_cut_off_anywhere(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "parts"
    expected = printed([*SWEEP, "--resume", str(file)], capsys)
    data = file.read_bytes()
    start = data.index(b"\n") + 1
    for kept in (0.3, 0.99, 1):
        file.write_bytes(data[: start + round(kept * (len(data) - start))])
        assert main([*SWEEP, "--resume", str(file), "--executor", "serial"]) == 0
        assert capsys.readouterr().out == expected
        data = file.read_bytes()


def test_a_damaged_part_is_not_read(tmp_path: Path) -> None:
    file, parts = tmp_path / "parts", [Part[Any](sweeps.measure_nested, (number,)) for number in range(2)]
    with open_spool(file) as spool:
        for part in parts:
            spool.add(part, (7.0,))
    data = file.read_bytes()
    file.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    with open_spool(file) as spool:
        assert [spool.get(part) for part in parts] == [(7.0,), None]


def test_what_was_done_before_ctrl_c_is_not_done_again(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = sweeps.measure_nested, list[int]()

    def interrupted(*arguments: Any) -> Any:
        begun.append(1)
        if len(begun) == 5:
            raise KeyboardInterrupt
        return real(*arguments)

    interrupted.__module__, interrupted.__qualname__ = real.__module__, real.__qualname__
    monkeypatch.setattr(sweeps, "measure_nested", interrupted)
    words = [*SWEEP, "--executor", "serial", "--resume", str(tmp_path / "parts")]
    assert main(words) == 130
    assert not json.loads(capsys.readouterr().out)["complete"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["complete"], len(begun)) == (True, 5 + 9 - 4)


def test_a_full_disk_ends_the_work_with_one_line_and_keeps_what_is_done(tmp_path: Path, capsys: Captured) -> None:
    resource = pytest.importorskip("resource")
    file, (soft, hard) = tmp_path / "parts", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # bytes that a file may have
    try:
        code, (out, err) = main([*SWEEP, "--resume", str(file), "--executor", "serial"]), capsys.readouterr()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 2
    assert err.startswith(f"attn-tui: {file}: ")
    assert err.count("\n") == 1
    assert 0 < len(json.loads(out)["points"]) < 18
    assert main([*SWEEP, "--resume", str(file)]) == 0
    assert capsys.readouterr().out == printed(SWEEP, capsys)


def test_other_files_are_refused(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "parts"
    assert main([*SWEEP, "--resume", str(file)]) == 0
    capsys.readouterr()
    words = [*SWEEP, "--resume", str(file)]
    file.write_bytes(file.read_bytes().replace(b'"NumPy": "', b'"NumPy": "0.', 1))
    assert_refused(words, f"{file}: … NumPy 0.", capsys)
    traits = b'{"schema": "attn-tui/parts-2", "traits": {"attn-tui": %b, "NumPy": 1}}\n'
    deep = b"[" * 3000 + b"]" * 3000
    for data in (b"{}\n", b"text", b"\xff\xff\n", b"[1]\n", deep, *(traits % each for each in (deep, b"9" * 400))):
        file.write_bytes(data)
        assert_refused(words, f"{file}: … --resume", capsys)
        assert file.read_bytes() == data
    assert_refused([*SWEEP, "--resume", str(tmp_path)], f"{tmp_path}: ", capsys)


def test_a_file_is_written_by_one_process_at_a_time(tmp_path: Path) -> None:
    file = tmp_path / "parts"
    with open_spool(file), pytest.raises(SpoolError, match=str(file)), open_spool(file):
        pass


def test_a_capture_that_changed_in_the_middle_is_judged_again(tmp_path: Path, capsys: Captured) -> None:
    """Even at its size and time: what `check` said of another file passes no build."""
    file = tmp_path / "a.safetensors"
    words = ["inspect", str(file), "--format", "csv", "--resume", str(tmp_path / "parts")]
    rng = np.random.default_rng(0)
    tensors = {f"layers.{n}.attn.{side}": rng.normal(size=(1, 4, 64, 16)) for n in range(8) for side in "qk"}
    save_file(tensors, file)
    assert main(words) == 0
    before, status = capsys.readouterr().out, file.stat()
    tensors["layers.4.attn.q"] *= 2
    save_file(tensors, file)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert file.stat().st_size == status.st_size > 5 << 16
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out != before
    assert "already" not in err


def forged(file: Path, part: Part[Any], data: bytes) -> None:
    """Write a file of finished parts that says that these are the results of a part."""
    with open_spool(file) as spool:
        spool.add(part, ())
    whole = file.read_bytes()
    start = whole.index(b"\n") + 1
    head = whole[start : start + 32] + struct.pack("<QI", len(data), zlib.crc32(data))  # after the part's key
    file.write_bytes(whole[:start] + head + data)


@pytest.mark.parametrize(
    "data",
    [
        b"[",
        b"7",
        b"[[" * 100_000,
        b"[" * 3000 + b"]" * 3000,
        b"[" + b"9" * 5000 + b"]",
        b'[{"scalar":["<i2",' + b"9" * 30 + b"]}]",
        b'[{"a":1,"b":2}]',
        b'[{"recorder.program.sitecustomize:Path":[]}]',
        b'[{"work.heads:os.system":["true"]}]',
        b'[{"work.heads:source_of":[]}]',
        b'[{"lab.results:Point":{"nonsense":1}}]',
        b'[{"parameters:Parameters":{"d_k":-1}}]',
        b'[{"array":["<f8",[2],"AAAA"]}]',
        b'[{"array":["O",[1],"AAAAAAAAAAA="]}]',
        b'[{"scalar":["<U9","text"]}]',
        b'["\\u001b[2J"]',
        b'[{"message":["one\\nline","one\\nline",{"dict":[]},null]}]',
        pickle.dumps((print,)),
    ],
)
def test_results_that_attn_tui_did_not_write_run_nothing_and_are_refused(data: bytes, tmp_path: Path) -> None:
    file, part = tmp_path / "parts", Part[Any](sweeps.measure_nested, ())
    forged(file, part, data)
    with open_spool(file) as spool, pytest.raises(SpoolError) as refused:
        spool.get(part)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "results", [b"[", b"[]", b"[1,2]", b'[{"statistics.measurement:Estimate":{"value":"text","stderr":[]}}]']
)
def test_a_forged_file_never_ends_a_command_without_a_result(
    results: bytes, tmp_path: Path, capsys: Captured
) -> None:
    """As a pickle that named `numpy.f2py.__main__` did, which exits with 0."""
    file, words = tmp_path / "parts", ["check", SAMPLE, "--resume", str(tmp_path / "parts")]
    assert main([*words, "--executor", "serial"]) == 0
    whole = file.read_bytes()
    start = whole.index(b"\n") + 1
    data = results.ljust(struct.unpack("<Q", whole[start + 32 : start + 40])[0])
    file.write_bytes(
        whole[: start + 40] + struct.pack("<I", zlib.crc32(data)) + data + whole[start + 44 + len(data) :]
    )
    capsys.readouterr()
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith(f"attn-tui: {file}: ")


@pytest.mark.parametrize(
    "command",
    [
        SWEEP,
        [*SWEEP, "--mechanism", "additive"],
        [*SWEEP, "--vary", "scale=1/sqrt(d_k),1/d_k"],
        ["sweep", "--d-k", "16,32", "--n-keys", "4096", "--n-queries", "256", "--batch", "64"],
        ["rules", "--n-keys", "16", "--n-queries", "8", "--batch", "4"],
        ["inspect", SAMPLE],
        ["diagnose", SAMPLE],
        ["compare", SAMPLE, SAMPLE],
        ["check", SAMPLE],
    ],
)
def test_a_part_with_other_than_all_results_is_refused(command: list[str], tmp_path: Path, capsys: Captured) -> None:
    """A part that was believed without results made a command print nothing, and pass."""
    file = tmp_path / "parts"
    words = [*command, "--resume", str(file)]
    assert main(words) == 0
    whole = file.read_bytes()
    start = whole.index(b"\n") + 1
    [length] = struct.unpack("<Q", whole[start + 32 : start + 40])
    results = json.loads(whole[start + 44 : start + 44 + length])
    capsys.readouterr()
    for some in (results[:-1], [*results, results[-1]]):
        data = json.dumps(some).encode()
        record = whole[start : start + 32] + struct.pack("<QI", len(data), zlib.crc32(data)) + data
        file.write_bytes(whole[:start] + record + whole[start + 44 + length :])
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines()[-1].startswith(f"attn-tui: {file}: ")


@pytest.mark.parametrize("length", [1 << 20, 1 << 40, (1 << 63) - 1, (1 << 64) - 1])
def test_a_length_beyond_the_end_of_the_file_is_cut_off(length: int, tmp_path: Path) -> None:
    file, part = tmp_path / "parts", Part[Any](sweeps.measure_nested, ())
    with open_spool(file) as spool:
        spool.add(part, (1.0,))
    whole = file.read_bytes()
    file.write_bytes(whole + bytes(32) + struct.pack("<QI", length, 0) + b"few")
    with open_spool(file) as spool:
        assert spool.get(part) == (1.0,)
    assert file.read_bytes() == whole


def test_only_a_regular_file_holds_finished_parts(tmp_path: Path, capsys: Captured) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        assert_refused([*SWEEP, "--resume", str(path)], f"{path}: ", capsys)


def test_the_output_is_never_the_file_of_finished_parts(tmp_path: Path, capsys: Captured) -> None:
    file, link = tmp_path / "parts", tmp_path / "link"
    assert main([*SWEEP, "--resume", str(file)]) == 0
    before = file.read_bytes()
    capsys.readouterr()
    link.symlink_to(file)
    for path in (file, link):
        assert_refused([*SWEEP, "--resume", str(file), "-o", str(path)], f"{path} … --resume", capsys)
    assert main([*SWEEP, "--resume", str(file), "-o", str(tmp_path / "x.json")]) == 0
    assert file.read_bytes() == before


def test_results_are_the_same_after_they_were_stored() -> None:
    some = message("{n} heads", n=3)
    results = (
        1, 0.1, -math.inf, None, True, "ü text", (1, (2.0,)), [1], {"a": 1, (1, 2): 3},
        frozenset({1}), slice(1, None), np.arange(6, dtype=np.int16).reshape(2, 3), np.float32(0.1), Path("a"),
        Parameters(d_k=3), Estimate(1.0, 0.5), some, CaptureError("{path}: wrong", path="x"),
    )  # fmt: skip
    found = results_in(text_of(results))
    assert [type(each) for each in found] == [type(each) for each in results]
    assert str(found[-1]) == str(results[-1])
    assert (found[-2], found[-2].template, found[-2].values) == (some, some.template, some.values)
    assert np.array_equal(found[11], results[11])
    assert found[11].dtype == np.int16
    assert [*found[:11], *found[12:-1]] == [*results[:11], *results[12:-1]]
    with pytest.raises(TypeError):
        text_of((print,))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (SWEEP, "9 parts, about "),
        ((*SWEEP, "--stderr", "0.1"), "9 parts, at least "),
        (("sweep", "--d-k", "1:4096", "--n-keys", "8192", "--n-queries", "8192"), " core-hours, "),
        (("inspect", SAMPLE), "1 part, about "),
        (("rules", *SMALL[2:], "--mechanisms"), "42 parts, about "),
        (("claims",), " parts, about "),
    ],
    ids=["sweep", "target", "long", "inspect", "rules", "claims"],
)
def test_a_dry_run_says_how_much_the_work_would_be(
    words: tuple[str, ...], says: str, capsys: Captured, none_is_performed: Any
) -> None:
    none_is_performed()
    said = printed([*words, "--dry-run"], capsys)
    assert says in said
    assert said.endswith(" kB to be sent\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [("sweep", *SMALL), ("inspect", SAMPLE)],
    ids=lambda words: words[0],
)
def test_parquet_has_the_rows_of_csv(words: tuple[str, ...], tmp_path: Path, capsys: Captured) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    assert printed([*words, "-o", str(tmp_path / "x.parquet")], capsys) == ""
    rows = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    expected = [*csv.DictReader(io.StringIO(printed([*words, "--format", "csv"], capsys)))]
    assert len(rows) == len(expected) > 0
    for row, line in zip(rows, expected, strict=True):
        assert [*row] == [*line]
        for name, cell in line.items():
            value = row[name]
            assert (value is None) == (cell == ""), name
            if isinstance(value, float):
                assert value == float(cell)
    assert {type(row["value"]) for row in rows if "value" in row} <= {float, type(None)}


def test_ctrl_c_leaves_a_whole_table_of_the_points_that_are_done(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="needs pip install 'attn-tui[table]'")
    real, begun, file = sweeps.measure_nested, list[int](), tmp_path / "x.parquet"

    def interrupted(*arguments: Any) -> Any:
        begun.append(1)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(sweeps, "measure_nested", interrupted)
    assert main([*SWEEP[:-2], "--executor", "serial", "-o", str(file)]) == 130
    assert capsys.readouterr().err == f"attn-tui: interrupted: kept 4 of 18 points in {file}\n"
    table = parquet.read_table(file)
    assert table.select(["n_keys", "d_k"]).to_pylist()[:: len(table) // 4] == [
        {"n_keys": n_keys, "d_k": d_k} for n_keys in (4, 5) for d_k in (2, 30)
    ]


def test_parquet_is_no_other_format(tmp_path: Path, capsys: Captured) -> None:
    words = ["sweep", *SMALL, "-o", str(tmp_path / "x.parquet"), "--format", "json"]
    assert_refused(words, "x.parquet: … --format json", capsys)
