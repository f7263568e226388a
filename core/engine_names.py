"""The names of engines, where the parts of some work are done; `core.work.engines` opens them."""

from __future__ import annotations

import os
import sys

from .errors import InputError

ENGINES = "serial, threads[:N] or processes[:N]"
DEFAULT_ENGINE = "threads"
_MOST = 1024  # workers


class EngineError(InputError):
    """An engine that does not exist or cannot start; the message is one line."""


def engine_name(text: str, what: str = "executor") -> tuple[str, int]:
    """Return the kind of engine that a text names, and its number of workers; raise EngineError about `what`."""
    kind, colon, number = text.strip().partition(":")
    if kind not in ("serial", "threads", "processes") or (kind == "serial" and colon):
        raise EngineError(f"{what}: must be {ENGINES}, not {text!r}")
    if not colon:
        return kind, 1 if kind == "serial" else cores()
    if not (number.isascii() and number.isdigit() and 1 <= int(number) <= _MOST):
        raise EngineError(f"{what}: the number of workers must be from 1 to {_MOST}, not {number!r}")
    return kind, int(number)


def cores() -> int:
    """Return how many cores this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
