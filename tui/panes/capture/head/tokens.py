"""The tokens of a text, as labels."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from ....views.glyphs import Glyphs


def token(tokens: Sequence[str] | None, place: int) -> str:
    """Return the token at a place in printable characters, or the place itself if there are no tokens."""
    if tokens is None or not 0 <= place < len(tokens):
        return str(place)
    text = tokens[place].replace("Ġ", " ").replace("▁", " ")  # of GPT-2 and SentencePiece: a space
    text = text.strip(" ") or text.replace(" ", "␣")
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def label(tokens: Sequence[str] | None, place: int, width: int, glyphs: Glyphs) -> str:
    """Return a token in exactly `width` cells."""
    text = token(tokens, place)
    text = glyphs.say(text) if glyphs.ascii else text  # a token is no message
    if cell_len(text) > width > 1:
        sign = "~" if glyphs.ascii else "…"
        return set_cell_size(text, width - 1) + sign
    return set_cell_size(text, width)


def named(tokens: Sequence[str] | None, place: int) -> str:
    """Return `12 "Japan"`, or the place alone if there are no tokens."""
    if tokens is None or not 0 <= place < len(tokens):
        return str(place)
    return f"{place} “{token(tokens, place)}”"
