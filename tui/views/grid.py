"""Tables of core as lines: columns as wide as their texts, and a note on those without room."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import groupby

from ...core.message import joined, message
from ...core.tables.table import Block, TextGrid
from ..language.cells import aligned, cells
from .glyphs import Glyphs
from .lines import Line, Role, wrapped

IN_CSV = message("Not shown at this width: {columns} (complete in JSON and CSV).")
IN_JSON = message("Not shown at this width: {columns} (complete in JSON).")


def block_lines(blocks: Iterable[Block], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a page: sentences, tables with names and words in their first two columns, and then remarks."""
    lines: list[Line] = []
    role: Role = "text"
    for block in blocks:
        if isinstance(block, TextGrid):
            note, role = message("Not shown at this width: {columns}."), "dim"
            lines += [(), *table_lines(block, glyphs, width, {0, 1}, note=note), ()]
        elif isinstance(block, str):
            lines += wrapped(glyphs.say(block), width, role)
    return [line for line, _ in groupby(lines)]


def table_lines(
    grid: TextGrid,
    glyphs: Glyphs,
    width: int | None = None,
    to_left: Collection[int] = (),
    fold: bool = False,
    note: str = IN_CSV,
) -> list[Line]:
    """Return a table; columns are aligned right, but those in `to_left`. With `fold`, long titles take two lines.

    Of columns beyond `width`, empty ones and then the last ones are left out, and a note names those with values.
    """
    said = [[glyphs.say(cell) for cell in line] for line in grid.lines]
    columns = [*zip(*said, strict=True)]
    said_titles = zip(map(glyphs.say, grid.header), columns, strict=True)
    titles = [folded(title, max(map(cells, column)) if fold else None) for title, column in said_titles]
    rows = [*map(list, zip(*titles, strict=True)), *said]
    wide = [max(map(cells, column)) + 2 for column in zip(*rows, strict=True)]
    empty = [at for at, column in enumerate(columns) if at and not any(cell.strip() for cell in column)]
    kept = [*range(len(columns))]
    while width is not None and sum(wide[at] for at in kept) - 2 > width and len(kept) > 1:
        kept.remove(empty.pop() if empty else kept[-1])
    texts = aligned([[row[at] for at in kept] for row in rows], [n for n, at in enumerate(kept) if at in to_left])
    lines: list[Line] = [((text, "label" if at < 2 else "text"),) for at, text in enumerate(texts) if at or text]
    hidden = [title for at, title in enumerate(grid.header) if at not in kept and any(map(str.strip, columns[at]))]
    if width is None or not hidden:
        return lines
    return [*lines, *wrapped(glyphs.say(message(note, columns=joined(hidden, ", "))), width, "dim")]


def folded(title: str, width: int | None) -> tuple[str, str]:
    """Return a title in two lines, the first empty if one line of `width` has room for it or it has one word."""
    words = title.split(" ")
    if width is None or cells(title) <= width or len(words) == 1:
        return "", title
    cuts = ((" ".join(words[:at]), " ".join(words[at:])) for at in range(1, len(words)))
    return min(cuts, key=lambda cut: max(map(cells, cut)))
