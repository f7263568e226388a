"""Messages of the operating system: why a file cannot be read or written, as Linux and macOS say it."""

from __future__ import annotations

from collections.abc import Iterator

from message import Message, messages

_REASONS = (
    "Disk quota exceeded",
    "File exists",
    "File name too long",
    "File too large",
    "Input/output error",
    "Is a directory",
    "No space left on device",
    "No such file or directory",
    "Not a directory",
    "Operation not permitted",
    "Permission denied",
    "Read-only file system",
    "Too many levels of symbolic links",
)


def from_system() -> Iterator[Message]:
    """Yield the usual reasons."""
    yield from messages("core/files.py", (("reason of the operating system", text) for text in _REASONS))
