"""The engine's own process: its answers, and what happens when it dies, cannot start or loses the app."""

import asyncio
import errno
import os
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from inspect import Signature, signature
from threading import Thread, Timer
from typing import Any
from unittest.mock import Mock

import pytest
from attn_tui.core.errors import InputError
from attn_tui.core.lab.experiment import run
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.lab import Measure, Report
from attn_tui.core.questions.request import Cache, Crashed, Failed, Progress, Request, Work
from attn_tui.core.theory.predict import theory_of
from attn_tui.tui.cli import output
from attn_tui.tui.cli.main import main
from attn_tui.tui.compute import connection
from attn_tui.tui.compute import process as module
from attn_tui.tui.compute.engine import EngineError, Notification, Reply
from attn_tui.tui.compute.measure import ExactCells, Predict
from attn_tui.tui.compute.process import ProcessEngine
from cases import present
from stage import FOREVER, SMALL, numbers

LARGE = Parameters(d_k=512, n_keys=4096, n_queries=4096, batch=512)  # takes longer than FOREVER
CURVES = Predict(SMALL, (1, 64), (SMALL.n_keys,))
NO_VALUE = replace(SMALL, d_k=1, scale="log_d_k")


@dataclass(frozen=True)
class Unknown(Request):
    """A request that the other process cannot load."""

    def work(self, cache: Cache) -> Work:
        yield None


@pytest.fixture
def engine() -> Iterator[ProcessEngine]:
    engine = ProcessEngine()
    yield engine
    engine.close()


class Client:
    """Sends requests to an engine in a running event loop."""

    def __init__(self, engine: ProcessEngine) -> None:
        self.engine = engine
        self.notifications: list[Notification] = []
        engine.attach(asyncio.get_running_loop(), self.notifications.append)

    def answer(self, request: Request, *wanted: type[Any]) -> Awaitable[Any]:
        """Send a request; wait for its first answer of the wanted types, or for an Report, Failed or Crashed."""
        found = asyncio.get_running_loop().create_future()
        kinds = wanted or (Report, Failed, Crashed)

        def receive(_: Request, answer: object) -> None:
            if isinstance(answer, kinds) and not found.done():
                found.set_result(answer)

        self.engine.ask(request, receive)
        return asyncio.ensure_future(asyncio.wait_for(found, FOREVER))

    async def notified(self, times: int) -> None:
        """Wait for this many notifications."""
        await self.until(lambda: len(self.notifications) >= times)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        async with asyncio.timeout(FOREVER):
            while not condition():
                await asyncio.sleep(0.01)


def play(engine: ProcessEngine, script: Callable[[Client], Awaitable[None]]) -> None:
    """Run a script in a new event loop."""

    async def run_it() -> None:
        await script(Client(engine))

    asyncio.run(run_it())


