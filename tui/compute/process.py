"""The engine's process, seen from the app: start it, exchange requests and answers, restart it if it ends or hangs.

It is started before Textual is loaded, so that with a second processor the first results arrive with the first frame.
The process that paints never loads NumPy, and never waits for the engine, which may be stopped at any time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from socket import socketpair
from threading import Thread
from typing import TYPE_CHECKING

from ...core.errors import InputError
from ...core.message import message
from ...core.questions.request import Crashed, Failed, Request
from .connection import Connection
from .engine import Engine, EngineError, Notification, Reply, Submission

if TYPE_CHECKING:
    import asyncio

PROGRAM = "from attn_tui.tui.compute.worker import main; main({})"  # with the connection's file descriptor
_SILENCE = 0.3  # seconds without a reply after which pending requests are reported as in progress
_EXIT_TIMEOUT = 0.2  # seconds from the end of the connection, or from a kill, to the end of the process, at most

# How often in a row silence is reported while the process takes nothing of what was sent, before it is restarted: for
# 6 seconds, before its first reply for a minute. Not by the clock, because the app may have been stopped, too. On two
# cores, during long requests and under a held key, what was sent waited at most 0.5 s beside 6 or 40 busy loops, and
# 2 s beside 6 if the process had the lowest priority; it then took 37 s to start.
_IGNORED = 20
_IGNORED_AT_START = 200


class ProcessEngine(Engine):
    """An engine whose requests are answered by another process."""

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._silence: asyncio.TimerHandle | None = None  # until silence is reported

    @property
    def pid(self) -> int | None:
        """The number of the process, if it is running."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process, which loads NumPy at once; raises InputError if it cannot be started."""
        quiet = subprocess.DEVNULL
        try:
            ours, theirs = socketpair()
            self._connection = Connection(ours)
            with theirs:
                command = [sys.executable, "-P", "-c", PROGRAM.format(theirs.fileno())]
                self._process = subprocess.Popen(
                    command, stdin=quiet, stdout=quiet, stderr=quiet, pass_fds=[theirs.fileno()]
                )
        except OSError as error:
            self._stop()
            raise InputError("cannot start the computing process: {reason}", reason=error.strerror) from error
        self._watch()

    def attach(self, loop: asyncio.AbstractEventLoop, notify: Callable[[Notification], object]) -> None:
        super().attach(loop, notify)
        self._loop = loop
        self._watch()
        self._watch_for_silence()

    def fetch(self, request: Request) -> object:
        """Send a request and wait for its first answer, before the app runs. Raises InputError if it fails."""
        answers: list[object] = []
        self.ask(request, lambda _, answer: answers.append(answer))
        while not answers:
            if self._connection is not None and not self._connection.wait(_SILENCE):
                self._restart_if_ignored()
            self._flush()
            self.receive()
        self.withdraw(type(request))  # its end may not have arrived yet: asked again, it must be sent again
        match answers[0]:
            case Failed(reason):
                raise InputError(reason)
            case Crashed() as crashed:
                raise EngineError.of(crashed)
            case answer:
                return answer

    def close(self) -> None:
        self._closed = True
        self._stop_timer()
        self._stop()

    def send(self, submission: Submission) -> None:
        if self._connection is None and not self._closed:
            try:
                self.start()
            except InputError as error:
                self.fail_all(str(error))
        if self._connection is not None:
            replaced = self._connection.put(submission)
            if replaced is not None and replaced.request is not None:
                self.deliver(Reply(replaced.number, None))  # as the schedule replies when it replaces a request
            self._flush()
        self._watch_for_silence()

    def receive(self) -> None:
        try:
            while self._connection is not None and (replies := self._connection.receive()) is not None:
                self._stop_timer()
                for number, content in replies:
                    if number == 0 and isinstance(content, Crashed):  # it cannot answer any request
                        self._stop()
                        self.fail_all(message("the computing process failed: {reason}", reason=content.error))
                        self.notify(EngineError.of(content))
                        return
                    self.deliver(Reply(number, content))
        except (EOFError, OSError):
            self._restart()
        self._watch_for_silence()

    def _flush(self) -> None:
        """Send what waits, as far as there is room."""
        connection = self._connection
        if connection is None:
            return
        was_full = connection.is_full
        try:
            connection.flush()
        except OSError:
            self.receive()  # replies sent before it ended
            if self._connection is connection:
                self._restart()
            return
        if connection.is_full is not was_full:
            self._watch()

    def _watch_for_silence(self) -> None:
        """Report silence if no reply arrives for a while, although a request is pending."""
        if self._loop is not None and self._silence is None and self.is_waiting and not self._closed:
            self._silence = self._loop.call_later(_SILENCE, self._report_silence)

    def _report_silence(self) -> None:
        self._silence = None
        self.report_silence()
        self._restart_if_ignored()
        self._watch_for_silence()

    def _stop_timer(self) -> None:
        """Cancel the report of silence."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _watch(self) -> None:
        """Receive what arrives; when there is room again, send what waits."""
        if self._loop is not None and self._connection is not None:
            self._loop.add_reader(self._connection.fileno(), self.receive)
            if self._connection.is_full:
                self._loop.add_writer(self._connection.fileno(), self._flush)
            else:
                self._loop.remove_writer(self._connection.fileno())

    def _stop(self) -> int | None:
        """End the process; return its exit code, negative for a signal, if it had already ended."""
        connection, self._connection = self._connection, None
        process, self._process = self._process, None
        if connection is not None:
            if self._loop is not None:
                self._loop.remove_reader(connection.fileno())
                self._loop.remove_writer(connection.fileno())
            connection.close()
        if process is None:
            return None
        code = process.poll()
        process.kill()
        end = Thread(target=process.wait, daemon=True)  # frozen or waiting for a disk, it ends later
        end.start()
        end.join(_EXIT_TIMEOUT)
        return code

    def _restart(self) -> None:
        """Resend pending requests to a new process, after this one has ended."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_TIMEOUT)
        code = self._stop()
        how = ""
        if code is not None:
            how = (
                message(" (signal {number})", number=-code)
                if code < 0
                else message(" (exit code {number})", number=code)
            )
        self.notify(message("The computing process ended{how}; restarting it.", how=how))
        self.resend(message("this computation ended the computing process{how}", how=how))

    def _restart_if_ignored(self) -> None:
        """Resend pending requests to a new process if this one has taken nothing for too long.

        If it has taken everything, send it a withdrawal of nothing: the next time tells whether it takes that.
        """
        connection = self._connection
        if connection is None:
            return
        ignored = connection.count_ignored()
        if not ignored:
            self.send(Submission(0, Request, None, self.executor))
        elif ignored > (_IGNORED if connection.has_reply else _IGNORED_AT_START):
            self._stop()
            self.notify(message("The computing process did not respond; restarting it."))
            self.resend(message("the computing process did not respond during this computation"))
