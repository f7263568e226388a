"""Text from outside: names and values in files, names of files, what a configuration says.

A terminal obeys control characters, and in a program a comment ends with its line. So every reader cleans what it
reads, and the type says so: a field of type `Plain` has text from outside that is safe to print.
"""

from __future__ import annotations

from typing import NewType

Plain = NewType("Plain", str)  # text on one line, of printable characters; only `plain` and `short` make one

_LONGEST = 120  # characters of a value in a message


def plain(text: object) -> Plain:
    """Return the text on one line; what is not printable is escaped: control characters, bidi marks, line ends."""
    line = str(text)
    return Plain(line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line))


def short(text: object, most: int = _LONGEST) -> Plain:
    """Return the text as `plain` does, cut to `most` characters."""
    line = plain(text)
    return line if len(line) <= most else Plain(line[: most - 1] + "…")


def quoted(text: object) -> str:
    """Return a name from a file, quoted and short enough for a message."""
    return f"'{short(text, 80)}'"
