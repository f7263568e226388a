"""--executor: where commands work changes no byte of what they print."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from attn_tui.core.captures.reader import open_capture
from attn_tui.core.work import heads
from attn_tui.core.work.engine_names import EngineError
from attn_tui.core.work.engines import Engine
from attn_tui.core.work.opening import open_engine
from attn_tui.core.work.run import run
from attn_tui.tui.cli.main import main
from cli_runner import SAMPLE, Captured, assert_refused

SMALL = ("--d-k", "8", "--n-keys", "16", "--n-queries", "4", "--batch", "2")
WRONG = str(Path(__file__).parents[1] / "data/wrong-scale.safetensors")
COMMANDS = (
    ("sweep", "--n-keys", "8,16", "--n-queries", "4", "--batch", "2", "--d-k", "1:20", "--format", "csv"),
    ("inspect", SAMPLE, "--format", "json"),
    ("inspect", SAMPLE, "--layer", "0", "--head", "1"),
    ("inspect", SAMPLE, "--rules", "all", "--layer", "0", "--format", "csv"),
    ("diagnose", WRONG, "--format", "json"),
    ("check", SAMPLE, "--baseline", SAMPLE, "--format", "json"),
    ("compare", SAMPLE, SAMPLE, "--layer", "0"),
    ("rules", *SMALL, "--format", "json"),
    ("rules", *SMALL, "--mechanisms", "--format", "json"),
    ("rules", *SMALL, "--weightings", "--format", "json"),
)


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(Path(word).name for word in words))
def test_the_executor_changes_no_byte(words: tuple[str, ...], capsys: Captured) -> None:
    serial = main([*words, "--executor", "serial"]), capsys.readouterr()
    assert serial[1].out
    for executor in ("threads:3", "processes:2"):
        assert (main([*words, "--executor", executor]), capsys.readouterr()) == serial


@pytest.mark.parametrize("words", [each for each in COMMANDS if each[0] != "claims"], ids=lambda words: words[0])
def test_a_wrong_name_is_refused(words: tuple[str, ...], capsys: Captured) -> None:
    assert_refused([*words, "--executor", "cluster"], "--executor: must be serial, … 'cluster'", capsys)


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
    assert [type(result) for result in results] == [EngineError]
    assert says in str(results[0])


@pytest.mark.parametrize("words", [("inspect", SAMPLE, "--worst", "3"), ("check", SAMPLE, "--baseline", SAMPLE)])
def test_workers_are_started_once_for_all_passes(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    started: list[str] = []

    def counted(executor: str) -> AbstractContextManager[Engine]:
        started.append(executor)
        return open_engine("threads:2")  # which start faster

    monkeypatch.setattr("attn_tui.core.work.opening.open_engine", counted)
    main([*words, "--executor", "processes:2"])
    assert capsys.readouterr().out
    assert started == ["processes:2"]
