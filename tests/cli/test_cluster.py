"""Work on a Dask cluster: a scheduler and two workers on this machine, as users start them."""

import json
import os
import platform
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from attn_tui.core.parameters import Parameters
from attn_tui.core.work import cluster, pools, worker
from attn_tui.core.work.cluster import open_engine
from attn_tui.core.work.engine_names import LostExecutorError
from attn_tui.core.work.engines import run
from attn_tui.core.work.sweeps import parts, sweep_plan
from attn_tui.tui.cli.main import main
from cli_runner import COMMAND, SAMPLE, WRONG, Captured, attn, printed, refusal
from dask_cluster import PATIENCE, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not find_spec("distributed"), reason="needs attn-tui[cluster]")]

SMALL = ("sweep", "--n-keys", "16", "--n-queries", "8", "--batch", "4")
LONG = ("sweep", "--d-k", "2:1024:log24", "--n-keys", "1024", "--n-queries", "256", "--batch", "16")


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    found.add_worker("--no-nanny")
    found.add_worker()
    yield found
    found.end()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that a test may damage."""
    found = Cluster(tmp_path)
    yield found
    found.end()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a long sweep gives on this machine."""
    file = tmp_path_factory.mktemp("expected") / "found.json"
    assert main([*LONG, "--format", "json", "-o", str(file)]) == 0
    return file.read_bytes()


