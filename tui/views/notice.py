"""What is said for a moment at the foot of the screen."""

from __future__ import annotations

import re

from rich.cells import cell_len, set_cell_size

from .glyphs import Glyphs
from .lines import Line, line_width

# A word as in_shell writes it: quoted where it has to be.
_WORD = re.compile(r"""(?:\$'(?:\\.|[^'])*'|'[^']*'|"[^"]*"|[^ ])+""")
GREETING = (
    "New here? Hold → and watch: d_k climbs, unscaled softmax freezes, scaled it stands still. > turns to the next "
    "pane, ? explains what has the focus. Any key goes on; Esc, and this is never said again."
)
_COPIED = "Copied, if the terminal allows it:"


def copied_lines(command: str, width: int, glyphs: Glyphs) -> list[Line]:
    """The command, whole, and what has become of it: on one line if there is room."""
    command = glyphs.say(command)
    line: Line = ((f" {_COPIED} ", "dim"), (command, "key"))
    if line_width(line) <= width:
        return [line]
    return [line[:1], *(((part, "key"),) for part in continued(command, width))]


def continued(command: str, width: int) -> list[str]:
    """The command over lines that a shell reads as one, with \\ where one ends: they can be taken from the screen.

    Only a quoted word that is longer than a line is broken without.
    """
    room = width - 2
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
            head = set_cell_size(line, room).rstrip()
            lines.append(head if "'" in word else f"{head}\\")
            line = line[len(head) :]
    return [*lines, line]