def with_client(script: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Make a test of a script that begins with the event loop; what it names besides the client are fixtures."""

    @wraps(script)
    def test(engine: ProcessEngine, **given: Any) -> None:
        play(engine, partial(script, **given))

    client, *others = signature(script).parameters.values()
    test.__dict__["__signature__"] = Signature([client.replace(name="engine"), *others])  # by which pytest finds them
    return test


def pid_of(engine: ProcessEngine) -> int:
    return present(engine.pid)


def at(d_k: int) -> Parameters:
    return replace(SMALL, d_k=d_k)


def in_process(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Make the process run this code first; it must not contain braces."""
    loaded = "import os, sys\nfrom attn_tui.tui.compute.measure import Measure"
    monkeypatch.setattr(module, "PROGRAM", f"{loaded}\n{code}\n{module.PROGRAM}")


def check(answer: Report, parameters: Parameters) -> None:
    """Check that an answer is complete, and equal to one computed in this process."""
    expected = run(parameters)
    theory = theory_of(expected)
    assert answer.parameters == answer.measurement.subject == parameters
    assert numbers(answer.measurement) == numbers(expected)
    assert answer.theory.prediction == theory.prediction
    assert answer.theory.deviations == theory.deviations
    for found, wanted in zip(answer.theory.curves, theory.curves, strict=True):
        assert found is not None
        assert vars(found) == vars(wanted)


@with_client
async def test_answers_are_those_that_this_process_computes(client: Client) -> None:
    laplace, rounded = replace(SMALL, components="laplace"), replace(SMALL, precision="bfloat16")
    for parameters in (SMALL, at(300), replace(SMALL, n_keys=17), laplace, rounded, SMALL):
        check(await client.answer(Measure(parameters)), parameters)
    assert client.notifications == []


def test_a_request_made_before_the_app_runs_is_answered(engine: ProcessEngine) -> None:
    engine.start()
    engine.ask(Measure(SMALL))

    async def script(client: Client) -> None:
        check(await client.answer(Measure(SMALL)), SMALL)
        assert engine.cached(SMALL) is not None

    play(engine, script)


def test_an_answer_can_be_waited_for_before_the_app_runs(engine: ProcessEngine) -> None:
    assert isinstance(engine.fetch(CURVES), ExactCells)
    with pytest.raises(InputError, match="no value at d_k = 1"):
        engine.fetch(Measure(NO_VALUE))


def test_an_answer_that_was_waited_for_can_be_requested_again(
    engine: ProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_end(reply: Reply) -> None:
        if reply.content is not None:
            ProcessEngine.deliver(engine, reply)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "deliver", without_end)
        engine.fetch(CURVES)

    async def script(client: Client) -> None:
        await client.answer(CURVES, ExactCells)

    play(engine, script)


@with_client
async def test_a_newer_request_is_answered_while_a_long_one_runs(client: Client) -> None:
    await client.answer(Measure(LARGE), Progress)
    check(await client.answer(Measure(SMALL)), SMALL)


@with_client
async def test_an_unexpected_error_is_reported_and_other_requests_are_answered(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process(monkeypatch, "Measure.work = lambda *_: 1 / 0")
    crashed = await client.answer(Measure(SMALL))
    assert "ZeroDivisionError" in crashed.error
    assert "Traceback" in crashed.report
    assert await client.answer(CURVES, ExactCells)
    assert client.notifications == []


# When the process ends


@with_client
async def test_it_is_started_again_when_it_is_killed(client: Client) -> None:
    await client.answer(Measure(SMALL))
    first = pid_of(client.engine)
    os.kill(first, signal.SIGKILL)
    await client.notified(1)
    assert "signal 9" in str(client.notifications[0])
    check(await client.answer(Measure(at(65))), at(65))
    assert pid_of(client.engine) != first
    assert len(client.notifications) == 1


@with_client
async def test_pending_requests_are_answered_although_it_was_killed(client: Client) -> None:
    await client.answer(Measure(SMALL))
    os.kill(pid_of(client.engine), signal.SIGSTOP)
    measurement, curves = client.answer(Measure(at(65))), client.answer(CURVES, ExactCells)
    os.kill(pid_of(client.engine), signal.SIGKILL)
    check(await measurement, at(65))
    assert await curves
    assert len(client.notifications) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "reason"),
    [("os.kill(os.getpid(), 9)", "signal 9"), ("os._exit(3)", "exit code 3")],
    ids=["killed", "exits"],
)
@with_client
async def test_a_request_that_ends_it_twice_fails_and_others_are_answered(
    client: Client, end: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process(monkeypatch, f"Measure.work = lambda *_: {end}")
    curves, measurement = client.answer(CURVES, ExactCells), client.answer(Measure(SMALL))
    assert reason in (await measurement).reason
    assert await curves
    assert len(client.notifications) == 2
    assert all(reason in str(line) for line in client.notifications)


@pytest.mark.parametrize(
    ("code", "request_"),
    [("sys.modules['numpy'] = None", Measure(SMALL)), ("", Unknown())],
    ids=["no NumPy", "unknown request"],
)
@with_client
async def test_an_error_that_keeps_it_from_working_is_reported(
    client: Client, code: str, request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_process(monkeypatch, code)
    failed = await client.answer(request_)
    [error] = client.notifications
    assert isinstance(error, EngineError)
    assert str(error) in failed.reason
    assert "Traceback" in error.__notes__[0]


def refuse(*_: object, **__: object) -> None:
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))


