"""The characters that screens are drawn with: Unicode, or plain ASCII where a terminal cannot show that."""

from __future__ import annotations

import locale
import sys
import unicodedata
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class Glyphs:
    """One set of characters. `say` spells labels and formulas in it."""

    bars: str  # from empty to full, in equal steps of height
    lengths: str  # the same from the left
    shades: str  # from nothing to everything, for heat maps without colour
    rule: str
    tick: str
    left: str
    right: str
    cursor: str
    dot: str  # of a curve drawn over bars
    marks: str  # points of a plot: unscaled, scaled, and both in one place
    error: str  # an error bar in a cell: all of it, its upper half, its lower half
    uprights: str  # a line that marks an x, and the cursor's
    frame: str  # the left side of a plot: without a tick, with one, and its lower corner
    foot: str  # of the cursor, on the axis
    ascii: bool

    def say(self, text: str) -> str:
        """The text in these characters; `√d_k` becomes `sqrt(d_k)` in ASCII."""
        if not self.ascii or text.isascii():
            return text
        for symbol, word in _PHRASES:
            text = text.replace(symbol, word)
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


UNICODE = Glyphs(
    " ▁▂▃▄▅▆▇█", " ▏▎▍▌▋▊▉█", " ░▒▓█", "─", "┬", "◂", "▸", "▌", "•",
    marks="●◆◈", error="│╵╷", uprights="┊│", frame="│┤└", foot="▲", ascii=False,
)  # fmt: skip
ASCII = Glyphs(
    " .:-=+*#@", " .-=#", " .:+#@", "-", "+", "<", ">", ">", "o",
    marks="ox*", error="|'.", uprights=":|", frame="|++", foot="^", ascii=True,
)  # fmt: skip

_PHRASES = (
    ("√d_k", "sqrt(d_k)"),
    ("√(", "sqrt("),
    ("Σ p²", "sum p^2"),
    ("Σp²", "sum p^2"),
    ("Σe^x", "sum e^x"),
    ("‖J‖_F", "||J||_F"),
    ("c·q·k", "c q.k"),
    ("←→", "left/right"),
    ("↑↓", "up/down"),
)
_ASCII = str.maketrans(
    {
        "√": "sqrt ", "²": "^2", "³": "^3", "⁴": "^4", "Σ": "sum ", "∂": "d", "‖": "||", "−": "-", "×": "x", "÷": "/",
        "·": ".", "±": "+-", "—": "-", "…": "...", "σ": "sigma", "μ": "mu", "ρ": "rho", "ν": "nu", "δ": "delta",
        "≤": "<=", "≥": ">=", "←": "left", "→": "right", "↑": "up", "↓": "down", "₁": "1", "₂": "2", "₅": "5",
        "ᵀ": "^T", "½": "1/2", "⁻": "^-", "¹": "1", "⁰": "0", "⁶": "6", "⁸": "8", "“": '"', "”": '"', "’": "'",
        "⌊": "floor(", "⌋": ")", "κ": "kappa",
    }
)  # fmt: skip


def glyphs_for(ascii_only: bool) -> Glyphs:
    """ASCII when it is asked for, or wherever the locale's encoding cannot show Unicode."""
    if ascii_only:
        return ASCII
    encoding = sys.stdout.encoding or locale.getpreferredencoding(False)
    try:
        "▁█√±".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return UNICODE


# What others draw with: one ASCII character for each cell.
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
    from rich.cells import cell_len  # what needs no screen waits for no Rich

    width = cell_len(character)
    plain = _CELLS.get(character) or unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode(
        "ascii"
    )
    return plain if len(plain) == width else "?" * width


def ascii_cells(text: str) -> str:
    """ASCII for text that is painted as it is, cell for cell; escape sequences stay what they are."""
    return text if text.isascii() else "".join(map(_cell, text))
