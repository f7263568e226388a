"""The requests of the Learn pane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...compute.request import Cache, Request, Work

if TYPE_CHECKING:
    from ....core.claims.claim import Reading


@dataclass(frozen=True)
class ReadFigures(Request):
    """Measure the figures of an item. Answered by FiguresRead."""

    item: str  # its id

    def work(self, cache: Cache) -> Work:
        from ....core.learning.compute import stream
        from .items import AT, ITEMS

        found: dict[str, Reading] = {}
        for name, reading in stream(ITEMS[AT[self.item]].figures):
            found[name] = reading
            yield None
        yield FiguresRead(self.item, found)


@dataclass(frozen=True, eq=False)
class FiguresRead:
    """The readings of an item's figures, by name."""

    item: str
    readings: Mapping[str, Reading]
