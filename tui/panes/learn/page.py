"""One item, and on tall screens a picture of the numbers that it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.geometry import Size
from textual.widget import Widget

from ....core.message import message
from ...views.results.table import with_theory
from ...widgets.bars import Paragraph
from ...widgets.histograms import Histograms
from ...widgets.pictures import SaturationGauge
from ...widgets.placed import Stack
from .widget import ItemText

if TYPE_CHECKING:
    from ....core.parameters import Parameters
    from ...compute.measure import Answer
    from .items import Item

_TEXT = 31  # lines of every answer with its border
_LEAST = 18  # lines of a picture, from which it is shown
_GAUGE = 5  # lines of the gauge with its axis and border


def pictured(item: Item, answered: bool) -> Parameters | None:
    """Return the parameters of the picture beside an item; None if it has none.

    Until it is answered, they are those of a quarter of d_k, which does not tell the answer.
    """
    if item.kind == "bug":
        return None
    p = item.shown.parameters
    return p if answered else replace(p, d_k=max(p.d_k // 4, 1))


class ItemPage(Stack):
    """The text of an item, and below it the gauge and the histograms of the Lab."""

    def __init__(self, typed: Callable[[str], None]) -> None:
        super().__init__()
        self.text = ItemText(typed)
        self.words, self.gauge, self.histograms = Paragraph(), SaturationGauge(), Histograms()
        self.histograms.paged = False
        self.wanted: Parameters | None = None  # what the picture is to show
        self.shown: Parameters | None = None  # what it shows

    def compose(self) -> ComposeResult:
        yield self.text
        yield self.words
        yield self.gauge
        yield self.histograms

    def has_room(self, height: int) -> bool:
        """Return whether a page of this height has room for a picture."""
        return height >= _TEXT + _LEAST

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        if self.wanted is None or not self.has_room(size.height):
            return ((self.text, size.height),)
        rest = size.height - _TEXT - 1 - _GAUGE
        return (self.text, _TEXT), (self.words, 1), (self.gauge, _GAUGE), (self.histograms, rest)

    def want(self, parameters: Parameters | None) -> None:
        """Set what the picture is to show; without any, the text takes its place."""
        appears = (parameters is None) != (self.wanted is None)
        self.wanted = parameters
        if appears:
            self.text.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again

    def show(self, answer: Answer, answered: bool) -> None:
        """Show a measurement of the wanted parameters."""
        p, theory = answer.parameters, answer.theory
        self.shown = p
        contents = with_theory(answer.measurement, theory)
        self.gauge.show(contents)
        self.histograms.show(contents.columns, theory.curves)
        if answered:
            text = message("The Lab at d_k {d_k}, {keys} keys", d_k=p.d_k, keys=p.n_keys)
        else:
            text = message("For comparison, the Lab at d_k {d_k}, {keys} keys", d_k=p.d_k, keys=p.n_keys)
        self.words.show(text)
