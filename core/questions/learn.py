"""The question of the Learn pane: steps, questions, bugs and claims, with their figures measured now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import InputError
from ..learning.bugs import Bug
from ..learning.claim import Claim
from ..learning.claims import catalogue
from ..learning.items import AT, ITEMS, Found, Item
from ..learning.outcome import judged
from ..work.part import Part, Steps
from .question import Question
from .request import Priority

if TYPE_CHECKING:
    from ..learning.card import Card
    from ..learning.outcome import Outcome
    from ..learning.sources import Reading
    from ..program.text import Dialect
    from ..tables.formats import Say
    from ..tables.table import Format, Table

_SECONDS = 0.5  # that an item takes


@dataclass(frozen=True, eq=False)
class ItemFigures:
    """What was found out about an item: its figures, or what the capture of a bug shows."""

    item: str  # its id
    found: Found
    guess: float | None = None  # what the user answered

    @property
    def of(self) -> Item:
        """The item."""
        return ITEMS[AT[self.item]]

    @property
    def card(self) -> Card:
        """The item with its numbers filled in, and with what the user answered."""
        return self.of.answered(self.of.card(self.found), self.guess, self.found)

    @property
    def outcome(self) -> Outcome:
        """The verdict on a claim."""
        assert isinstance(self.of.content, Claim), self.item
        assert isinstance(self.found, dict), self.item
        return judged(self.of.content, self.found)


def capture_of(folder: Path, item: str) -> Path:
    """Return the path of a bug's capture."""
    return folder / f"{item}.safetensors"


def read_item(item: str, folder: Path | None) -> Steps[ItemFigures]:
    """Measure the figures of an item, or make the capture of a bug (in a folder, if one is given) and judge it."""
    from ..learning.bug_evidence import examine_bug
    from ..learning.measure import stream

    content, figures = ITEMS[AT[item]].content, ITEMS[AT[item]].figures
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
    readings: dict[str, Reading] = {}
    for name, reading in stream(figures):
        readings[name] = reading
        yield len(readings) / (len(figures) + 1), ()
    yield 1.0, (ItemFigures(item, readings),)


@dataclass(frozen=True)
class ReadItems(Question[Sequence[ItemFigures]]):
    """Measure the figures of items of one section, or make and examine the captures of bugs."""

    items: tuple[str, ...]  # their ids
    folder: Path | None = None  # for captures that are kept

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND

    def parts(self) -> Iterable[Part[ItemFigures]]:
        return (Part(read_item, (item, self.folder), _SECONDS) for item in self.items)

    def interim(self, results: Sequence[ItemFigures], fraction: float) -> Sequence[ItemFigures] | None:
        return [*results] or None

    def result(self, results: Sequence[ItemFigures]) -> Sequence[ItemFigures]:
        return results

    @property
    def first(self) -> Item:
        """The first item, whose section is that of all."""
        return ITEMS[AT[self.items[0]]]

    @property
    def words(self) -> Sequence[str]:
        return ["claims"] if len(self.items) > 1 else ["learn", self.first.word]

    @property
    def file_name(self) -> str:
        return "claims" if len(self.items) > 1 else f"learn-{self.first.id}"

    def table(self, answer: Sequence[ItemFigures]) -> Table[Any]:
        from ..tables.learning import cards_table, claims_table

        if self.first.kind == "claim":
            return claims_table([figures.outcome for figures in answer])
        return cards_table([figures.card for figures in answer])

    def written(self, answer: Sequence[ItemFigures], format: Format, say: Say, ascii_only: bool = False) -> str:
        if format == "csv" and self.first.kind == "claim":
            raise InputError("attn-tui claims prints CSV, of all claims.")
        if format == "csv":
            raise InputError("The tour has no CSV; it has Markdown, as flash cards, and JSON.")
        return super().written(answer, format, say)

    def code(self, answer: Sequence[ItemFigures], dialect: Dialect) -> str:
        from ..program.library import card_code, claims_code

        if self.first.kind == "claim":
            return claims_code([figures.outcome for figures in answer], self.line())
        return card_code(answer[0].card, self.line())


def all_claims() -> ReadItems:
    """Return the question what is true of all that is said about √d_k."""
    return ReadItems(tuple(claim.id for claim in catalogue.CLAIMS))
