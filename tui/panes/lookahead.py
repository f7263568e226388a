"""What a key leads to when it is pressed again, or held: which d_k to measure before it is asked for."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from ...core.parameters import FIELD, Parameters
from ..messages import MeasurementReady

_KNOWN = 16  # measurements that are kept
_HELD = 0.05  # seconds from one key to the next in which only a key that is held down repeats
_BEHIND = 2  # results that are awaited while they keep up with it
_RELEASED = 1.5  # times as long as between its last two keys, after which a key is held no longer


def by(change: int) -> Callable[[int], int]:
    """From one d_k to the one so much further, if there is such a d_k."""
    low, high = FIELD["d_k"].low, FIELD["d_k"].high
    return lambda d_k: d_k + change if low <= d_k + change <= high else d_k


class Lookahead:
    """What has been asked for, how fast, and what is known of it; used by the app's thread, but for `aims`.

    While results keep up with a held key, one d_k after the other is measured. Where they do not, the next result is
    for where the key will have got to by then: shown when it gets there, it is not old.
    """

    def __init__(self) -> None:
        self.onward = by(1)  # from one d_k to the next, as the last key went
        self.held = False  # whether keys come as they do from one that is held down
        self.stride = 0  # keys from one result to the next, where results do not keep up
        self.awaited: set[Parameters] = set()  # what has been asked for since all of it was known
        self.known: dict[Parameters, MeasurementReady] = {}  # what was measured lately, or before it is asked for
        self._last: Parameters | None = None  # what has been asked for last
        self._asked = -math.inf  # when
        self._every = math.inf  # seconds after the one before
        self._keys = 0  # since the last result

    def ask(self, p: Parameters) -> MeasurementReady | None:
        """This is asked for now; what is known of it."""
        now = time.monotonic()
        again = self._last is not None and p == self.following(self._last)
        self._every, self._asked, self._last = now - self._asked, now, p
        self.held = again and self._every < _HELD
        self._keys += 1
        if not self.held:
            self.stride = 0
        known = self.known.get(p)
        if known is None:
            self.awaited.add(p)
        return known

    @property
    def waited(self) -> float:
        """Seconds since something was asked for."""
        return time.monotonic() - self._asked

    def learn(self, message: MeasurementReady) -> None:
        """A measurement of all draws, and its theory, have come."""
        subject = message.measurement.subject
        self.known.pop(subject, None)
        self.known[subject] = message
        if len(self.known) > _KNOWN:
            del self.known[next(iter(self.known))]
        keeps_up = self._keys <= 1 and not self.awaited if self.stride else len(self.awaited) <= _BEHIND
        self.stride = 0 if keeps_up or not self.held else max(self._keys, 1)
        self._keys = 0

    def following(self, p: Parameters, times: int = 1) -> Parameters:
        """What so many more presses of the last key lead to from here."""
        d_k = p.d_k
        for _ in range(times):
            d_k = self.onward(d_k)
        return replace(p, d_k=d_k)

    def then(self, p: Parameters) -> Parameters | None:
        """What to begin as soon as these have been measured: what a held key leads to, while results keep up."""
        return self.following(p) if self.held and len(self.awaited) <= _BEHIND else None

    def aims(self, p: Parameters) -> Iterator[Parameters]:
        """What to measure for a key that has got here; asked by who measures, when there is time for the next."""
        target = self.following(p, self.stride)
        if self.waited <= _RELEASED * self._every and target not in self.known:
            yield target
        if self._last == p and p not in self.known:  # it has not gone on
            yield p
