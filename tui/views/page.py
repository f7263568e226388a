"""What pages are made of: a number in large digits with words beside it, ruled titles, pictures with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..language.cells import to_left
from .glyphs import Glyphs
from .lines import Line, Role, Span, fitted, middle_cut, ruled

_SHIFT = 10  # cells by which digits may move the words beside them
LOW, TALL = 3, 5  # lines of digits: of half blocks, or of whole cells, two for each pixel

# Three by five pixels for each sign, row by row.
_SIGNS: Mapping[str, str] = {
    "0": "### #.# #.# #.# ###", "1": "##. .#. .#. .#. ###", "2": "### ..# ### #.. ###", "3": "### ..# .## ..# ###",
    "4": "#.# #.# ### ..# ..#", "5": "### #.. ### ..# ###", "6": "### #.. ### #.# ###", "7": "### ..# ..# ..# ..#",
    "8": "### #.# ### #.# ###", "9": "### #.# ### ..# ###", ".": "... ... ... ... .#.", "×": "... #.# .#. #.# ...",
    "−": "... ... ### ... ...", "-": "... ... ### ... ...", "%": "#.# ..# .#. #.. #.#", "_": "... ... ... ... ###",
    "e": "... ### ### #.. .##", "/": "..# ..# .#. #.. #..", "—": "... ... ### ... ...",
}  # fmt: skip
_BLANK = "... ... ... ... ..."


def headline_lines(
    label: str,
    number: str,
    words: Sequence[Line],
    width: int,
    glyphs: Glyphs,
    at: int,
    role: Role = "heading",
    tall: bool = False,
    beside: int = 0,
) -> list[Line]:
    """Return the lines of a headline: the label on the last line of the digits, which begin at cell `at`, then words.

    Words begin at cell `beside`, or after the digits if these reach further; there are as many lines as words need.
    """
    room = max((beside if beside else width) - at - 2, 1)
    digits = large(number, tall, glyphs)
    if tall and len(digits[0]) > room:
        digits = large(number, False, glyphs)
    if len(digits[0]) > room + _SHIFT:  # as of a text that is typed without end: its end, in small ones
        small = number[-room:]
        digits = (*[" " * len(small)] * (LOW - 1), small)
    lines: list[Line] = []
    for row in range(max(len(digits), len(words))):
        left = glyphs.say(label) if row == len(digits) - 1 else ""
        spans: list[Span] = [(to_left(f" {left}", at), "label")]
        if row < len(digits):
            spans.append((digits[row], role))
        start = max(beside, at + len(digits[0]) + 2)
        if row < len(words):
            spans = [*fitted(tuple(spans), start), *words[row]]
        lines.append(fitted(tuple(spans), width))
    return lines


def words_at(width: int, tall: bool = False) -> int:
    """Return the cell at which the words beside the digits begin."""
    return 56 if tall and width >= 110 else 40 if width >= 96 else 35 if width >= 70 else 20


@lru_cache(maxsize=64)
def large(number: str, tall: bool, glyphs: Glyphs) -> tuple[str, ...]:
    """Return a number in large digits: TALL lines of whole cells, or LOW lines of half blocks."""
    signs = [_SIGNS.get(sign, _BLANK).split() for sign in number]
    rows = [".".join(sign[row] for sign in signs) for row in range(TALL)]
    full = glyphs.bars[-1]
    if tall:
        return tuple("".join(2 * (full if pixel == "#" else " ") for pixel in row) for row in rows)
    halves = {"##": full, "#.": glyphs.halves[0], ".#": glyphs.halves[1], "..": " "}
    pairs = zip(rows[::2], [*rows[1::2], "." * len(rows[0])], strict=True)
    return tuple("".join(halves[top + under] for top, under in zip(*pair, strict=True)) for pair in pairs)


def section_line(title: str, note: str, width: int, glyphs: Glyphs) -> Line:
    """Return `── title ───────── note ──`; the note is left out if both do not fit."""
    said: Line = ((glyphs.say(note), "dim"),) if note else ()
    return ruled(((glyphs.say(title), "title"),), said, width, "frame", glyphs, glyphs.rule * 2)


class PictureColumns(NamedTuple):
    """The columns that all pictures of a page share, in cells: names, the picture, and words on it."""

    name: int
    picture: int
    words: int


def picture_columns(width: int) -> PictureColumns:
    """Return the columns for a width."""
    name, words = (13, 27) if width >= 110 else (12, 24) if width >= 96 else (11, 17) if width >= 70 else (10, 11)
    return PictureColumns(name, max(width - name - words, 4), words)


def picture_line(
    name: str,
    role: Role,
    picture: Line,
    words: str,
    at: PictureColumns,
    glyphs: Glyphs,
    said: Role | None = None,
) -> Line:
    """Return a line of a picture with its name before it and words after it, both in a role, or words as `said`."""
    cut = middle_cut(name, at.name - 2, glyphs.say("…"))
    before: Span = (to_left(f" {cut}", at.name), role)
    return fitted((before, *fitted(picture, at.picture), (f"  {words}", said or role)), sum(at))
