"""Lines of text with roles, which every view returns.

A line is a tuple of (text, role) spans. A role is a kind of text, not a look: the app's theme or `PRINTED` gives it a
style. Two frames can be compared with ==.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from ..language.cells import WIDE, pieces
from .glyphs import Glyphs


class Blend(NamedTuple):
    """The role of half blocks in which intensities are shown: 0 to 8 of the colour of scaled; below 0, no colour."""

    block: int
    ground: int


Name: TypeAlias = Literal[
    "text",  # ordinary text
    "label",  # names of things
    "dim",  # secondary text: ±, axes, hints
    "heading",
    "unscaled",
    "scaled",
    "theory",
    "over_unscaled",  # theory over a bar
    "over_scaled",
    "thin_unscaled",  # an exact curve
    "thin_scaled",
    "third",  # curves beside those of unscaled and scaled
    "fourth",
    "fifth",
    "thin_third",
    "thin_fourth",
    "thin_fifth",
    "accent",  # what has the focus
    "cursor",  # the cursor of a map
    "selected",  # text selected with the mouse
    "alert",  # errors and warnings
    "wrong",  # the label of a fault
    "right",  # the label of what is as it should be
    "good",  # what is as it should be
    "key",  # a key to press
    "frame",  # a border
    "title",  # in a border
    "lit",  # the border and the title of the region with the focus
]
Role: TypeAlias = Name | Blend
Span: TypeAlias = tuple[str, Role]
Line: TypeAlias = tuple[Span, ...]

# For printed output: the terminal's sixteen colours.
PRINTED: dict[Name, Style] = {
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
    "third": Style(color="green"),
    "fourth": Style(color="magenta"),
    "fifth": Style(),
    "thin_third": Style(color="green", dim=True),
    "thin_fourth": Style(color="magenta", dim=True),
    "thin_fifth": Style(dim=True),
    "accent": Style(bold=True),
    "cursor": Style(reverse=True),
    "selected": Style(reverse=True),
    "alert": Style(color="red"),
    "wrong": Style(color="red", bold=True, reverse=True),
    "right": Style(color="green", bold=True, reverse=True),
    "good": Style(color="green"),
    "key": Style(bold=True),
    "frame": Style(dim=True),
    "title": Style(bold=True),
    "lit": Style(bold=True),
}


def printed_style(role: Role) -> Style:
    """Return the style of a role in printed output, which has no half blocks."""
    return Style() if isinstance(role, Blend) else PRINTED[role]


def displayable(line: Line) -> Line:
    """Return the line with a question mark for each character that is not printable: terminals obey some of them.

    Readers clean text from outside; here nothing else passes.
    """
    if "".join([text for text, _ in line]).isprintable():
        return line
    return tuple(("".join(c if c.isprintable() else "?" for c in text), role) for text, role in line)


def line_width(line: Line) -> int:
    """Return the width of a line in cells."""
    return sum([len(text) if text.isascii() else cell_len(text) for text, _ in line])


def fitted(line: Line, width: int) -> Line:
    """Return the line cut or padded to exactly `width` cells; wide characters are never split."""
    taken = line_width(line)
    if taken <= width:
        return (*line, (" " * (width - taken), "text")) if taken < width else line
    result: list[Span] = []
    left = width
    for text, role in line:
        cells = cell_len(text)
        if left <= 0 and cells:  # a combining mark still belongs to the character before it
            break
        if cells > left:
            result.append((set_cell_size(text, left), role))
            break
        result.append((text, role))
        left -= cells
    return tuple(result)


def unsplit(line: Line, columns: Collection[int]) -> Line:
    """Return the line with spaces before the wide characters that one of these columns would split.

    A space stands after the punctuation before the character, if no other column is between them.
    """
    result: list[Span] = []
    at = 0
    for text, role in line:
        moved, last = "", 0  # where the last column is in `moved`
        for character in text:
            cells = cell_len(character)
            if at in columns:
                last = len(moved)
            while cells > 1 and at + 1 in columns:
                place = max(moved.rfind(stop, last) + 1 for stop in " ，。；：？！") or len(moved)
                moved, at = f"{moved[:place]} {moved[place:]}", at + 1
                last = len(moved)
            moved, at = moved + character, at + cells
        result.append((moved, role))
    return tuple(result)


def marked(line: Line, start: int, end: int, role: Role = "selected") -> Line:
    """Return a line whose characters from `start` up to `end` have another role; -1 is the end of the line."""
    spans: list[Span] = []
    at = 0
    for text, before in line:
        first = min(max(start - at, 0), len(text))
        last = len(text) if end < 0 else min(max(end - at, first), len(text))
        pieces: Line = (text[:first], before), (text[first:last], role), (text[last:], before)
        spans += [piece for piece in pieces if piece[0]]
        at += len(text)
    return tuple(spans)


def merged(spans: Iterable[Span]) -> Line:
    """Return the spans, neighbours of one role together."""
    runs = groupby(spans, key=itemgetter(1))
    return tuple(("".join(text for text, _ in run), role) for role, run in runs)


def window(at: int, count: int, room: int) -> int:
    """Return the first of `room` lines of `count` that have line `at` in their middle, as far as there are others."""
    return min(max(at - room // 2, 0), max(count - room, 0))


def ends(left: Line, right: Line, width: int) -> Line:
    """Return a line with one part at each edge; the right part is dropped if both do not fit."""
    gap = width - line_width(left) - line_width(right)
    return fitted((*left, (" " * gap, "text"), *right) if gap >= 1 else left, width)


_WORD = re.compile(r"(?:[<>×] )*\S+(?: ± \S+)?(?: %\S*)?")  # `> 99.9 %` and `0.5 ± 0.1 %` are one word
_WIDE = f"[{WIDE}]"


def wrapped(text: str, width: int, role: Role = "text") -> list[Line]:
    """Return a paragraph as lines of at most `width` cells; they end after words, and beside wide characters."""
    return [((line, role),) for line in _broken(text, width)]


@lru_cache(maxsize=32)
def _broken(text: str, width: int) -> tuple[str, ...]:
    lines: list[str] = []
    current = ""
    for word in _words(text):
        if current and cell_len((current + word).rstrip()) > width:
            lines.append(current.rstrip())
            current = ""
        current += word
        while cell_len(current.rstrip()) > width > 0:  # a word longer than a line, such as a path
            head = set_cell_size(current, width)
            lines.append(head)
            current = current[len(head.rstrip()) or 1 :]  # drops a space, or a wide character that does not fit
    if current.strip():
        lines.append(current.rstrip())
    return tuple(lines)


def _words(text: str) -> list[str]:
    """Split a text where a line may end; each part has the space after it, and together they are the text."""
    if text.isascii() or not re.search(_WIDE, text):
        return [f"{word} " for word in _WORD.findall(text)]
    found: list[str] = []
    for piece in pieces(" ".join(text.split())):
        if found and (piece.startswith(("%", "±")) or found[-1].endswith((" < ", " > ", "× ", "± "))):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def shortened(lines: list[Line], width: int, height: int, sign: str) -> list[Line]:
    """Return the first `height` lines of a paragraph; if there are more, the last one ends with `sign`."""
    if len(lines) <= height or not height:
        return lines[:height]
    text, role = "".join(text for text, _ in lines[height - 1]), lines[height - 1][0][1]
    room = max(width - cell_len(sign) - 1, 0)
    words = _words(text)
    while len(words) > 1 and cell_len("".join(words).rstrip()) > room:
        words.pop()
    text = "".join(words).rstrip()
    if cell_len(text) > room:
        text = set_cell_size(text, room)
    return [*lines[: height - 1], ((f"{text} {sign}", role),)]


def middle_cut(text: str, width: int, sign: str) -> str:
    """Return the text with `sign` for its middle if it is wider than `width`; words are kept whole where they can be.

    Names differ at their ends: `sentence-tran…L6-v2`.
    """
    if cell_len(text) <= width:
        return text
    room = width - cell_len(sign)
    if room < 2:
        return set_cell_size(text, max(width, 0))
    head, tail = _beginning(text, room - room // 2), _beginning(text[::-1], room // 2)[::-1]
    if " " in head.strip() and not text[len(head)].isspace():
        head = head.rpartition(" ")[0]
    if " " in tail.strip() and not text[-len(tail) - 1].isspace():
        tail = tail.partition(" ")[2]
    return f"{head.rstrip()}{sign}{tail.lstrip()}"


def _beginning(text: str, width: int) -> str:
    """Return the beginning of a text that fits in `width` cells."""
    found = set_cell_size(text, width)
    return found if text.startswith(found) else found[:-1]


def as_text(lines: Iterable[Line]) -> Text:
    """Return lines as a Rich text, for printing."""
    text = Text(no_wrap=True, end="")
    for number, line in enumerate(lines):
        if number:
            text.append("\n")
        for piece, role in displayable(line):
            text.append(piece, printed_style(role))
    return text


BORDER_ROLES: tuple[Role, ...] = ("frame", "lit", "title")
EDGES = 6  # cells of a side's ends: corner, line and blank at each


class Thumb(NamedTuple):
    """The part of a text that is shown: from line `first` on, `shown` of `total` lines."""

    first: int
    shown: int
    total: int

    def rows(self, height: int) -> range:
        """Return the rows of a scroll bar of this height that its thumb covers; none if the whole text is shown."""
        if self.shown >= self.total or height < 1:
            return range(0)
        length = max(min(round(height * self.shown / self.total), height - 1), 1)
        start = round((height - length) * min(self.first / (self.total - self.shown), 1))
        return range(start, start + length)


@lru_cache(maxsize=256)
def top_line(
    title: Line, note: Line, width: int, role: Role, glyphs: Glyphs, left: bool = True, right: bool = True
) -> Line:
    """Return the upper side with a title at its left and a note at its right, if they fit; corners at these sides."""
    corners = (glyphs.box[0] if left else glyphs.rule) + (glyphs.box[1] if right else glyphs.rule)
    named: Role = "lit" if role == "lit" else "title"
    words: Line = tuple((text, named if of == "heading" else of) for text, of in title)
    return ruled(words, note, width, role, glyphs, corners)


@lru_cache(maxsize=256)
def bottom_line(text: Line, width: int, role: Role, glyphs: Glyphs) -> Line:
    """Return the lower side with its corners, and a text at its right if it fits."""
    return ruled((), text, width, role, glyphs, glyphs.box[2:4])


def ruled(left: Line, right: Line, width: int, role: Role, glyphs: Glyphs, corners: str) -> Line:
    """Return `╭─ left ──── right ─╮`; `right` is left out if both do not fit."""
    if width < 2:
        return fitted((), max(width, 0))
    rule, room = glyphs.rule, max(width - EDGES, 0)
    if line_width(left) > room:
        sign = glyphs.say("…")
        left = (*fitted(left, max(room - len(sign), 0)), (sign[:room], left[-1][1]))
    if line_width(left) + line_width(right) + 3 * bool(left) > room:
        right = ()
    blank: Span = (" ", role)
    before: Line = ((corners[0] + rule, role), blank, *left, blank) if left else ((corners[0] + rule, role),)
    after: Line = (blank, *right, blank, (rule + corners[1], role)) if right else ((rule + corners[1], role),)
    between = rule * (width - line_width(before) - line_width(after))
    return fitted((*before, (between, role), *after), width)


def side(width: int, role: Role, glyphs: Glyphs, thumb: bool, at_left: bool = False) -> Line:
    """Return the left or right side with its padding, `width` cells together; `thumb` marks the scroll bar."""
    edge: Span = (glyphs.thumb if thumb else glyphs.box[4], "lit" if thumb else role)
    padding: Span = (" " * (width - 1), "text")
    return (edge, padding) if at_left else (padding, edge)