@with_client
async def test_requests_fail_until_it_can_be_started(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", refuse)
        failed = await client.answer(Measure(SMALL))
        assert os.strerror(errno.EAGAIN) in failed.reason
    check(await client.answer(Measure(SMALL)), SMALL)
    assert client.notifications == []


def test_the_command_reports_in_one_line_that_it_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert main([]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert os.strerror(errno.EAGAIN) in line


# Signals


@with_client
async def test_an_interrupt_leaves_it_running(client: Client) -> None:
    await client.answer(Measure(SMALL))
    first = pid_of(client.engine)
    os.kill(first, signal.SIGINT)
    check(await client.answer(Measure(at(65))), at(65))
    assert pid_of(client.engine) == first


@with_client
async def test_requests_made_while_it_is_stopped_are_answered_when_it_continues(client: Client) -> None:
    await client.answer(Measure(SMALL))
    os.kill(pid_of(client.engine), signal.SIGSTOP)
    await client.answer(Measure(at(65)), Progress)  # it is reported as silent
    answer = client.answer(Measure(at(65)))
    os.kill(pid_of(client.engine), signal.SIGCONT)
    check(await answer, at(65))
    assert client.notifications == []


# When it is stopped


@contextmanager
def stopped(engine: ProcessEngine) -> Generator[int]:
    """Stop the process, whose number is given; if the test waits for it, kill it, so that the test fails."""
    pid = pid_of(engine)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    with killed_if_waited_for(pid):
        yield pid


@contextmanager
def killed_if_waited_for(pid: int) -> Generator[None]:
    timer = Timer(FOREVER, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def restart_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process, which is stopped, be restarted within a second, but not the next one while it starts."""
    for name, value in (("_SILENCE", 0.05), ("_IGNORED", 3), ("_IGNORED_AT_START", 1_000_000)):
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("unread", [connection.ioctl, Mock(side_effect=OSError)], ids=["as here", "not known"])
@with_client
async def test_it_is_replaced_if_it_takes_no_requests(
    client: Client, unread: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ioctl", unread)
    await client.answer(Measure(SMALL))
    with stopped(client.engine) as first:
        restart_soon(monkeypatch)
        for d_k in range(1, 2000):
            client.engine.ask(Measure(at(d_k)))
        check(await client.answer(Measure(at(2000))), at(2000))
    [line] = client.notifications
    assert "did not respond" in str(line)
    assert pid_of(client.engine) != first
    await client.until(lambda: not client.engine.is_waiting)


LARGE_REPLY = """
import signal
from multiprocessing.connection import Connection
def send(self, data, whole=Connection._send):
    if len(data) > 100_000:
        whole(self, data[:50_000])
        os.kill(os.getpid(), signal.SIGSTOP)
    whole(self, data)
Connection._send = send
Measure.work = lambda *_: iter([bytes(1_000_000)])
"""


@with_client
async def test_it_is_replaced_if_it_stops_in_the_middle_of_a_reply(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        in_process(patch, LARGE_REPLY)
        await client.answer(CURVES, ExactCells)
    first = pid_of(client.engine)
    client.engine.ask(Measure(SMALL))
    with killed_if_waited_for(first):
        await client.until(lambda: os.waitpid(first, os.WUNTRACED | os.WNOHANG) != (0, 0))
        restart_soon(monkeypatch)
        check(await client.answer(Measure(SMALL)), SMALL)
    [line] = client.notifications
    assert "did not respond" in str(line)


@with_client
async def test_requests_for_which_there_was_no_room_end_when_it_continues(client: Client) -> None:
    await client.answer(Measure(SMALL))
    with stopped(client.engine) as pid:
        for d_k in range(1, 2000):
            client.engine.ask(Measure(at(d_k)))
            client.engine.prefetch(Measure(at(d_k + 1)))
        client.engine.ask(CURVES)
        client.engine.withdraw(Predict)
        answer = client.answer(Measure(at(2000)))
        os.kill(pid, signal.SIGCONT)
        check(await answer, at(2000))
        await client.until(lambda: not client.engine.is_waiting)
    assert client.notifications == []


@with_client
async def test_one_that_cannot_be_killed_is_left_behind(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[subprocess.Popen[bytes]] = []

    def kill(process: subprocess.Popen[bytes]) -> None:
        left.append(process)

    await client.answer(Measure(SMALL))
    with stopped(client.engine), monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "kill", kill)
        client.engine.close()
        assert left[0].poll() is None
    left[0].kill()
    left[0].wait()


# Cleaning up


_APP = """
import subprocess, sys, time
from attn_tui.core.parameters import Parameters
from attn_tui.core.questions.lab import Measure
from attn_tui.tui.compute.process import ProcessEngine

start = subprocess.Popen
subprocess.Popen = lambda *words, pass_fds, **more: start(*words, pass_fds=[*pass_fds, int(sys.argv[1])], **more)
engine = ProcessEngine()
engine.start()
for n_keys in sys.argv[2:]:
    engine.fetch(Measure(Parameters(n_keys=int(n_keys), n_queries=int(n_keys), batch=512)))
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("asked", [[], ["4"], ["4", "4096"]], ids=["starting", "idle", "computing"])
def test_it_ends_when_the_app_is_killed(asked: list[str]) -> None:
    """Both processes hold the end of a pipe; it is closed when both are gone."""
    ours, theirs = os.pipe()
    command = [sys.executable, "-c", _APP, str(theirs), *asked]
    with open(ours, "rb", 0) as pipe, subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[theirs]) as app:
        os.close(theirs)
        assert present(app.stdout).readline() == b"ready\n"
        app.kill()
        assert select.select([pipe], [], [], FOREVER)[0], "it has not ended"
        assert pipe.read() == b""


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="the system does not list open files")
def test_no_process_and_no_open_file_is_left(engine: ProcessEngine) -> None:
    before, pids = os.listdir("/dev/fd"), list[int]()

    async def script(client: Client) -> None:
        for d_k in (64, 65, 66):
            await client.answer(Measure(at(d_k)))
            pids.append(pid_of(engine))
            os.kill(pids[-1], signal.SIGKILL)
            await client.notified(len(pids))
        await client.answer(Measure(LARGE), Progress)
        pids.append(pid_of(engine))

    play(engine, script)
    engine.close()
    engine.ask(Measure(SMALL))
    assert os.listdir("/dev/fd") == before
    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_the_app_does_not_wait_for_an_engine_that_is_busy(
    engine: ProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stand still, and for ever if the engine then sent more than a connection holds."""
    in_process(monkeypatch, "import time\nMeasure.work = lambda self, cache: iter(lambda: time.sleep(1e6), 0)")
    asked = Thread(target=lambda: [engine.ask(Measure(at(1 + d_k % 4096))) for d_k in range(2000)], daemon=True)
    asked.start()
    asked.join(FOREVER)
    assert not asked.is_alive()
