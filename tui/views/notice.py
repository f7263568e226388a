"""Short messages at the bottom of the screen."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

from ...core.message import message
from .glyphs import Glyphs
from .lines import Line, line_width

# A word as in_shell writes it, quoted if necessary.
_WORD = re.compile(r"""(?:\$'(?:\\.|[^'])*'|'[^']*'|"[^"]*"|[^ ])+""")
GREETING = "New here? Enter opens a tour, ? explains, q quits. Esc hides this."
COPIED = "Copied:"
_COPIED = ("Copied (if your terminal permits OSC 52):", "Copied (if your terminal permits it):")


def copied_lines(command: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the message that the command is copied, with the whole command; on one line if it fits."""
    command = glyphs.say(command)
    forms = [glyphs.say(words) for words in _COPIED]
    said = next((words for words in forms if cell_len(words) + 2 <= width), forms[-1])
    line: Line = ((f" {said} ", "dim"), (command, "key"))
    if line_width(line) <= width:
        return [line]
    return [line[:1], *(((part, "key"),) for part in continued(command, width))]


def selected_line(text: str, width: int, glyphs: Glyphs) -> Line:
    """Return the message that the selected text is copied, with the text if it is a single line that fits."""
    count = len(text.splitlines())
    forms = [
        (f" {glyphs.say(words)} ", text if count == 1 else message("{count} lines", count=count))
        for words in (*_COPIED, COPIED)
    ]
    lines: list[Line] = [((words, "dim"), (glyphs.say(what), "key")) for words, what in forms]
    cut: Line = ((f" {glyphs.say(COPIED)} ", "dim"), (glyphs.say("{count} characters", count=len(text)), "key"))
    return next((line for line in lines if line_width(line) <= width), cut)


def continued(command: str, width: int) -> list[str]:
    """Split the command into lines that a shell reads as one, so that it can be copied from the screen.

    All but the last end with \\; only a quoted word longer than a line is split without it.
    """
    room = max(width - 2, 2)  # a wide character at least
    lines: list[str] = []
    line = ""
    for word in re.findall(_WORD, command):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= room:
            line = longer
            continue
        if line:
            lines.append(f"{line} \\")
        line = word
        while cell_len(line) > room:
            head = set_cell_size(line, room).rstrip() or line[:room]
            lines.append(head if "'" in word else f"{head}\\")
            line = line[len(head) :]
    return [*lines, line]
