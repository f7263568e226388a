"""Send a terminal no more frames than it can take: a link slower than the keys shows fewer states, but recent ones.

After each frame the terminal is queried for its cursor position; it replies once it has drawn everything before the
query. While two frames have no reply, or one is still being transmitted at the measured speed, the next frame is
delayed; it then shows the newest state. A terminal that never replies is sent every frame.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from threading import RLock
from typing import NamedTuple

# Sent with the cursor in the first column, so that no reply looks like a key: Shift+F3 is `CSI 1 ; 2 R`.
QUERY = "\x1b[H\x1b[6n"

_WINDOW = 2  # frames without a reply
_LONG_FRAME = 500  # characters from which a frame measures the speed of the link
_BUSY = 0.1  # seconds that a link may still be busy when the next frame is sent
_TRIALS = 16  # queries sent to a terminal that has never replied
_TIMEOUT = (2.0, 10.0)  # seconds: four times the delay of the last reply, within these bounds
_FIRST_WAIT = 0.5  # seconds from the first query, if the app ends before its reply
_LAST_WAIT = 1.5  # seconds to wait for the last reply


class _Query(NamedTuple):
    """A query without a reply."""

    when: float
    size: int  # characters of the frame before it


class Pacing:
    """The queries sent to a terminal and its replies; used by the app's thread and by the input thread."""

    def __init__(self, caught_up: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._caught_up = caught_up  # called by the input thread if frames wait
        self._clock = clock
        self._lock = RLock()  # `delay` may call `reset`
        self._first_query = 0.0  # time
        self._last_reply = 0.0  # time
        self._fastest = math.inf  # seconds from a query to its reply
        self._per_character = 0.0  # seconds
        self._timeout = _TIMEOUT[0]
        self.reset()

    def reset(self) -> None:
        """Expect no reply to earlier queries; delay nothing until the next reply."""
        with self._lock:
            self._queries: deque[_Query] = deque()
            self._replies = self._waiting = False
            self._link_free = 0.0  # when the link will have transmitted everything

    def query(self, size: int) -> str:
        """Return the query to send after a frame of `size` characters; empty if the terminal does not reply."""
        with self._lock:
            if not self._replies and len(self._queries) >= _TRIALS:
                return ""
            now = self._clock()
            self._first_query = self._first_query or now
            self._link_free = max(now, self._link_free) + size * self._per_character
            self._queries.append(_Query(now, size))
            return QUERY

    def delay(self) -> float:
        """Return the seconds to wait before the next frame, unless `caught_up` is called earlier."""
        with self._lock:
            now = self._clock()
            wait = 0.0
            if self._queries and self._replies:
                late = max(self._queries[0].when, self._link_free) + self._timeout
                if late <= now:
                    self.reset()
                wait = (late if len(self._queries) >= _WINDOW else self._link_free - _BUSY) - now
            self._waiting = wait > 0
            return max(wait, 0.0)

    def replied(self, count: int) -> None:
        """Record that `count` replies have arrived."""
        if not count:
            return
        with self._lock:
            self._replies = True
            now = self._clock()
            for _ in range(min(count, len(self._queries))):
                self._measure(self._queries.popleft(), now)
            waiting = self._waiting
        if waiting:
            self._caught_up()

    def _measure(self, query: _Query, now: float) -> None:
        """Update the timeout, and after long frames the seconds per character."""
        self._timeout = min(max(4 * (now - query.when), _TIMEOUT[0]), _TIMEOUT[1])
        self._fastest = min(self._fastest, now - query.when)
        if query.size >= _LONG_FRAME:
            self._per_character = (now - max(self._last_reply, query.when + self._fastest)) / query.size
        self._last_reply = now

    @property
    def outstanding(self) -> bool:
        """Whether there are queries without a reply."""
        return bool(self._queries)

    @property
    def final_wait(self) -> float:
        """The seconds to wait for replies before leaving the terminal."""
        if self._replies:
            return _LAST_WAIT
        return max(0.0, self._first_query + _FIRST_WAIT - self._clock()) if self._queries else 0.0
