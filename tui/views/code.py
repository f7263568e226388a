"""Programs as lines: comments are dim, and long lines go on below, further to the right."""

from __future__ import annotations

import textwrap

from .glyphs import Glyphs
from .lines import Line, Role

_DEEPER = 4  # cells by which the rest of a long line is indented further


def code_lines(code: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a program as lines of at most `width` cells."""
    lines: list[Line] = []
    for text in glyphs.say(code.rstrip("\n")).split("\n"):
        body = text.lstrip(" ")
        role: Role = "dim" if body.startswith("#") else "text"
        deeper = " " * min(len(text) - len(body) + _DEEPER, width // 2)
        parts = [text]
        if len(text) > width:
            parts = textwrap.wrap(text, max(width, 8), subsequent_indent=deeper, break_on_hyphens=False)
        lines.extend(((part, role),) for part in parts)
    return lines
