"""Open the engine that a text names."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, nullcontext

from .cluster import open_dask
from .engine_names import cores, engine_name
from .engines import SERIAL, Engine, open_processes, open_threads


@contextmanager
def open_engine(text: str, background: bool = False) -> Generator[Engine, None, None]:
    """Open the engine that a text names, and end what it started afterwards.

    In the background, its threads or processes give way to others of this machine.
    Raise EngineError before any work if it cannot start.
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
