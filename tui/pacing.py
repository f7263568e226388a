"""Sends a terminal no more frames than it takes: a link slower than the keys shows fewer states, and no old ones.

After a frame the terminal is asked where its cursor is, which it answers once it has drawn all that came before.
While two frames are unanswered, or one that by the pace of the last ones is still on its way, the next one is held
back; when it goes out, it shows the newest state. A terminal that never answers is sent every frame.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from threading import RLock
from typing import Generic, NamedTuple, TypeVar

from textual.driver import Driver
from textual.timer import Timer

from .frugal import FrugalApp

# Asked at the beginning of the screen, so that no answer looks like a key: Shift+F3 is `CSI 1 ; 2 R`.
QUESTION = "\x1b[H\x1b[6n"

_WINDOW = 2  # frames that may be on their way
_LONG = 500  # characters of a frame that tells how fast the link is
_BUSY = 0.1  # seconds that a link may be busy before the next frame waits
_TRIALS = 16  # questions until a terminal that has not answered any is asked no more
_PATIENCE = (2.0, 10.0)  # seconds for an answer: four times as long as the last one took, but in these bounds
_GREETING = 0.5  # seconds for the first answer, when the app is left before it came
_FAREWELL = 1.5  # seconds at most for the last one

ReturnType = TypeVar("ReturnType")


class _Asked(NamedTuple):
    """A question that the terminal has not answered yet."""

    when: float
    size: int  # characters of the frame before it


class Pacing:
    """What a terminal has been asked and what it has answered; used by the app's thread and by the one that reads."""

    def __init__(self, caught_up: Callable[[], object], clock: Callable[[], float] = time.monotonic) -> None:
        self._caught_up = caught_up  # called by the thread that reads, if frames wait
        self._clock = clock
        self._lock = RLock()  # `hold` may forget
        self._first = 0.0  # when the first question was put
        self._last = 0.0  # when the last answer came
        self._quickest = math.inf  # seconds from a question to its answer
        self._pace = 0.0  # seconds a character
        self._patience = _PATIENCE[0]
        self.forget()

    def forget(self) -> None:
        """Nothing that was asked will be answered; until the next answer nothing is held back."""
        with self._lock:
            self._asked: deque[_Asked] = deque()
            self._answers = self._holding = False
            self._idle = 0.0  # when the link will have carried all that was sent

    def ask(self, size: int) -> str:
        """The question to put after a frame of so many characters, if it makes sense to put one."""
        with self._lock:
            if not self._answers and len(self._asked) >= _TRIALS:
                return ""
            now = self._clock()
            self._first = self._first or now
            self._idle = max(now, self._idle) + size * self._pace
            self._asked.append(_Asked(now, size))
            return QUESTION

    def hold(self) -> float:
        """How many seconds the next frame has to wait from now on; `caught_up` says when to ask again before."""
        with self._lock:
            now = self._clock()
            wait = 0.0
            if self._asked and self._answers:
                late = max(self._asked[0].when, self._idle) + self._patience
                if late <= now:
                    self.forget()
                wait = (late if len(self._asked) >= _WINDOW else self._idle - _BUSY) - now
            self._holding = wait > 0
            return max(wait, 0.0)

    def answered(self, times: int) -> None:
        """So many answers have come."""
        if not times:
            return
        with self._lock:
            self._answers = True
            now = self._clock()
            for _ in range(min(times, len(self._asked))):
                self._learn(self._asked.popleft(), now)
            caught_up = self._holding
        if caught_up:
            self._caught_up()

    def _learn(self, asked: _Asked, now: float) -> None:
        """How long the terminal takes for an answer, and for a character; only long frames tell that."""
        self._patience = min(max(4 * (now - asked.when), _PATIENCE[0]), _PATIENCE[1])
        self._quickest = min(self._quickest, now - asked.when)
        if asked.size >= _LONG:
            self._pace = (now - max(self._last, asked.when + self._quickest)) / asked.size
        self._last = now

    @property
    def outstanding(self) -> bool:
        """Whether there are questions without an answer."""
        return bool(self._asked)

    @property
    def farewell(self) -> float:
        """How many seconds answers are worth waiting for when the terminal is left."""
        if self._answers:
            return _FAREWELL
        return max(0.0, self._first + _GREETING - self._clock()) if self._asked else 0.0


class PacedApp(FrugalApp[ReturnType], Generic[ReturnType]):
    """An app that holds frames back while its terminal has not caught up."""

    pacing: Pacing | None = None  # set by a driver that hears the answers
    ascii_only: bool = False  # whatever is drawn, by the toolkit too, is sent in ASCII
    _held: ExitStack | None = None
    _timer: Timer | None = None
    _expected = 0.0  # until when something is worth waiting for

    def after_frame(self, sent: str) -> str:
        if self.pacing is None:
            return ""
        question = self.pacing.ask(len(sent))
        self._hold_or_go_on()
        return question

    def get_driver_class(self) -> type[Driver]:
        """A driver that hears the answers, where this Textual's own is the one that it extends."""
        usual = super().get_driver_class()
        try:
            from .driver import SUPPORTED, LinuxDriver, TerminalDriver
        except ImportError:
            return usual
        return TerminalDriver if SUPPORTED and usual is LinuxDriver else usual

    def forget_screen(self) -> None:
        super().forget_screen()
        if self.pacing is not None:
            self.pacing.forget()
        self._hold_or_go_on()

    def caught_up(self) -> None:
        """The terminal has answered; from any thread."""
        self.call_later(self._hold_or_go_on)

    def expect(self, seconds: float) -> None:
        """What comes within this time is to be shown in one frame with what has changed already."""
        now = time.monotonic()
        if self._expected <= now:  # while keys are held, every frame is still sent in time
            self._expected = now + seconds
            self._hold_or_go_on()

    def expect_no_more(self) -> None:
        """It has come, or it is not going to come soon."""
        if self._expected:
            self._expected = 0.0
            self._hold_or_go_on()

    def _hold_or_go_on(self) -> None:
        """Hold frames back while the terminal has enough to do, and then send the newest state."""
        wait = self._expected - time.monotonic()
        if self.pacing is not None:
            wait = max(wait, self.pacing.hold())
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if wait > 0:
            self._timer = self.set_timer(wait, self._hold_or_go_on)
            if self._held is None:
                self._held = ExitStack()
                self._held.enter_context(self.batch_update())
        elif self._held is not None:
            self._held.close()
            self._held = None
            if not self.is_running:  # it is being left
                return
            if self.all_seen():
                self.screen.check_idle()  # it paints what has changed when it is idle
            else:  # something was laid out meanwhile
                self.screen.refresh()
