"""Writing files, atomically and with one-line errors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import InputError
from .recorder.files.whole import whole_file


class FileError(InputError):
    """A file that cannot be written; the message is one line."""


def check_file(path: Path, read: Sequence[Path] = ()) -> None:
    """Raise FileError if a path cannot be written or is one of the files `read`; call this before any work."""
    folder = Path(os.path.realpath(path)).parent
    try:
        if path.is_dir():
            raise FileError("{path}: is a directory, not a file", path=path)
        if any(path.exists() and path.samefile(other) for other in read):
            raise FileError("{path}: is the capture being read", path=path)
        if not folder.is_dir():
            raise FileError("{path}: no such directory: {folder}", path=path, folder=folder)
        place = path if path.exists() and not path.is_file() else folder
        if not os.access(place, os.W_OK):
            raise FileError("{path}: {place} is not writable", path=path, place=place)
    except OSError as error:
        raise FileError("{path}: {reason}", path=path, reason=error.strerror) from error


def write_text(text: str, path: Path, ascii_only: bool = False, replace: bool = True) -> None:
    """Write a result in UTF-8 or ASCII; raises FileError, or BrokenPipeError for a pipe without a reader."""
    write_texts([text], path, ascii_only, replace)


def write_texts(texts: Iterable[str], path: Path, ascii_only: bool = False, replace: bool = True) -> None:
    """Write the pieces of a result as they come, as `write_text` writes it."""
    encoding = "ascii" if ascii_only else "utf-8"
    _write((text.encode(encoding, "backslashreplace") for text in texts), path, replace)


def write_bytes(pieces: Iterable[bytes], path: Path) -> None:
    """Write the pieces of a result that is no text as they come; raise as `write_text` does."""
    _write(pieces, path, replace=True)


def _write(pieces: Iterable[bytes], path: Path, replace: bool) -> None:
    try:
        write_pieces(pieces, path, replace)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise FileError("{path}: cannot be written: {reason}", path=path, reason=error.strerror) from error


def write_file(data: bytes, path: Path, replace: bool = True, private: bool = False) -> None:
    """Write a file as `write_pieces` does."""
    write_pieces([data], path, replace, private)


def write_pieces(pieces: Iterable[bytes], path: Path, replace: bool = True, private: bool = False) -> None:
    """Write a temporary file, flush it to the disk and rename it; a device or a pipe is written to directly.

    A new file is readable by its owner only if `private`. Raise FileExistsError if the file exists and `replace` is
    false.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            file.writelines(pieces)
        return
    with whole_file(path, replace, private) as file:
        file.writelines(pieces)
