"""The list of a capture's heads, one line each, for print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .....core.statistics.catalogue import STATISTIC
from .....core.statistics.measurement import Measurement
from .....core.statistics.status import status
from .....core.tables.heads import SHOWN
from ....views.glyphs import Glyphs
from ....views.grid import folded
from ....views.lines import PRINTED
from ....views.numbers import short

if TYPE_CHECKING:
    from .....core.captures.capture import HeadSubject

_DISPENSABLE = ("logit_std", "logit_variance_within_row", "max_weight")  # left out on narrow screens
_WIDE = 96


def head_list(heads: Sequence[Measurement[HeadSubject]], width: int | None, glyphs: Glyphs) -> Table:
    """Return a line for each head, on its first column; `width` is the screen's, None when not on a screen."""
    narrow = width is not None and width < _WIDE
    statistics = [STATISTIC[name] for name in SHOWN if not (narrow and name in _DISPENSABLE)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    files = any(head.subject.layer.file for head in heads)
    if files:
        table.add_column(glyphs.say("file"), no_wrap=True, overflow="ellipsis", vertical="bottom")
    labels = [f"{glyphs.say(s.short_label)}{' %' if s.unit == 'share' else ''}" for s in statistics]
    titles = ["\n".join(folded(label, 0)) for label in labels]
    for title in (glyphs.say("layer"), glyphs.say("head"), *titles):
        table.add_column(Text(title, justify="right"), justify="right", no_wrap=True, vertical="bottom")
    table.add_column("", no_wrap=True)
    for head in heads:
        measured = head.columns[0].measured
        numbers = [Text(_number(measured[s.name].value, s.unit == "share", glyphs)) for s in statistics]
        place = (Text(str(head.subject.layer.index)), Text(str(head.subject.head)))
        if files:
            place = (Text(glyphs.say(head.subject.layer.file)), *place)
        table.add_row(*place, *numbers, Text(" " + glyphs.say(status(measured) or ""), PRINTED["heading"]))
    return table


def _number(value: float | None, share: bool, glyphs: Glyphs) -> str:
    """Return the value, aligned at the point with others unless it is too large or too small."""
    if value is None:
        return short(value, glyphs)
    if share:
        return f"{100 * value:.1f}"
    return f"{value:.2f}" if value == 0 or 0.01 <= value < 1_000 else short(value, glyphs)
