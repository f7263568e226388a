"""What a key leads to when it is pressed again, or held: which d_k to measure before it is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from ...core.parameters import FIELD, Parameters
from ..messages import MeasurementReady

_KNOWN = 16  # measurements that are kept
_HELD = 0.05  # seconds from one key to the next in which only a key that is held down repeats
_BEHIND = 2  # results that are awaited while they keep up with it
_USUAL = 0.016  # seconds from a question to a result that is ready to be shown, until that has been seen
_COMPOSED = 0.006  # of these, until it is composed, once it is there
_EASY = 0.75  # of the time between keys: results that take less keep up again
_WEIGHT = 0.3  # of the newest time in an average
_RELEASED = 1.5  # times as long as between keys, after which a key is held no longer
_BUSY = 0.01  # seconds that it may have come by then, while the app's thread composes or is kept waiting
_REACH = 3  # keys beyond the one that is aimed at, or from the present one to one that is worth composing


def by(change: int) -> Callable[[int], int]:
    """From one d_k to the one so much further, if there is such a d_k."""
    low, high = FIELD["d_k"].low, FIELD["d_k"].high
    return lambda d_k: d_k + change if low <= d_k + change <= high else d_k


class Lookahead:
    """What has been asked for, how fast, and what is known of it; used by the app's thread, but for `aims`.

    While results keep up with a held key, one d_k after the other is measured. Where they do not, the next result is
    for where the key will have got to by then: composed by the time it gets there, it is shown at once, and not old.
    """

    def __init__(self) -> None:
        self.onward = by(1)  # from one d_k to the next, as the last key went
        self.held = False  # whether keys come as they do from one that is held down
        self.outrun = False  # whether they come faster than results
        self.awaited: set[Parameters] = set()  # what has been asked for since all of it was known
        self.known: dict[Parameters, MeasurementReady] = {}  # what was measured lately, or before it is asked for
        self._last: Parameters | None = None  # what has been asked for last
        self._asked = -math.inf  # when
        self._every = math.inf  # seconds between keys, on average
        self._takes = _USUAL  # seconds for a result, on average

    def ask(self, p: Parameters) -> MeasurementReady | None:
        """This is asked for now; what is known of it."""
        now = time.monotonic()
        again = self._last is not None and p == self.following(self._last)
        every, self._asked, self._last = now - self._asked, now, p
        held = again and every < _HELD
        self._every = _averaged(self._every, every) if held and self.held else every
        self.held = held
        self.outrun = held and self._takes >= self._every * (_EASY if self.outrun else 1)
        known = self.known.get(p)
        if known is None:
            self.awaited.add(p)
        return known

    @property
    def waited(self) -> float:
        """Seconds since something was asked for."""
        return time.monotonic() - self._asked

    @property
    def released(self) -> bool:
        """Whether the key that was held no longer is."""
        return self.waited > _RELEASED * self._every + _BUSY

    def in_vain(self, p: Parameters) -> bool:
        """Whether these were aimed at for a key that is not going to get there."""
        return self.released and p != self._last and p not in self.awaited

    def learn(self, message: MeasurementReady) -> None:
        """A measurement of all draws, and its theory, have come."""
        subject = message.measurement.subject
        self.known.pop(subject, None)
        self.known[subject] = message
        if len(self.known) > _KNOWN:
            del self.known[next(iter(self.known))]
        if self.held and len(self.awaited) > _BEHIND:
            self._takes = max(self._takes, self._every)

    def following(self, p: Parameters, times: int = 1) -> Parameters:
        """What so many more presses of the last key lead to from here."""
        d_k = p.d_k
        for _ in range(times):
            d_k = self.onward(d_k)
        return _at(p, d_k)

    def next_known(self, p: Parameters) -> MeasurementReady | None:
        """The first of the next results that is there already."""
        near = (self.following(p, times) for times in range(1, _REACH + 1))
        return next((self.known[each] for each in near if each in self.known), None)

    def then(self, p: Parameters) -> Parameters | None:
        """What to begin as soon as these have been measured: what a held key leads to, while results keep up."""
        return self.following(p) if self.held and len(self.awaited) <= _BEHIND else None

    def aims(self, p: Parameters) -> Iterator[Parameters]:
        """What to measure for a key that has got here; asked by who measures, when there is time for the next."""
        begun = time.monotonic()
        if not self.released:
            times = math.ceil((self.waited + self._takes) / self._every)
            beyond = (self.following(p, times + further) for further in range(_REACH))
            target = next((each for each in beyond if each not in self.known and each != p), None)
            if target is not None:
                yield target
                if not self.released:  # or else it may have been given up
                    self._takes = _averaged(self._takes, time.monotonic() - begun + _COMPOSED)
        if self._last == p and p not in self.known:  # it has not gone on
            yield p


@lru_cache(maxsize=64)
def _at(p: Parameters, d_k: int) -> Parameters:
    """Kept, because each is asked for several times on its way, and all its fields are checked."""
    return replace(p, d_k=d_k)


def _averaged(before: float, newest: float) -> float:
    return before + (newest - before) * _WEIGHT
