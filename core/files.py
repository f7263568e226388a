"""Reading regular files without waiting, and writing them atomically, over nothing that attn-tui did not write."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from . import VERSION
from .errors import InputError
from .message import plain, short
from .recorder.files.whole import is_recording, whole_file
from .texts import LARGEST

MARK = f"Written by attn-tui {VERSION}"  # in results whose beginning does not tell
# How JSON, JSON Lines and CSV of results begin: recordings and runs that are watched have other schemas.
_BEGINNING = re.compile(
    rb'\{\s*"schema": "attn-tui/(check|claims|compare|cost|diagnosis|inspect|learn|mechanisms|replay|report|rules'
    rb'|softmax|sweep|training|watched)-\d+"'
    rb"|model,(d_k,)?n_keys,n_queries,batch,(d_v|mask),"
    rb"|file,layer,layer_name,head,(d_k,scale,multiplier|verdict,cause|rule,message|rule,multiplier)"
    rb"|layer,layer_name,head,test_layer,test_head,|temperature,shift,precision,d_k,scale,multiplier,"
    rb"|preset,d_model,heads,kv_heads,d_k,|d_k,rule,multiplier,loss,|step,layer,head,(largest|max)_logit,over,"
    rb"|claim,verdict,figure,claimed,measured,"
)
# The last line of a text says how many bytes are before it: what somebody adds to a result is theirs.
_LAST_LINE = re.compile(rb"^(?:# |<!-- )?Written by attn-tui [\w.+-]+ after (\d+) bytes\.(?: -->)?\n\Z", re.MULTILINE)
_BINARY = (b"PAR1", b"\x89PNG", b"%PDF", b"%!PS")
_END = 200  # bytes that hold the mark
_LARGEST_METADATA = 1 << 24


class FileError(InputError):
    """A file that cannot be read or written; the message is one line."""


@contextmanager
def open_file(path: Path) -> Generator[BinaryIO, None, None]:
    """Open a regular file for reading; to open a FIFO would wait until someone writes to it.

    Raise FileNotFoundError if there is no file, and FileError if it is not a regular one or cannot be read.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # the latter for a null character in the path
        raise _unreadable(path, error) from error
    _require_regular(path, mode)
    try:
        with open(path, "rb", opener=_open_without_waiting) as stream:
            _require_regular(path, os.fstat(stream.fileno()).st_mode)
            yield stream
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, error) from error


def _open_without_waiting(path: str, flags: int) -> int:
    """Open without blocking, in case a FIFO has replaced the file."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_regular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise FileError("{path}: is a directory, not a file", path=plain(path))
    if not stat.S_ISREG(mode):
        raise FileError("{path}: is not a regular file", path=plain(path))


def _unreadable(path: Path, error: OSError | ValueError) -> FileError:
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    return FileError("{path}: cannot be read: {reason}", path=plain(path), reason=short(reason))


def read_file(path: Path) -> bytes:
    """Return the bytes of a file that is a text; raise FileNotFoundError, or FileError as `open_file` does."""
    with open_file(path) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise FileError("{path}: must have at most {largest} bytes", path=plain(path), largest=LARGEST)
    return data


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


def check_replaceable(path: Path, *, recording: bool = False, remedy: str = "--overwrite") -> None:
    """Raise FileError if a path is a file that has contents and is not a result, or not a recording.

    What is no regular file, such as a device, is written to, not replaced.
    """
    try:
        is_ours = not path.is_file() or not path.stat().st_size or (is_recording if recording else _is_result)(path)
    except OSError as error:
        raise FileError("{path}: {reason}", path=path, reason=error.strerror) from error
    if not is_ours:
        if recording:
            raise FileError(
                "{path}: exists and is not a recording; use another name, or {remedy}", path=path, remedy=remedy
            )
        raise FileError(
            "{path}: exists and is not a result of attn-tui; use another name, or {remedy}", path=path, remedy=remedy
        )


def _is_result(path: Path) -> bool:
    """Return whether a file is a result of attn-tui."""
    with path.open("rb") as file:
        start = file.read(_END)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _END))
        end = file.read()
        if start.startswith(b"PAR1"):  # Parquet says at its end how long its metadata are
            file.seek(max(0, size - 8 - int.from_bytes(end[-8:-4], "little")))
            end = file.read(_LARGEST_METADATA)
    if start.startswith(_BINARY):
        return b"Written by attn-tui " in end
    last = _LAST_LINE.search(end)
    before = None if last is None else size - len(end) + last.start()
    return _BEGINNING.match(start) is not None or (last is not None and int(last[1]) == before)


def write_text(text: str, path: Path, ascii_only: bool = False, replace: bool = True) -> None:
    """Write a result in UTF-8 or ASCII; raises FileError, or BrokenPipeError for a pipe without a reader."""
    write_texts([text], path, ascii_only, replace)


def write_texts(
    texts: Iterable[str], path: Path, ascii_only: bool = False, replace: bool = True, last_line: str = ""
) -> None:
    """Write the pieces of a result as they come, as `write_text` writes it; `{mark}` in the last line is the mark."""
    encoding = "ascii" if ascii_only else "utf-8"
    pieces = (text.encode(encoding, "backslashreplace") for text in texts)
    _write(_marked(pieces, last_line) if last_line and not _is_device(path) else pieces, path, replace)


def _marked(pieces: Iterable[bytes], last_line: str) -> Iterable[bytes]:
    count = len(last_line) - len(last_line.lstrip())  # of an empty line before it
    for piece in pieces:
        count += len(piece)
        yield piece
    yield last_line.format(mark=f"{MARK} after {count} bytes.").encode()


def _is_device(path: Path) -> bool:
    """Return whether a path is a device or a pipe, which cannot be replaced; /dev/stdout may be one."""
    return path.exists() and not path.is_file()


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
    if _is_device(path):
        with path.open("wb") as file:
            file.writelines(pieces)
        return
    with whole_file(path, replace, private) as file:
        file.writelines(pieces)
