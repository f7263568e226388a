"""What every command prints its table with."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from ...core.lab.prediction import ScoreCurve
from .. import output
from ..requests import Output
from ..views.glyphs import ASCII, UNICODE, Glyphs
from ..views.histograms import grid_lines
from ..views.lines import as_text, wrapped
from ..views.sentence import sentence
from ..views.table import Contents, rich_table

_WIDEST = 100
_NARROWEST = 60
_UNBOUNDED = 10_000  # cells: a table takes what it needs, and a narrow terminal breaks its lines
_HISTOGRAMS = 14  # lines of the four pairs


def whole_table(
    title: Sequence[str], contents: Contents, result: Output, glyphs: Glyphs, curve: ScoreCurve | None = None
) -> str:
    """The table, without its theory where the screen has no room for it; what it says; and the histograms."""
    width = width_of(result)
    table = rich_table(contents, glyphs)
    if on_screen(result) and Console(width=_UNBOUNDED).measure(table).maximum > output.screen_width():
        table = rich_table(Contents(contents.columns), glyphs)
    parts: list[RenderableType] = [
        title_lines(title, width, glyphs),
        Text(),
        table,
        Text(),
        as_text(wrapped(sentence(contents, glyphs), width)),
        Text(),
        as_text(grid_lines(contents.columns, width, _HISTOGRAMS, glyphs, curve)),
    ]
    return printed(parts, result)


def title_lines(words: Sequence[str], width: int, glyphs: Glyphs) -> Text:
    """Words set off by points, none of them broken between lines."""
    lines: list[str] = []
    for word in map(glyphs.say, words):
        if lines and cell_len(f"{lines[-1]} {word} .") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
        lines[-1] += "" if word is words[-1] else glyphs.say(" ·")
    return as_text([((line, "heading"),) for line in lines])


def glyphs_of(result: Output, ascii_only: bool) -> Glyphs:
    """The characters of a result. Files are UTF-8, whatever the terminal shows."""
    if result.path is None:
        return output.screen_glyphs(ascii_only)
    return ASCII if ascii_only else UNICODE


def on_screen(result: Output) -> bool:
    """Whether a person reads the result on a terminal."""
    return result.path is None and output.is_terminal()


def width_of(result: Output) -> int:
    """Cells in a line of words: neither so few nor so many that they read badly."""
    width = output.screen_width() if result.path is None else 80
    return min(max(width, _NARROWEST), _WIDEST)


def printed(parts: Sequence[RenderableType], result: Output) -> str:
    """The parts as text, in colour where a terminal shows them and nobody asked for none."""
    colour = on_screen(result) and not os.environ.get("NO_COLOR")
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
