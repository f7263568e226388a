"""The items of the Learn pane, in order, and what the user did with each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ....core.learning.figures import Figure
from ....core.learning.step import Shown, Step
from ....core.learning.tour.steps import STEPS

Kind: TypeAlias = Literal["step"]


@dataclass(frozen=True)
class Item:
    """A row of the list."""

    kind: Kind
    number: int  # within its kind, from 1
    content: Step

    @property
    def id(self) -> str:
        """Its name in the settings."""
        return self.content.id

    @property
    def title(self) -> str:
        """Its title in the list."""
        return self.content.title

    @property
    def figures(self) -> Mapping[str, Figure]:
        """The figures of its texts."""
        return self.content.figures

    @property
    def shown(self) -> Shown:
        """The pane that shows what it says."""
        return self.content.shown

    @property
    def stages(self) -> int:
        """How many times Enter shows more of it."""
        return 1


ITEMS: tuple[Item, ...] = tuple(Item("step", number, step) for number, step in enumerate(STEPS, 1))
AT = {item.id: index for index, item in enumerate(ITEMS)}


@dataclass(frozen=True)
class Attempt:
    """What the user did with an item."""

    text: str = ""  # the guess, as typed
    guess: float | None = None
    stage: int = 0  # how much of the answer is shown
    objection: str = ""  # why the text is not a guess


def remembered(progress: Mapping[str, Any]) -> tuple[int, set[str]]:
    """Return the index of the item to show, and the items that were answered, from the settings."""
    done = progress.get("done", ())
    return AT.get(str(progress.get("at", "")), 0), {name for name in map(str, done) if name in AT}


def to_remember(at: int, done: Collection[str]) -> dict[str, Any]:
    """Return what the settings file keeps, a table; empty if nothing was done."""
    kept = {"at": ITEMS[at].id, "done": [item.id for item in ITEMS if item.id in done]}
    return {"learn": kept} if at or done else {}
