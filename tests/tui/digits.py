"""The number in large digits on a screen."""

from collections.abc import Sequence

from attn_tui.tui.views.glyphs import ASCII, UNICODE
from attn_tui.tui.views.page import large


def shows_number(lines: Sequence[str], number: object) -> bool:
    """Return whether lines of a screen show this number in large digits."""
    forms = [large(f"{number}", tall, glyphs) for tall in (False, True) for glyphs in (UNICODE, ASCII)]
    return any(_has(lines[row:], digits) for digits in forms for row in range(len(lines) - len(digits) + 1))


def _has(lines: Sequence[str], digits: Sequence[str]) -> bool:
    """Return whether the first of these lines begin with the digits, at any column, and no others beside them."""
    wide = [f"  {line} " for line in digits]
    starts = [at for at in range(len(lines[-1])) if lines[len(digits) - 1].startswith(wide[-1], at)]
    return any(all(line.startswith(row, at) for line, row in zip(lines, wide, strict=False)) for at in starts)