def _end_on_ctrl_c() -> None:
    """Let SIGINT end the command, even if this process was started in the background and ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def writes(descriptor: Path) -> bool:
    """Return whether a process writes a file that has no name yet, as -o does."""
    try:
        return descriptor.readlink().name.startswith("#")
    except OSError:  # closed meanwhile
        return False


def begun(words: tuple[str, ...], file: Path) -> "subprocess.Popen[str]":
    """Start a command in another process; return when it works."""
    process = subprocess.Popen(
        [*COMMAND, *words, "--format", "json", "-o", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_end_on_ctrl_c,
    )
    limit = time.monotonic() + PATIENCE
    while not any(map(writes, Path(f"/proc/{process.pid}/fd").iterdir())):  # the first point is written
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    return process


@pytest.mark.parametrize(
    "words",
    [
        (*SMALL, "--d-k", "1:40", "--vary", "scale=sqrt_d_k,d_k", "--format", "csv"),
        (*SMALL, "--d-k", "2,64", "--stderr", "0.01", "--format", "json"),
        (*SMALL, "--d-k", "2,64", "--statistics", "all"),
        ("inspect", SAMPLE, WRONG, "--format", "jsonl"),
        ("sweep", "--d-k", "2:64:log4", "--n-keys", "1024", "--n-queries", "1024", "--format", "json"),
    ],
    ids=lambda words: words[0],
)
def test_the_bytes_are_those_of_this_machine(words: tuple[str, ...], two_workers: Cluster, capsys: Captured) -> None:
    expected = printed([*words, "--executor", "serial"], capsys)
    assert printed([*words, *two_workers.executor], capsys) == expected


def test_a_cluster_on_this_machine_is_started_and_ended(capsys: Captured) -> None:
    words = [*SMALL, "--d-k", "2,64", "--format", "json"]
    found = attn(*words, "--executor", "dask")
    assert (found.returncode, found.stderr) == (0, b"")
    assert found.stdout.decode() == printed([*words, "--executor", "serial"], capsys)


def test_a_worker_that_is_killed_changes_no_byte(own: Cluster, tmp_path: Path, expected: bytes) -> None:
    own.add_worker("--no-nanny")
    own.add_worker("--no-nanny")
    file = tmp_path / "found.json"
    process = begun((*LONG, *own.executor), file)
    own.workers[0].kill()
    assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == 0
    assert file.read_bytes() == expected


def test_a_scheduler_that_is_killed_ends_the_work_in_one_line_and_keeps_the_points(
    own: Cluster, tmp_path: Path, expected: bytes
) -> None:
    own.add_worker("--no-nanny")
    file = tmp_path / "found.json"
    words = (*LONG, "--resume", str(tmp_path / "parts"))
    process = begun((*words, *own.executor), file)
    own.scheduler.kill()
    out, err = process.communicate(timeout=PATIENCE)
    found = json.loads(file.read_text())
    assert (process.returncode, out, found["complete"]) == (2, "", False)
    assert err.count("\n") == 1
    assert err.startswith(
        f"attn-tui: executor dask:{own.address}: its workers are gone: kept {len(found['points'])} of"
    )
    assert main([*words, "--format", "json", "-o", str(file)]) == 0
    assert file.read_bytes() == expected


def test_the_loss_of_all_workers_ends_the_work(own: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_LOOK", 0.2)  # seconds
    own.add_worker("--no-nanny")
    plan = sweep_plan(Parameters(n_keys=1024, n_queries=1024), range(1000, 2400), histograms=())
    with open_engine(own.executor[1]) as engine:
        work = run(parts(plan), engine)
        next(done for done in work if done.complete)
        monkeypatch.setattr(import_module("attn_tui.core.work.pools"), "_LOST", 1)
        own.workers[0].kill()
        with pytest.raises(LostExecutorError, match="no worker for 1 second"):
            deque(work)


def test_ctrl_c_ends_the_work_at_once_and_keeps_the_points(two_workers: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    process = begun((*LONG, *two_workers.executor), file)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    found = json.loads(file.read_text())
    assert (process.returncode, found["complete"]) == (130, False)
    assert err == f"attn-tui: interrupted: kept {len(found['points'])} of 23 points in {file}\n"


def test_workers_stop_soon_after_the_work_is_closed(two_workers: Cluster) -> None:
    def held(dask_worker: Any) -> int:  # parts
        return len(dask_worker.state.tasks)

    plan = sweep_plan(Parameters(n_keys=1024, n_queries=1024), range(1000, 2400), histograms=())
    client: Any = import_module("distributed").Client(two_workers.address, set_as_default=False)
    with open_engine(two_workers.executor[1]) as engine:
        work = run(parts(plan), engine)
        limit = time.monotonic() + PATIENCE
        while not any(client.processing().values()):
            assert time.monotonic() < limit
            next(work)
        work.close()
    limit = time.monotonic() + PATIENCE
    while any(client.run(held).values()):
        assert time.monotonic() < limit
        time.sleep(0.1)
    client.close()


def test_a_worker_without_the_program_is_refused_before_work(
    two_workers: Cluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_TRAITS", "__import__('attn_tui_of_tomorrow')")
    line = refusal([*SMALL, *two_workers.executor], capsys)
    assert "cannot use attn-tui: No module named 'attn_tui_of_tomorrow'" in line


def test_a_worker_with_another_numpy_is_refused_before_work(
    two_workers: Cluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = worker.traits()

    def traits() -> Any:
        return {**real, "NumPy": "1.0"}

    monkeypatch.setattr(pools, "traits", traits)
    assert "a worker has NumPy" in refusal([*SMALL, *two_workers.executor], capsys)


def test_a_worker_with_another_numpy_that_comes_later_ends_the_work_in_one_line(
    two_workers: Cluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "versions", lambda: {**worker.versions(), "NumPy": "1.0"})
    line = refusal([*SMALL, *two_workers.executor], capsys)
    assert "a worker has NumPy" in line
    assert line.endswith("and this machine 1.0; they must be the same: kept 0 of 23 points")


def test_a_worker_that_is_killed_while_it_is_asked_is_left_out(own: Cluster) -> None:
    def named(dask_worker: Any) -> str:
        if dask_worker.name == "second":
            os._exit(1)
        return dask_worker.name

    for name in ("first", "second"):
        own.add_worker("--no-nanny", "--name", name)
    with open_engine(own.executor[1]) as engine:
        assert engine.everywhere is not None
        assert [*engine.everywhere(named).values()] == ["first"]


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="the system has no /proc")
@pytest.mark.parametrize("command", ["inspect", "diagnose", "compare"])
@pytest.mark.parametrize(("there", "says"), [(None, "no such file"), (WRONG, "sees another file of this name")])
def test_a_worker_that_does_not_see_the_file_is_named_before_work(
    command: str,
    there: str | None,
    says: str,
    two_workers: Cluster,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seen_by(folder: Path, file: str | None) -> None:
        (folder / "head.safetensors").unlink(missing_ok=True)
        if file is not None:
            shutil.copy(file, folder / "head.safetensors")

    monkeypatch.chdir(tmp_path)
    seen_by(tmp_path, SAMPLE)
    seen_by(two_workers.folder, there)
    file = "/proc/self/cwd/head.safetensors"  # another one for every process
    line = refusal([command, file, *([SAMPLE] if command == "compare" else []), *two_workers.executor], capsys)
    assert line.startswith(f"executor dask:{two_workers.address}: {file}: ")
    assert platform.node() in line
    assert says in line


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tls://127.0.0.1:1", "tcp://no-such-host.invalid:8786"])
def test_a_scheduler_that_does_not_answer_is_refused_in_one_line(
    address: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_START", 1)
    assert "no scheduler answers: " in refusal([*SMALL, "--executor", f"dask:{address}"], capsys)


def test_a_scheduler_without_workers_is_refused_in_one_line(
    own: Cluster, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_START", 1)
    assert "no worker answers within 1 seconds" in refusal([*SMALL, *own.executor], capsys)
