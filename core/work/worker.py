"""What runs in other processes: their preparation, what they are, and the parts they perform."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from ..blas import one_blas_thread
from ..errors import InputError
from ..message import message
from .engine_names import LostExecutorError
from .part import Part, perform

R = TypeVar("R")

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of GNU's malloc.h
_TRIM_BYTES = 64 << 20  # free memory at the end of the heap beyond this is returned to the system
_MMAP_BYTES = 32 << 20  # larger arrays are mapped, and returned at once; glibc accepts no higher threshold
_NICE = 10  # the niceness of threads that give way
RUNS = 64  # that share a pool of processes at most

_own = threading.local()  # what a process of a pool inherited


def keep_memory() -> None:
    """Make glibc keep freed memory for the next arrays: a recompute takes 9 → 6.5 ms.

    Each recompute needs the same few megabytes. By default glibc returns them to the system in between, and every
    page is then faulted in and cleared again. Dask's nannies tell it to return memory even sooner.
    """
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)


def start_resource_tracker() -> None:
    """Start the process by which Python removes what ended processes leave; it need not report that.

    It would also let Ctrl-C through to the first process that is started.
    """
    from multiprocessing import resource_tracker

    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore::UserWarning:multiprocessing.resource_tracker"
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def interrupts_blocked() -> Generator[None, None, None]:
    """Start threads and processes that Ctrl-C, which reaches all processes of a terminal, does not reach."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def give_way() -> None:
    """Let other threads and processes of this machine go before this thread."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)


def start_process(ended: Sequence[int], background: bool) -> None:
    """Prepare a process of a pool; `ended` has, at its number modulo RUNS, each run that has ended."""
    if background:
        give_way()
    _own.ended = ended
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, however that happened."""
    from multiprocessing import connection, parent_process

    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


@cache
def prepare() -> None:
    """Limit this process to one BLAS thread, whose sums have other last digits than those of several."""
    keep_memory()
    one_blas_thread().__enter__()


def perform_of_run(run: int, part: Part[R]) -> tuple[R | InputError, ...]:
    """Perform a part in a process of a pool; stop after a step if its run has ended."""
    prepare()
    ended: Sequence[int] = _own.ended
    return perform(part, lambda: ended[run % RUNS] >= run)


def perform_on_dask(client: Mapping[str, str], part: Part[R]) -> tuple[R | InputError, ...]:
    """Perform a part on a Dask worker; stop after a step if its client has cancelled it or is gone.

    A worker that came after the work began may have other versions than the client, which has those of `client`.
    """
    prepare()
    worker: Any = import_module("distributed").get_worker()
    if refused := other_versions(client, [versions()]):
        return (LostExecutorError("worker {address}: {refused}", address=worker.address, refused=refused),)
    key = worker.get_current_task()

    ended: list[bool] = []

    def stopped() -> bool:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            ended.append(True)
        return bool(ended)

    results = perform(part, stopped)
    if ended:
        raise RuntimeError("cancelled")  # never half a result, should the scheduler want the part again
    return results


@cache
def versions() -> Mapping[str, str]:
    """Return the versions that workers must have in common."""
    from importlib import metadata

    return {"attn-tui": metadata.version("attn-tui"), "NumPy": metadata.version("numpy")}


def traits() -> Mapping[str, str]:
    """Return what the last digits of results depend on: versions, and the kind of processor."""
    import_module("numpy")  # whose BLAS is looked for
    info: Any = import_module("threadpoolctl").threadpool_info()
    kernels = {str(library.get("architecture", "")) for library in info if library.get("user_api") == "blas"}
    features: Mapping[str, bool] = getattr(import_module("numpy._core._multiarray_umath"), "__cpu_features__", {})
    return {
        **versions(),
        "BLAS kernels": " and ".join(sorted(kernels)) or "unknown",
        "processor": " ".join(sorted(name for name, there in features.items() if there)),
    }


def other_versions(here: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> str:
    """Return why workers with these versions cannot be used; empty if they can."""
    for name in versions():
        for other in others:
            if other[name] != here[name]:
                return message(
                    "a worker has {name} {other}, and this machine {own}; they must be the same",
                    name=name,
                    other=other[name],
                    own=here[name],
                )
    return ""


def other_processors(here: Mapping[str, str], others: Sequence[Mapping[str, str]]) -> str:
    """Return in what the results of workers with these traits may differ; empty if in nothing."""
    for name in ("BLAS kernels", "processor"):
        unlike = [other for other in others if other[name] != here[name]]
        if unlike:
            what = (
                message("{own} here, {unlike} there", own=here[name], unlike=unlike[0][name])
                if name == "BLAS kernels"
                else "other instructions"
            )
            return message(
                "{unlike} of {workers} workers have another kind of processor than this machine ({what}): "
                "last digits may differ from those of a run here",
                unlike=len(unlike),
                workers=len(others),
                what=what,
            )
    return ""
