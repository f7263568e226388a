"""The question of the Learn pane: a step, a question or a bug, with its figures measured now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..learning.bugs import Bug
from ..learning.items import AT, ITEMS, Found
from ..work.part import Part, Steps
from .question import Question

if TYPE_CHECKING:
    from ..claims.claim import Reading
    from ..learning.card import Card
    from ..program.text import Dialect
    from ..tables.formats import Say
    from ..tables.table import Format, Table


@dataclass(frozen=True, eq=False)
class ItemFigures:
    """What was found out about an item: its figures, or what the capture of a bug shows."""

    item: str  # its id
    found: Found

    @property
    def card(self) -> Card:
        """The item with its numbers filled in."""
        return ITEMS[AT[self.item]].card(self.found)


def capture_of(folder: Path, item: str) -> Path:
    """Return the path of a bug's capture."""
    return folder / f"{item}.safetensors"


def read_item(item: str, folder: Path | None) -> Steps[ItemFigures]:
    """Measure the figures of an item, or make the capture of a bug (in a folder, if one is given) and judge it."""
    from ..learning.examine import examine_bug
    from ..learning.trials import stream

    content = ITEMS[AT[item]].content
    if isinstance(content, Bug):
        try:
            with TemporaryDirectory(prefix="attn-tui-") as other:
                found_bug = examine_bug(content, capture_of(folder or Path(other), item))
        except OSError as error:
            raise InputError(
                "{folder}: the capture cannot be written: {reason}", folder=folder, reason=error.strerror
            ) from error
        yield 1.0, (ItemFigures(item, found_bug),)
        return
    found: dict[str, Reading] = {}
    for name, reading in stream(content.figures):
        found[name] = reading
        yield len(found) / (len(content.figures) + 1), ()
    yield 1.0, (ItemFigures(item, found),)


@dataclass(frozen=True)
class ReadItem(Question[ItemFigures]):
    """Measure the figures of an item, or make and examine the capture of a bug."""

    item: str  # its id
    folder: Path | None = None  # for captures that are kept

    def parts(self) -> Sequence[Part[ItemFigures]]:
        return [Part(read_item, (self.item, self.folder), 1.0)]

    @property
    def words(self) -> Sequence[str]:
        return ["learn", ITEMS[AT[self.item]].word]

    @property
    def file_name(self) -> str:
        return f"learn-{self.item}"

    def table(self, answer: ItemFigures) -> Table[Any]:
        from ..tables.learning import cards_table

        return cards_table([answer.card])

    def written(self, answer: ItemFigures, format: Format, say: Say, ascii_only: bool = False) -> str:
        if format == "csv":
            raise InputError("The tour has no CSV; it has Markdown, as flash cards, and JSON.")
        return super().written(answer, format, say)

    def code(self, answer: ItemFigures, dialect: Dialect) -> str:
        from ..program.library import card_code

        return card_code(answer.card, self.line())
