"""--format jsonl: the elements of JSON's list, one a line, after a line that says what JSON says beside it."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.learning.claims import catalogue
from attn_tui.tui.cli.main import main
from cli_runner import COMMAND, SAMPLE, WRONG, Captured, assert_refused, kept, printed

SMALL = ("--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2")
SWEEP = ("sweep", *SMALL[2:], "--d-k", "2,8,32")
RUN = str(Path(__file__).parents[1] / "data/run.jsonl")
# Options of each command that the page of formats lists.
COMMANDS: dict[str, tuple[str, ...]] = {
    "sweep": (*SWEEP[1:], "--vary", "mask=none,causal"),
    "rules": SMALL,
    "rules --mechanisms": SMALL[2:],
    "inspect": (SAMPLE, WRONG),
    "inspect --rules all": (SAMPLE, WRONG, "--layer", "0", "--head", "1"),
    "diagnose": (SAMPLE, WRONG),
    "compare": (SAMPLE, SAMPLE, "--layer", "0"),
    "check": (SAMPLE, WRONG),
    "watch": (RUN, "--once"),
    "train": ("--d-k", "4,8", "--rules", "none", "--steps", "2", "--seeds", "1"),
    "claims": (),
}
PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text("utf-8")
LISTS = dict(re.findall(r"^\| `([\w -]+)` \| [^|]* \| `(\w+)` \|$", PAGE.partition("## JSON Lines")[2], re.M))
# What JSON says and the first line does not.
LEFT_OUT = {"diagnose": {"complete", "groups", "summary"}, "check": {"groups", "heads"}}


def test_every_command_that_lists_things_is_on_the_page() -> None:
    assert [*LISTS] == [*COMMANDS]


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_have_the_elements_of_json_and_the_first_has_the_rest(
    command: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLAIMS", catalogue.CLAIMS[:2])
    words, name = [*command.split(), *COMMANDS[command]], LISTS[command]
    words = kept(words, __name__)
    code = main([*words, "--format", "json"])
    head: dict[str, Any] = json.loads(capsys.readouterr().out)
    expected = head.pop(name)
    assert main([*words, "--format", "jsonl"]) == code == (command == "check")
    first, *lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert lines == expected
    assert first.pop("lines") == len(lines) > 0
    if "command" in first:
        first["command"] = first["command"].replace("--format jsonl", "--format json")
    assert first == {key: value for key, value in head.items() if key not in LEFT_OUT.get(command, {"complete"})}


def test_a_file_whose_name_ends_so_is_written_so(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "x.jsonl"
    assert printed([*SWEEP, "-o", str(file)], capsys) == ""
    assert file.read_text() == printed([*SWEEP, "--format", "jsonl"], capsys)
    assert printed([*SWEEP, "-o", str(file), "--format", "csv"], capsys) == ""
    assert file.read_text() == printed([*SWEEP, "--format", "csv"], capsys)


@pytest.mark.parametrize(
    ("words", "ending", "says"),
    [
        (("report",), "jsonl", "this command prints no jsonl"),
        (("learn",), "parquet", "a .parquet file has the rows of CSV, and this command prints no csv"),
    ],
)
def test_an_ending_that_a_command_cannot_write_is_refused(
    words: tuple[str, ...], ending: str, says: str, tmp_path: Path, capsys: Captured
) -> None:
    assert_refused([*words, "-o", str(tmp_path / f"x.{ending}")], f"-o {tmp_path / f'x.{ending}'}: {says}", capsys)


@pytest.mark.slow
def test_points_are_printed_as_they_finish_and_ctrl_c_leaves_whole_lines() -> None:
    words = ["sweep", "--d-k", "2:1024:log24", "--n-keys", "1024", "--n-queries", "1024", "--format", "jsonl"]
    with subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first, second = process.stdout.readline(), process.stdout.readline()
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        others = process.stdout.read().splitlines(keepends=True)
        assert process.wait(300) == 130
        told = process.stderr.read()
    found = [json.loads(line) for line in (first, second, *others)]
    assert all(line.endswith(b"\n") for line in others)
    assert [each["d_k"] for each in found[1:]] == found[0]["d_k"][: len(found) - 1]
    assert len(found) - 1 < found[0]["lines"]
    assert told.decode() == f"attn-tui: interrupted: kept {len(found) - 1} of {found[0]['lines']} points\n"


@pytest.mark.slow
def test_a_reader_that_has_enough_ends_it_quietly() -> None:
    reading, writing = os.pipe()
    words = ["sweep", "--d-k", "2:1024:log24", "--n-keys", "256", "--format", "jsonl"]
    with subprocess.Popen([*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE) as process:
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert [json.loads(pipe.readline())["schema"], json.loads(pipe.readline())["d_k"]] == [
                "attn-tui/sweep-2",
                2,
            ]
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait(300) == 141
