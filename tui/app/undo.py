"""What was set, back and forward in time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from ...core.parameters import Parameters

LONGEST = 500  # steps that are remembered
TOGETHER = 1.0  # seconds within which repetitions of one key are one step

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class History(Generic[S]):
    """A state, those before it and those undone. States are compared with ==."""

    present: S
    past: tuple[S, ...] = ()  # the latest last
    future: tuple[S, ...] = ()  # the next first
    cause: str = ""  # of the last step
    at: float = -math.inf  # when it was made

    def noted(self, state: S, cause: str, now: float) -> History[S]:
        """Return the history after a state was reached; a run of one cause is one step, what was undone is lost."""
        if state == self.present:
            return self
        same = cause == self.cause and now - self.at < TOGETHER
        past = self.past if same else (*self.past, self.present)[-LONGEST:]
        return History(state, past, (), cause, now)

    def showing(self, state: S) -> History[S]:
        """Return the history with its present replaced, without a step."""
        return History(state, self.past, self.future, self.cause, self.at)

    def undone(self) -> History[S]:
        """Return the history one step back; itself if there is none."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.present, *self.future))

    def redone(self) -> History[S]:
        """Return the history one step forward; itself if nothing is undone."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.present), self.future[1:])


class AppState(NamedTuple):
    """What undo restores: the parameters, the pane on screen, the theme, the executor, and what each pane keeps."""

    parameters: Parameters
    active: str
    theme: str  # empty for the usual one
    executor: str
    panes: Mapping[str, object]  # of those opened so far
