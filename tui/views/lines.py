"""Lines of roles: what every view returns.

A line is a tuple of (text, role) spans. A role says what a piece of text is, never how it looks: the app's theme
gives it a colour, plain output prints it as it is, and two frames are compared with ==.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

Role: TypeAlias = Literal[
    "text",  # ordinary words
    "label",  # names of things
    "dim",  # what stands back: ±, axes, hints
    "heading",
    "unscaled",
    "scaled",
    "theory",
    "over_unscaled",  # theory drawn over a bar
    "over_scaled",
    "thin_unscaled",  # its exact curve
    "thin_scaled",
    "accent",  # what has focus
    "cursor",  # where one is on a map
    "alert",  # what is wrong
    "key",  # a key to press
]
Span: TypeAlias = tuple[str, Role]
Line: TypeAlias = tuple[Span, ...]

# The terminal's own sixteen colours: for output that is printed rather than painted by the app.
PRINTED: dict[Role, Style] = {
    "text": Style(),
    "label": Style(),
    "dim": Style(dim=True),
    "heading": Style(bold=True),
    "unscaled": Style(color="yellow"),
    "scaled": Style(color="cyan"),
    "theory": Style(dim=True),
    "over_unscaled": Style(color="yellow", reverse=True),
    "over_scaled": Style(color="cyan", reverse=True),
    "thin_unscaled": Style(color="yellow", dim=True),
    "thin_scaled": Style(color="cyan", dim=True),
    "accent": Style(bold=True),
    "cursor": Style(reverse=True),
    "alert": Style(color="red"),
    "key": Style(bold=True),
}


def line_width(line: Line) -> int:
    """How many cells a line takes."""
    return sum([len(text) if text.isascii() else cell_len(text) for text, _ in line])


def fitted(line: Line, width: int) -> Line:
    """The line cut or filled with spaces to exactly this many cells; wide characters are never halved."""
    taken = line_width(line)
    if taken <= width:
        return (*line, (" " * (width - taken), "text")) if taken < width else line
    result: list[Span] = []
    left = width
    for text, role in line:
        cells = cell_len(text)
        if left <= 0 and cells:  # a mark without a cell of its own still belongs to what stands before
            break
        if cells > left:
            result.append((set_cell_size(text, left), role))
            break
        result.append((text, role))
        left -= cells
    return tuple(result)


def ends(left: Line, right: Line, width: int) -> Line:
    """One part at the left edge, one at the right; the right one gives way when there is no room for both."""
    gap = width - line_width(left) - line_width(right)
    return fitted((*left, (" " * gap, "text"), *right) if gap >= 1 else left, width)


_WORD = re.compile(r"(?:[<>×] )*\S+(?: %\S*)?")  # `> 99.9 %` is one


def wrapped(text: str, width: int, role: Role = "text") -> list[Line]:
    """A paragraph as lines of at most this many cells."""
    lines: list[Line] = []
    current = ""
    for word in _WORD.findall(text):
        candidate = f"{current} {word}" if current else word
        if cell_len(candidate) > width and current:
            lines.append(((current, role),))
            candidate = word
        while cell_len(candidate) > width > 0:  # a word longer than a line, as paths are
            head = set_cell_size(candidate, width)
            lines.append(((head, role),))
            candidate = candidate[len(head.rstrip()) or 1 :]  # a space, or a wide character without room, is left out
        current = candidate
    if current:
        lines.append(((current, role),))
    return lines


def shortened(lines: list[Line], width: int, height: int, sign: str) -> list[Line]:
    """The first lines of a paragraph, with this sign at the end of the last one if there are more."""
    if len(lines) <= height or not height:
        return lines[:height]
    text, role = "".join(text for text, _ in lines[height - 1]), lines[height - 1][0][1]
    room = max(width - cell_len(sign) - 1, 0)
    while cell_len(text) > room:
        text = text.rpartition(" ")[0] if " " in text else set_cell_size(text, room)
    return [*lines[: height - 1], ((f"{text} {sign}", role),)]


def as_text(lines: Iterable[Line]) -> Text:
    """Lines as a Rich text, for printing."""
    text = Text(no_wrap=True, end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for piece, role in line:
            text.append(piece, PRINTED[role])
    return text
