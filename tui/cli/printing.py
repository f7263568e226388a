"""How commands print tables."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ...core.statistics.catalogue import STATISTIC
from ...core.statistics.histogram import Histogram
from ...core.statistics.measurement import Measurement
from ...core.statistics.status import status
from ...core.tables.table import CommandLine as Reproduced
from ..views.glyphs import Glyphs
from ..views.grid import folded
from ..views.lines import PRINTED, Line, as_text, wrapped
from ..views.numbers import short
from ..views.plots.histograms import grid_lines
from ..views.results.sentence import sentence
from ..views.results.table import TableContents, rich_table
from .output import Output, is_terminal

if TYPE_CHECKING:
    from ...core.captures.capture import HeadSubject

_UNBOUNDED = 10_000  # cells: tables are as wide as they need to be, and a narrow terminal wraps them
_HISTOGRAMS = 14  # lines for the four pairs of histograms


def whole_table(
    title: Sequence[str], contents: TableContents, output: Output, curves: Sequence[Histogram | None] = ()
) -> str:
    """Return a title, a table, its summary and histograms; a narrow terminal gets the table without theory."""
    width, glyphs = output.text_width, output.glyphs
    table = rich_table(contents, glyphs)
    if output.on_screen and Console(file=io.StringIO(), width=_UNBOUNDED).measure(table).maximum > output.width:
        table = rich_table(TableContents(contents.columns), glyphs)
    parts: list[RenderableType] = [
        title_lines(title, width, glyphs),
        Text(),
        table,
        Text(),
        as_text(wrapped(sentence(contents, glyphs), width)),
        Text(),
        as_text(grid_lines(contents.columns, width, _HISTOGRAMS, glyphs, curves)),
    ]
    return printed(parts, output)


def page(output: Output, title: Sequence[str], *parts: str | Sequence[Line] | Table) -> str:
    """Return a title and parts as text: lines, sentences, which are wrapped, blank lines and the command, dimmed."""
    width, glyphs = output.text_width, output.glyphs
    found: list[RenderableType] = [title_lines(title, width, glyphs)] if title else []
    for part in parts:
        match part:
            case "":
                found.append(Text())
            case Reproduced():
                found.append(as_text([((part, "dim"),)]))
            case str():
                found.append(as_text(wrapped(glyphs.say(part), width)))
            case Table():
                found.append(part)
            case _:
                found.append(as_text(part))
    return printed(found, output)


def title_lines(words: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Return the words separated by middle dots, wrapped between words only."""
    lines: list[str] = []
    for number, word in enumerate(map(glyphs.say, words), 1):
        if lines and cell_len(f"{lines[-1]} {word} .") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
        lines[-1] += glyphs.say(" ·") if number < len(words) else ""
    return as_text([((line, "heading"),) for line in lines])


def printed(parts: Sequence[RenderableType], output: Output) -> str:
    """Return the parts as text, in colour on a terminal, or if FORCE_COLOR asks for it, unless NO_COLOR is set."""
    forced = output.path is None and any(
        os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")
    )
    colour = (forced or (output.on_screen and is_terminal())) and not os.environ.get("NO_COLOR")
    console = Console(
        file=io.StringIO(),
        force_terminal=colour,
        color_system="auto" if colour else None,
        width=_UNBOUNDED,
        highlight=False,
    )
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


_DISPENSABLE = ("logit_std", "logit_variance_within_row", "max_weight")  # left out on narrow screens
_WIDE = 96


def head_list(heads: Sequence[Measurement[HeadSubject]], width: int | None, glyphs: Glyphs) -> Table:
    """Return a line for each head, on its first column; `width` is the screen's, None when not on a screen."""
    from ...core.tables.heads import SHOWN

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
