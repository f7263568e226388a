"""--executor and --resume: where and when commands work changes no byte of what they print."""

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.work import heads
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.engine_names import ExecutorError
from attn_tui.core.work.engines import run
from attn_tui.core.work.part import Part, PartExecutor
from attn_tui.tui.cli.main import main
from cases import for_each
from cli_runner import SAMPLE, WRONG, Captured, assert_refused

SMALL = ("--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2")
SWEEP = ("sweep", "--n-keys", "4:40:log9", "--n-queries", "4", "--batch", "2", "--d-k", "2,30")
CUT = ("sweep", "--d-k", "2,30", "--n-keys", "1024", "--n-queries", "1024", "--batch", "8")
# Processes take a while to start: each kind of work is done in them once.
COMMANDS = (
    ("processes:2", *SWEEP, "--format", "json"),
    ("threads:3", *SWEEP, "--format", "jsonl"),
    ("threads:3", *CUT, "--format", "csv"),
    ("threads:3", "sweep", *SMALL, "--statistics", "all"),
    ("processes:2", "inspect", SAMPLE, WRONG, "--layer", "0", "--format", "jsonl"),
    ("threads:3", "inspect", SAMPLE, "--layer", "0", "--head", "1"),
    ("processes:2", "inspect", SAMPLE, "--rules", "all", "--layer", "0", "--format", "csv"),
    ("threads:3", "diagnose", SAMPLE, WRONG, "--format", "json"),
    ("processes:2", "check", WRONG, "--baseline", WRONG, "--format", "json"),
    ("threads:3", "compare", SAMPLE, SAMPLE, "--layer", "0"),
    ("threads:3", "rules", *SMALL, "--format", "json"),
    ("processes:2", "rules", *SMALL, "--mechanisms", "--format", "json"),
)


@pytest.mark.slow
@pytest.mark.usefixtures("short_rule_grids")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(Path(word).name for word in words))
def test_executors_and_files_of_finished_parts_change_no_byte(
    words: tuple[str, ...], tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor, *command = words
    file = str(tmp_path / "parts")
    serial = main([*command, "--executor", "serial"]), capsys.readouterr()
    assert serial[1].out
    assert (main([*command, "--executor", executor, "--resume", file]), capsys.readouterr()) == serial
    monkeypatch.setattr(Part, "steps", None)  # no part can be performed again
    code, (out, err) = main([*command, "--resume", file]), capsys.readouterr()
    assert (code, out) == (serial[0], serial[1].out)
    assert err.startswith("attn-tui: note: ")
    assert err.endswith(f" in {file} already\n")


@for_each("words", COMMANDS)
def test_a_wrong_name_is_refused(words: tuple[str, ...], capsys: Captured) -> None:
    assert_refused([*words[1:], "--executor", "cluster"], "--executor: must be serial, … 'cluster'", capsys)


@pytest.mark.parametrize(
    ("change", "says"), [("replace", "sees another file of this name"), ("remove", "not readable on")]
)
def test_a_worker_that_sees_another_file_is_named(tmp_path: Path, change: str, says: str) -> None:
    file = tmp_path / "sample.safetensors"
    file.write_bytes(Path(SAMPLE).read_bytes())
    capture = open_capture(file)
    layer = capture.layers[0]
    sources = [heads.source_of(capture, file)]
    file.unlink()
    if change == "replace":
        file.write_bytes(Path(WRONG).read_bytes())
    parts = heads.parts(heads.replay_rules, sources, [((0, 0), layer)], ((), ()))
    with open_engine("threads:1") as engine:
        results = [result for done in run(parts, engine) for result in done.results]
    assert [type(result) for result in results] == [ExecutorError]
    assert says in str(results[0])


@for_each("exact", [None, False, True])
def test_a_file_of_this_machine_is_the_same_if_its_time_is_unless_its_content_counts(
    tmp_path: Path, exact: bool | None
) -> None:
    file = tmp_path / "sample.safetensors"
    file.write_bytes(Path(SAMPLE).read_bytes())
    told: dict[str, Any] = {} if exact is None else {"exact": exact}
    before = heads.source_of(open_capture(file), file, **told)
    assert heads.source_of(open_capture(file), file, **told) == before
    os.utime(file, ns=(0, 1))
    assert (heads.source_of(open_capture(file), file, **told) == before) == bool(exact)
    file.write_bytes(Path(SAMPLE).read_bytes()[:-4] + bytes(4))
    os.utime(file, ns=(0, 2))
    assert heads.source_of(open_capture(file), file, **told) != before


@pytest.mark.parametrize("words", [("inspect", SAMPLE, "--worst", "3"), ("check", SAMPLE, "--baseline", SAMPLE)])
def test_workers_are_started_once_for_all_passes(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    started: list[str] = []

    def counted(executor: str) -> AbstractContextManager[PartExecutor]:
        started.append(executor)
        return open_engine("threads:2")  # which start faster

    monkeypatch.setattr("attn_tui.core.work.cluster.open_engine", counted)
    main([*words, "--executor", "processes:2"])
    assert capsys.readouterr().out
    assert started == ["processes:2"]
