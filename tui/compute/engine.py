"""The engine as panes use it: they send requests and receive answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ...core.parameters import Parameters
from ...core.questions.lab import Measure, Report
from ...core.questions.request import Crashed, Failed, Progress, Request
from .measure import Prefetch

if TYPE_CHECKING:
    import asyncio

CACHED = 16  # measurements

Receiver: TypeAlias = Callable[[Request, object], object]  # called with a request and an answer to it


class EngineError(RuntimeError):
    """An unexpected error in the engine, with its traceback there as a note."""

    @classmethod
    def of(cls, crashed: Crashed) -> EngineError:
        """Return the error that an answer describes."""
        error = cls(crashed.error)
        error.add_note(crashed.report)
        return error


Notification: TypeAlias = "str | EngineError"  # a line for the user, or an error that ends the app


class Submission(NamedTuple):
    """A request on its way to the engine, with its number; None withdraws the request of a kind."""

    number: int
    kind: type[Request]
    request: Request | None
    executor: str = "serial"  # for requests that take long


class Reply(NamedTuple):
    """An answer on its way back, with the number of its request; None after the last one."""

    number: int
    content: object


@dataclass
class _Pending:
    """A request without its last answer, and the receivers of its answers."""

    request: Request
    receivers: list[Receiver] = field(default_factory=list[Receiver])
    has_answer: bool = False  # or progress
    losses: int = 0  # how often the engine's process ended while this was the most urgent request

    def answer(self, content: object) -> None:
        """Pass an answer to all receivers."""
        for receive in self.receivers:
            receive(self.request, content)


class Engine:
    """Tracks the latest request of each kind and caches the last measurements; subclasses get requests answered.

    Not thread-safe: only the app's thread uses it.
    """

    def __init__(self) -> None:
        self._number = 0  # of the last request
        self._pending: dict[int, _Pending] = {}  # by number, including replaced requests that are still running
        self._latest: dict[type[Request], int] = {}  # the number of the latest request, by kind
        self._cache: dict[Parameters, Report] = {}
        self.notify: Callable[[Notification], object] = lambda _: None
        self.executor = "serial"  # where requests that take long are performed, as `--executor` says

    # For panes

    def ask(self, request: Request, receive: Receiver | None = None) -> None:
        """Send a request, which replaces earlier ones of its kind; if it is pending, only add a receiver."""
        current = self._current(type(request))
        pending = current if current is not None and current.request == request else _Pending(request)
        if receive is not None and receive not in pending.receivers:
            pending.receivers.append(receive)
        if pending is not current:
            self._submit(pending)

    def withdraw(self, kind: type[Request]) -> None:
        """Cancel the pending request of a kind, if any."""
        number = self._latest.pop(kind, None)
        if number is not None:
            self.send(Submission(number, kind, None, self.executor))

    def cached(self, parameters: Parameters, full: bool = True) -> Report | None:
        """Return the complete measurement of these parameters, if it is cached; it may be fuller than asked for."""
        self.receive()
        answer = self._cache.get(parameters)
        return answer if answer is not None and answer.full >= full else None

    def prefetch(self, request: Measure) -> None:
        """Measure this when no other request is pending, unless it is cached or requested already."""
        current = self._current(Measure)
        if self.cached(request.parameters, request.full) is None and (current is None or current.request != request):
            self.ask(Prefetch(request.parameters, request.full))

    # For the app

    def attach(self, loop: asyncio.AbstractEventLoop, notify: Callable[[Notification], object]) -> None:
        """Deliver answers in this event loop from now on, and notifications to `notify`."""
        self.notify = notify

    def close(self) -> None:
        """Stop; no request is answered any more."""

    # For subclasses

    def send(self, submission: Submission) -> None:
        """Get a request answered, or cancel it; its replies go to `deliver`."""
        raise NotImplementedError

    def receive(self) -> None:
        """Deliver replies that have already arrived."""

    def deliver(self, reply: Reply) -> None:
        """Pass an answer to the receiver of its request, and cache it if it is a complete measurement."""
        pending, content = self._pending.get(reply.number), reply.content
        if pending is None:
            return
        kind, pending.has_answer = type(pending.request), True
        if content is None:
            del self._pending[reply.number]
            if self._latest.get(kind) == reply.number:
                del self._latest[kind]
            return
        if isinstance(content, Report) and content.measurement.complete:
            self._add_to_cache(content)
            if kind is Prefetch:  # it may have been requested in the meantime
                current = self._current(Measure)
                if current is not None and current.request == Measure(content.parameters, content.full):
                    pending = current
                    self.withdraw(Measure)  # or it would be measured again
        pending.answer(content)

    def report_silence(self) -> None:
        """Report progress to requests that have none yet, so that panes dim what is not current."""
        for number in [*self._latest.values()]:
            pending = self._pending.get(number)
            if pending is not None and not pending.has_answer:
                self.deliver(Reply(number, Progress(0.0)))

    @property
    def is_waiting(self) -> bool:
        """Whether a request is pending."""
        return bool(self._pending)

    def resend(self, reason: str) -> None:
        """Send pending requests again after the engine's process ended.

        It was working on the most urgent one; if that happens twice, that request fails for this reason.
        """
        lost = self._clear()
        suspect = min(lost, key=lambda pending: pending.request.PRIORITY, default=None)
        if suspect is not None:
            suspect.losses += 1
            if suspect.losses > 1:
                lost.remove(suspect)
                suspect.answer(Failed(reason))
        for pending in lost:
            self._submit(pending)

    def fail_all(self, reason: str) -> None:
        """Let all pending requests fail for this reason."""
        for pending in self._clear():
            pending.answer(Failed(reason))

    def _clear(self) -> list[_Pending]:
        """Forget all requests; return the latest of each kind."""
        latest = [self._pending[number] for number in self._latest.values()]
        self._pending.clear()
        self._latest.clear()
        return latest

    def _submit(self, pending: _Pending) -> None:
        kind = type(pending.request)
        self._number += 1
        self._latest[kind] = self._number
        self._pending[self._number] = pending
        self.send(Submission(self._number, kind, pending.request, self.executor))

    def _current(self, kind: type[Request]) -> _Pending | None:
        """Return the latest request of a kind, if it is pending."""
        return self._pending.get(self._latest.get(kind, 0))

    def _add_to_cache(self, answer: Report) -> None:
        before = self._cache.pop(answer.parameters, answer)
        self._cache[answer.parameters] = before if before.full > answer.full else answer
        if len(self._cache) > CACHED:
            del self._cache[next(iter(self._cache))]
