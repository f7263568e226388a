"""The list of a capture's heads, one line each: for print, where the app has its map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ...core.statistics.catalogue import STATISTIC
from ...core.statistics.measurement import Measurement
from .glyphs import Glyphs
from .lines import PRINTED
from .numbers import short
from .verdict import verdict

if TYPE_CHECKING:
    from ...core.captures.heads import HeadSubject

# What tells real heads from random draws and from each other.
SHOWN = (
    "logit_std",
    "logit_variance_within_row",
    "row_mean_share",
    "entropy_fraction",
    "max_weight",
    "one_hot_rows",
    "dead_rows",
    "first_key_weight",
)
_DISPENSABLE = ("logit_std", "max_weight")  # left out where the screen is narrow
_WIDE = 96


def head_list(heads: Sequence[Measurement[HeadSubject]], width: int | None, glyphs: Glyphs) -> Table:
    """A line for each head, of its first column; `width` is that of the screen, None for paper."""
    narrow = width is not None and width < _WIDE
    statistics = [STATISTIC[name] for name in SHOWN if not (narrow and name in _DISPENSABLE)]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title in ("layer", "head", *(_title(s.label, s.unit == "share") for s in statistics)):
        table.add_column(Text(glyphs.say(title), justify="right"), justify="right", no_wrap=True, vertical="bottom")
    table.add_column("", no_wrap=True)
    for head in heads:
        measured = head.columns[0].measured
        numbers = [Text(_number(measured[s.name].value, s.unit == "share", glyphs)) for s in statistics]
        place = (Text(str(head.subject.layer.index)), Text(str(head.subject.head)))
        table.add_row(*place, *numbers, Text(" " + verdict(measured), PRINTED["heading"]))
    return table


def _number(value: float | None, share: bool, glyphs: Glyphs) -> str:
    """The value with its point under the others', unless it is too large or too small for that."""
    if value is None:
        return short(value, glyphs)
    if share:
        return f"{100 * value:.1f}"
    return f"{value:.2f}" if value == 0 or 0.01 <= value < 1_000 else short(value, glyphs)


def _title(label: str, share: bool) -> str:
    """A label over two lines, as narrow as its longer half."""
    words = f"{label} %".split() if share else label.split()
    halves = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words))]
    upper, lower = min(halves, key=lambda half: max(map(len, half)), default=(label, ""))
    return f"{upper}\n{lower}"
