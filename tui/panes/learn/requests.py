"""The requests of the Learn pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....core.errors import InputError
from ....core.learning.bugs import Bug
from ...compute.question import Question
from ...compute.request import Cache, Work
from .items import AT, ITEMS, Found

if TYPE_CHECKING:
    from ....core.claims.claim import Reading
    from ....core.learning.card import Card
    from ....core.program.text import Dialect
    from ....core.tables.formats import Say
    from ....core.tables.table import Format, Table


@dataclass(frozen=True)
class ReadItem(Question["Card"]):
    """Measure the figures of an item, or make and examine the capture of a bug. Answered by ItemRead."""

    item: str  # its id
    folder: Path = Path()  # for captures

    def work(self, cache: Cache) -> Work:
        from ....core.learning.examine import examine_bug
        from ....core.learning.trials import stream

        content = ITEMS[AT[self.item]].content
        if isinstance(content, Bug):
            try:
                found_bug = examine_bug(content, capture_of(self.folder, self.item))
            except OSError as error:
                raise InputError(
                    "{folder}: the capture cannot be written: {reason}", folder=self.folder, reason=error.strerror
                ) from error
            yield ItemRead(self.item, found_bug)
            return
        found: dict[str, Reading] = {}
        for name, reading in stream(content.figures):
            found[name] = reading
            yield None
        yield ItemRead(self.item, found)

    @property
    def words(self) -> Sequence[str]:
        return ["learn", ITEMS[AT[self.item]].word]

    @property
    def file_name(self) -> str:
        return f"learn-{self.item}"

    def table(self, answer: Card) -> Table[Any]:
        from ....core.tables.learning import cards_table

        return cards_table([answer])

    def written(self, answer: Card, format: Format, say: Say, ascii_only: bool = False) -> str:
        if format == "csv":
            raise InputError("The tour has no CSV; it has Markdown, as flash cards, and JSON.")
        return super().written(answer, format, say)

    def code(self, answer: Card, dialect: Dialect) -> str:
        from ....core.program.library import card_code

        return card_code(answer, self.line())


@dataclass(frozen=True, eq=False)
class ItemRead:
    """What was found out about an item."""

    item: str
    found: Found


def capture_of(folder: Path, item: str) -> Path:
    """Return the path of a bug's capture."""
    return folder / f"{item}.safetensors"
