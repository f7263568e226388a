"""The app's end of the connection to the engine's process. Only `wait` waits: the engine may be stopped at any time.

Messages are those of `multiprocessing.connection`, which the engine uses: four bytes of length, then a pickle.
"""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from fcntl import ioctl
from select import POLLIN, POLLOUT, poll
from termios import TIOCOUTQ
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from socket import socket

    from ...core.questions.request import Request
    from .engine import Reply, Submission

_HEAD = 4  # bytes of length
_MOST = 1 << 16  # bytes received at a time


class Connection:
    """Sends submissions, of which only the latest of each kind wait for room, and receives replies."""

    def __init__(self, ours: socket) -> None:
        ours.setblocking(False)  # only this end of the pair
        self._socket = ours
        self._waiting: dict[type[Request], Submission] = {}
        self._unsent = b""  # the rest of the message that is being sent
        self._received = bytearray()  # the beginning of the next message
        self._untaken = 0  # what the engine had not taken at the last look
        self._ignored = 0  # at how many looks of `count_ignored` in a row it had taken nothing
        self.has_reply = False

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close this end; what waits is not sent."""
        self._socket.close()

    @property
    def is_full(self) -> bool:
        """Whether something waits for room."""
        return bool(self._unsent)

    def put(self, submission: Submission) -> Submission | None:
        """Let a submission wait for `flush`; return the one of its kind that it replaces, if one was waiting."""
        replaced = self._waiting.pop(submission.kind, None)
        self._waiting[submission.kind] = submission
        return replaced

    def flush(self) -> None:
        """Send what waits, as far as there is room; raise OSError if the other end is closed."""
        self._look()
        before = self._unsent
        with suppress(BlockingIOError):
            while self._unsent or self._waiting:
                if not self._unsent:
                    data = pickle.dumps(self._waiting.pop(next(iter(self._waiting))))
                    self._unsent = len(data).to_bytes(_HEAD, "big") + data
                sent = self._socket.send(self._unsent)
                self._unsent = self._unsent[sent:]
        if before and self._unsent is not before:  # the engine has made room
            self._ignored = 0
        self._untaken = self._measure()

    def receive(self) -> Sequence[Reply] | None:
        """Return the next message, or None if its end has not arrived; raise EOFError or OSError if it cannot."""
        while len(self._received) < (end := self._end()):
            try:
                data = self._socket.recv(_MOST)
            except BlockingIOError:
                return None
            if not data:
                raise EOFError
            self._received += data
        message = self._received[_HEAD:end]
        del self._received[:end]
        self.has_reply, self._ignored = True, 0
        return pickle.loads(message)

    def wait(self, seconds: float) -> bool:
        """Wait until something can be received, or what waits can be sent; return False if that takes longer."""
        ready = poll()
        ready.register(self._socket, POLLIN | (POLLOUT if self.is_full else 0))
        return bool(ready.poll(1000 * seconds))

    def count_ignored(self) -> int:
        """Return how often in a row, this time included, the engine had taken nothing of what was sent."""
        self._look()
        self._ignored += bool(self._untaken)
        return self._ignored

    def _look(self) -> None:
        """Note whether the engine has taken something since the last look, or since something was sent."""
        before, self._untaken = self._untaken, self._measure()
        if self._untaken < before or not self._untaken:
            self._ignored = 0

    def _measure(self) -> int:
        """Return the bytes in memory that the engine has not taken; those not sent if the system does not say it."""
        try:
            return int.from_bytes(ioctl(self._socket, TIOCOUTQ, bytes(4)), sys.byteorder)
        except OSError:
            return len(self._unsent)

    def _end(self) -> int:
        """Return the length of the next message with its head, as far as that is known."""
        if len(self._received) < _HEAD:
            return _HEAD
        return _HEAD + int.from_bytes(self._received[:_HEAD], "big", signed=True)
