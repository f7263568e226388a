"""The characters that screens are drawn with: Unicode, or ASCII for terminals that cannot show it."""

from __future__ import annotations

import locale
import sys
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ...core.message import message
from ..language.cells import cells
from ..language.chosen import Language


class Glyphs(NamedTuple):
    """A set of characters for drawing; `say` converts labels and formulas to it."""

    bars: str  # from empty to full, in equal steps of height
    lengths: str  # the same in equal steps of width
    shades: str  # from empty to full, for heat maps without colour
    rule: str
    tick: str
    left: str
    right: str
    cursor: str
    marks: str  # points of a plot: unscaled, scaled, and both in one cell
    error: str  # an error bar that fills a cell, its upper half, its lower half
    uprights: str  # a vertical line that marks an x, and that of the cursor
    frame: str  # the left side of a plot: without a tick, with one, and its lower corner
    foot: str  # of the cursor, on the axis
    box: str  # a border: its four corners, and a side; `rule` is its upper and lower side
    thumb: str  # of a scroll bar
    halves: str  # the upper and the lower half of a cell
    axis: str  # a line from the start of an axis to a point, and where it crosses a limit
    line: str  # a thin line at the foot of a cell, and at equal steps up to its top; empty if braille can be shown
    ascii: bool

    language: Language = "en"

    def say(self, text: str, /, **values: object) -> str:
        """Return a message in the language of these glyphs and in their characters.

        Values replace the placeholders of its template. In ASCII, `√d_k` becomes `sqrt(d_k)`.
        """
        text = message(text, **values) if values else text
        if self.language != "en":
            from ..language.catalogue import translated  # English needs none of it

            return translated(text, self.language)
        if not self.ascii or text.isascii():
            return text
        for symbol, word in _PHRASES:
            text = text.replace(symbol, word)
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")

    def fitting(self, forms: Sequence[str], room: int) -> str:
        """Return the first form, from long to short, that fits when said, or the last one."""
        said = [self.say(form) for form in forms]
        return next((form for form in said if cells(form) <= room), said[-1])

    def bar(self, share: float, room: int) -> str:
        """Return a bar for a share of `room` cells, padded to them; one that is not zero may still be blank."""
        steps = len(self.lengths) - 1
        whole, rest = divmod(round(share * room * steps), steps)
        return (self.lengths[-1] * whole + (self.lengths[rest] if rest else "")).ljust(room)


UNICODE = Glyphs(
    " ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█", " ░▒▓█", "─", "┬", "◂", "▸", "▌",
    marks="●◆◈", error="│╵╷", uprights="┊│", frame="│┤└", foot="▲", box="╭╮╰╯│", thumb="┃", halves="▀▄",
    axis="━┿", line="", ascii=False,
)  # fmt: skip
ASCII = Glyphs(
    " .:-=+*#@", " .-=#", " .:+#@", "-", "+", "<", ">", ">",
    marks="ox*", error="|'.", uprights=":|", frame="|++", foot="^", box="++++|", thumb="#", halves="'.",
    axis="=+", line="_-'", ascii=True,
)  # fmt: skip

_PHRASES = (
    ("√d_k", "sqrt(d_k)"),
    ("√(", "sqrt("),
    ("Σ p²", "sum p^2"),
    ("c·q·k", "c q.k"),
    ("←→", "left/right"),
    ("↑↓", "up/down"),
    ("^−¼", "^(-1/4)"),
)
_ASCII = str.maketrans(
    {
        "√": "sqrt ", "²": "^2", "³": "^3", "⁴": "^4", "Σ": "sum ", "∂": "d", "‖": "||", "−": "-", "×": "x", "÷": "/",
        "·": ".", "±": "+-", "–": "-", "—": "-", "…": "...", "σ": "sigma", "μ": "mu", "ρ": "rho", "ν": "nu",
        "δ": "delta", "≤": "<=", "≥": ">=", "←": "left", "→": "right", "↑": "up", "↓": "down", "₁": "1", "₂": "2",
        "₄": "4", "₅": "5", "₆": "6", "ᵀ": "^T", "½": "1/2", "⁻": "^-", "¹": "1", "⁰": "0", "⁶": "6", "⁸": "8",
        "“": '"', "”": '"', "’": "'", "⌊": "floor(", "⌋": ")", "κ": "kappa", "∞": "inf", "✓": "+", "✗": "x",
        "≈": "~", "¼": "1/4", "₀": "0", "γ": "gamma", "λ": "lambda", "τ": "tau",
    }
)  # fmt: skip


# English or another language in Unicode; ASCII is always English.
IN_LANGUAGE: dict[Language, Glyphs] = {"en": UNICODE, "zh": UNICODE._replace(language="zh")}


def glyphs_for(ascii_only: bool, language: Language = "en") -> Glyphs:
    """Return ASCII if requested or if the locale's encoding cannot show Unicode; otherwise those of the language."""
    if ascii_only:
        return ASCII
    encoding = sys.stdout.encoding or locale.getpreferredencoding(False)
    try:
        "▁█√±中".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return IN_LANGUAGE[language]


# One ASCII character for each character that Textual's own widgets draw with.
_CELLS = {
    character: ascii_one
    for characters, ascii_one in (
        ("─━┄┅┈┉╌╍╴╶╸╺═▔", "-"), ("▁▂", "_"), ("│┃┆┇┊┋╎╏╵╷╹╻║▌▍▎▏▐▕", "|"), ("█▇▆▅▄▃▀▉▊▋■▪▮", "#"), ("░▒▓", ":"),
        ("←◀◂◄❮", "<"), ("→▶▸►❯", ">"), ("↑▲▴", "^"), ("↓▼▾", "v"), ("•●○◦◉◆", "o"), ("–—−‐", "-"), ("×✕✖✗✘", "x"),
        ("·…⋯", "."), ("✓✔", "v"), ("“”", '"'), ("‘’", "'"), ("\u00a0", " "),
    )
    for character in characters
}  # fmt: skip


@lru_cache(maxsize=4096)
def _cell(character: str) -> str:
    if character.isascii():
        return character
    if "\u2500" <= character <= "\u257f":
        return _CELLS.get(character, "+")  # a corner or a crossing of lines
    from rich.cells import cell_len  # not at the top: commands without tables run without Rich

    width = cell_len(character)
    plain = _CELLS.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode(
        "ascii"
    )
    return plain if len(plain) == width else "?" * width


def ascii_cells(text: str) -> str:
    """Return painted text in ASCII, cell by cell; escape sequences are unchanged."""
    return text if text.isascii() else "".join(map(_cell, text))
