"""The programs that are measured, and how to read their state from their screens."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from attn_tui.tui.cli.open_app import FIRST_D_K
from attn_tui.tui.views.glyphs import UNICODE
from attn_tui.tui.views.page import large
from session import Session

FIRST = 100  # the first d_k
LAST = 290


@dataclass(frozen=True)
class Program:
    """A command, and how to read its state from its screen."""

    command: Sequence[str]
    state: Callable[[str], int | None]
    prepare: bytes  # keys that bring it to the first state
    leave: bytes


def counted(text: str) -> int | None:
    """Return the bare app's count."""
    found = re.search(r"count (\d+)", text)
    return int(found[1]) if found else None


def measured(text: str) -> int | None:
    """Return the d_k in the Lab's headline; a frame waits a moment for its measurement."""
    lines = text.split("\n")
    return next((d_k for d_k, forms in D_KS.items() for form in forms if _shows(lines, form)), None)


def _shows(lines: Sequence[str], digits: Sequence[str]) -> bool:
    """Return whether the lines show these digits, at one column."""
    for row, line in enumerate(lines[: len(lines) - len(digits)]):
        at = line.find(f"  {digits[0]} ")
        if at >= 0:
            below = zip(digits, lines[row:], strict=False)
            return all(under.startswith(f"  {each} ", at) for each, under in below)
    return False


def states(program: Program, session: Session) -> list[tuple[float, int]]:
    """Return the states shown since the last call, each with its time."""
    read = [(frame.when, program.state(frame.text)) for frame in session.frames()]
    return [(when, state) for when, state in read if state is not None]


def state_now(program: Program, session: Session) -> int:
    """Return the state on screen; raise RuntimeError if it cannot be read."""
    state = program.state(session.text())
    if state is None:
        raise RuntimeError(f"no state on screen:\n{session.text()}")
    return state


def lags(pressed: Sequence[float], seen: Sequence[tuple[float, int]], at: int) -> list[float]:
    """Return the seconds from each key to the first frame with its state or a later one; infinity without one."""
    return [
        next((when - key for when, state in seen if state >= at + number), math.inf)
        for number, key in enumerate(pressed, start=1)
    ]


D_KS = {
    d_k: [large(f"{d_k}", tall, UNICODE) for tall in (False, True)] for d_k in (FIRST_D_K, *range(FIRST, LAST + 1))
}
BARE = Program([sys.executable, str(Path(__file__).with_name("bare.py"))], counted, prepare=b"", leave=b"\x11")
OURS = Program([str(Path(sys.executable).with_name("attn-tui"))], measured, prepare=b"%d\r" % FIRST, leave=b"q")
# A held arrow steps d_k by one each time and waits for nothing, so that the state after a number of keys is known.
_EVENLY = """\
from attn_tui.tui.panes import stepping
from attn_tui.tui.cli.main import program
stepping.SLOW = stepping.HOLD = 1 << 30
program()
"""
EVEN = replace(OURS, command=[sys.executable, "-c", _EVENLY])
