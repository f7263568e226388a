"""Open the executor that a text names; on several machines, it is Dask's scheduler and workers, loaded only here.

Dask's client is a `concurrent.futures` executor, so `run` treats it as any other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from threading import Event, Thread
from typing import Any

from ..message import message
from .engine_names import ExecutorError, cores, engine_name
from .part import SERIAL, PartExecutor, begin_elsewhere
from .pools import open_processes, open_threads, same_versions
from .worker import interrupts_blocked, perform_on_dask, start_resource_tracker, versions

_START = 10  # seconds in which a scheduler must answer, and a first worker be there
_ANSWER = 30  # seconds in which all workers must answer, which may have to load NumPy from a busy file system
_FILES = 300  # seconds in which they must have looked at all files
_LOCAL_START = 60  # seconds in which a scheduler and workers on this machine must be there
_LOOK = 5  # seconds between two looks at the workers
_SLACK = 3  # seconds that a connection may take to be given up
_END = 0.3  # seconds to wait for the connection to be closed
_RETRIES = 3  # of a part whose worker is lost
# Evaluated on workers, where the module, or this version of it, may be missing.
_TRAITS = "__import__('attn_tui.core.work.worker', fromlist=['traits']).traits()"


@contextmanager
def open_dask(name: str, address: str) -> Generator[PartExecutor, None, None]:
    """Connect to the scheduler at an address; if it is empty, start a scheduler and workers here."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ExecutorError(
            "executor {name}: needs pip install 'attn-tui[cluster]' ({error})", name=name, error=_line(error)
        ) from None
    for logger in [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]:
        logging.getLogger(logger).setLevel(logging.CRITICAL)  # `run` says in one line what is lost
    cluster: Any = None
    try:
        if not address:
            start_resource_tracker()
            cluster = _in_a_shielded_thread(
                partial(
                    distributed.LocalCluster,
                    n_workers=cores(),
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                ),
                _LOCAL_START,
            )
        connect = partial(distributed.Client, cluster or address, timeout=_START, set_as_default=False)
        client: Any = _in_a_shielded_thread(connect, _START + _SLACK)
    except Exception as error:  # an unknown host, a refused connection, or TLS that does not match
        if cluster is not None:
            cluster.close()
        raise ExecutorError("executor {name}: no scheduler answers: {error}", name=name, error=_line(error)) from None
    try:
        workers, remark = _workers(client, name)
        executor = client.get_executor(pure=False, retries=_RETRIES)
        begin = partial(begin_elsewhere, partial(perform_on_dask, versions()))
        with _watched(client) as missing:
            yield PartExecutor(name, workers, executor, begin, remark, partial(_ask, client, name, _FILES), missing)
    finally:
        closing = Thread(target=_close, args=(client, cluster), daemon=True)
        closing.start()
        closing.join(_END)  # workers started here end with this process in any case


def _in_a_shielded_thread(make: Callable[[], Any], seconds: float) -> Any:
    """Return what a function makes in a thread whose processes Ctrl-C does not reach, though it ends the waiting.

    Raise TimeoutError after some seconds: a name server may not answer, for example.
    """
    made = Future[Any]()

    def work() -> None:
        try:
            with interrupts_blocked():
                made.set_result(make())
        except Exception as error:
            made.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return made.result(seconds)
    except FutureTimeoutError:
        raise TimeoutError(message("no answer within {seconds:g} seconds", seconds=seconds)) from None


def _close(*opened: Any) -> None:
    for each in opened:
        if each is not None:
            with suppress(Exception):  # it may be lost
                each.close(timeout=1)


@contextmanager
def _watched(client: Any) -> Generator[Callable[[], float], None, None]:
    """Ask the scheduler for its workers now and then; the value tells for how many seconds it has had none."""
    seen, ended = time.monotonic(), Event()

    def watch() -> None:
        nonlocal seen
        while not ended.wait(_LOOK):
            try:
                there = bool(client.ncores())
            except Exception:  # the scheduler is lost, which the results of parts tell
                there = True
            if there:
                seen = time.monotonic()

    Thread(target=watch, daemon=True).start()
    try:
        yield lambda: max(0.0, time.monotonic() - seen - _LOOK)
    finally:
        ended.set()


def _workers(client: Any, name: str) -> tuple[int, str]:
    """Return the number of threads of the workers, and what the user should know of them; raise ExecutorError."""
    try:
        client.wait_for_workers(1, timeout=_START)
    except Exception as error:
        raise ExecutorError(
            "executor {name}: no worker answers within {start} seconds: {error}",
            name=name,
            start=_START,
            error=_line(error),
        ) from None
    found = _ask(client, name, _ANSWER, eval, _TRAITS)
    for address, traits in found.items():
        if isinstance(traits, BaseException):
            raise ExecutorError(
                "executor {name}: the worker {address} cannot use attn-tui: {traits}",
                name=name,
                address=address,
                traits=_line(traits),
            )
    return sum(client.ncores().values()), same_versions(name, [*found.values()])


def _ask(client: Any, name: str, seconds: float, function: Callable[..., Any], *arguments: Any) -> Mapping[str, Any]:
    """Return what a function returns on each worker, or the exception that it raises; raise ExecutorError.

    Workers that are lost meanwhile are left out: others do their parts.
    """
    ask = partial(client.run, function, *arguments, on_error="return")
    try:
        found: Mapping[str, Any] = _in_a_shielded_thread(ask, seconds)
    except OSError as error:
        raise ExecutorError(
            "executor {name}: its workers do not answer: {error}", name=name, error=_line(error)
        ) from None
    return {worker: answer for worker, answer in found.items() if not isinstance(answer, OSError)}


def _line(error: BaseException) -> str:
    """Return an error as one line; a message stays one."""
    text = str(error)
    line = " ".join(text.split())
    return (text if text == line else line) or type(error).__name__


@contextmanager
def open_engine(text: str, background: bool = False) -> Generator[PartExecutor, None, None]:
    """Open the executor that a text names, and end what it started afterwards.

    In the background, its threads or processes give way to others of this machine.
    Raise ExecutorError before any work if it cannot start.
    """
    kind, rest = engine_name(text)
    workers = int(rest) if rest.isdigit() else cores()
    match kind:
        case "threads":
            opened = open_threads(workers, background)
        case "processes":
            opened = open_processes(workers, background)
        case "dask":
            opened = open_dask(text, rest)
        case _:
            opened = nullcontext(SERIAL)
    with opened as engine:
        yield engine
