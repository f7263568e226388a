"""Widths and line breaks of texts with wide characters: a Chinese one takes two cells, and no space follows it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

WIDE = "\u2e80-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff60"  # Chinese characters and punctuation
# Latin and Greek letters, punctuation, mathematics, lines, blocks and braille: a cell each.
_SINGLE = (  # patterns are compiled when they are first needed
    "[\x20-\x7e\xa1-\xac\xae-\u02ff\u0370-\u0377\u0384-\u03ff\u1d00-\u1dbf\u2010-\u2027\u2030-\u205e\u2070-\u20cf\u2100-\u2319\u2500-\u25fc\u2800-\u28ff]*"
)
_WIDE = f"[{WIDE}]"
_OPENING = "（“「『《"  # no line ends with one of these
_CLOSING = "，。；：、？！）”」』》"  # and none begins with one of these, or with … after a word
_PIECE = (
    rf"[{_OPENING}]*"
    rf"(?:[{WIDE}]|(?:[^\s…{WIDE}{_OPENING}{_CLOSING}]|…(?=\w))+)?"
    rf"(?:[{_CLOSING}]|…(?!\w))*\s*"
)


@lru_cache(maxsize=4096)
def cells(text: str) -> int:
    """Return how many cells a text takes in a terminal."""
    if (text.isascii() and text.isprintable()) or re.fullmatch(_SINGLE, text):
        return len(text)
    from rich.cells import cell_len  # not at the top: commands without tables run without Rich

    return cell_len(text)


def to_left(text: str, width: int) -> str:
    """Return the text with spaces after it, `width` cells in all; a longer text as it is."""
    return text + " " * (width - cells(text))


def to_right(text: str, width: int) -> str:
    """Return the text with spaces before it, `width` cells in all; a longer text as it is."""
    return " " * (width - cells(text)) + text


def to_middle(text: str, width: int) -> str:
    """Return the text with spaces around it, `width` cells in all; a longer text as it is."""
    room = max(width - cells(text), 0)
    return " " * (room // 2) + text + " " * (room - room // 2)


def joining(before: str, text: str) -> str:
    """Return a text as it follows another: without its first space, if wide characters are on both sides of that."""
    bare = text.removeprefix(" ")
    return bare if re.match(_WIDE, before[-1:]) and re.match(_WIDE, bare[:1]) else text


def pieces(text: str) -> list[str]:
    """Split a text where a line may end: after spaces, and beside wide characters; the pieces are the whole text.

    No piece begins with closing punctuation or ends with an opening one.
    """
    return [piece for piece in re.findall(_PIECE, text) if piece]


def broken(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` cells; only a piece that is longer is on a longer line."""
    lines, line = list[str](), ""
    for piece in pieces(text):
        if line and cells(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece
    return [*lines, line.rstrip()] if line else lines


def aligned(rows: Sequence[Sequence[str]], to_left: Collection[int] = (), between: str = "  ") -> list[str]:
    """Return a line for each row, with columns as wide as their widest text; those in `to_left` begin there.

    The texts of other columns end where their column ends.
    """
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for row in rows:
        pads = [" " * (width - cells(text)) for text, width in zip(row, widths, strict=True)]
        padded = [text + pads[n] if n in to_left else pads[n] + text for n, text in enumerate(row)]
        lines.append(between.join(padded).rstrip())
    return lines
