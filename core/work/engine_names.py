"""The names of executors, where the parts of some work are done; `engines` opens them."""

from __future__ import annotations

import os
import re
import sys

from ..errors import InputError
from ..message import message

ENGINES = message("serial, threads[:N], processes[:N], dask, dask:tcp://HOST:PORT or dask:tls://HOST:PORT")
DEFAULT_ENGINE = "threads"
_MOST = 1024  # workers


class ExecutorError(InputError):
    """An executor that does not exist or cannot start; the message is one line."""


class LostExecutorError(ExecutorError):
    """An executor whose workers or scheduler are gone."""


def engine_name(text: str, what: str = "executor") -> tuple[str, str]:
    """Return the kind of executor that a text names, and its number of workers or its address, or an empty text.

    Raise ExecutorError about `what`.
    """
    kind, colon, rest = text.strip().partition(":")
    refused = ExecutorError("{what}: must be {engines}, not {text!r}", what=what, engines=ENGINES, text=text)
    if kind in ("threads", "processes"):
        if colon and not (rest.isascii() and rest.isdigit() and 1 <= int(rest) <= _MOST):
            raise ExecutorError(
                "{what}: the number of workers must be from 1 to {most}, not {rest!r}",
                what=what,
                most=_MOST,
                rest=rest,
            )
    elif kind == "dask":
        if colon and not re.fullmatch(r"(tcp|tls)://\S+:[0-9]+", rest):
            raise refused
    elif kind != "serial" or colon:
        raise refused
    return kind, rest


def cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
