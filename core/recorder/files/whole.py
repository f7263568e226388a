"""Write a file as a whole, and only over one's own, with nothing but the standard library.

A file has its name only once it is complete.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

# In the header of a recording, the version of attn-tui that wrote it. Quotes of texts are escaped there.
_OURS = re.compile(rb'"versions": ?"\{[^{}]*\\"attn-tui\\":')
_LARGEST_HEADER = 100 << 20  # bytes; that of safetensors


def may_replace(path: Path, overwrite: bool = False) -> bool:
    """Return whether a recording may take the place of what has this name: nothing, an empty file or a recording.

    With `overwrite`, it may take that of any regular file. A file that cannot be read may be anything.
    """
    try:
        status = path.stat()
        return stat.S_ISREG(status.st_mode) and (overwrite or not status.st_size or is_recording(path))
    except FileNotFoundError:
        return True
    except OSError:
        return False


def is_recording(path: Path) -> bool:
    """Return whether attn-tui wrote a regular file as a capture; raise OSError if it cannot be read."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        return length <= _LARGEST_HEADER and _OURS.search(file.read(length)) is not None


@contextlib.contextmanager
def whole_file(path: Path, replace: bool = True, private: bool = False) -> Generator[BinaryIO, None, None]:
    """Open a temporary file of a random name, flush it to the disk and rename it; without success, remove it.

    The name cannot be foreseen, so no link waits under it. A file that is replaced keeps its permissions and, if
    possible, its owner; a new one is readable by its owner only if `private`. Raise FileExistsError if there is one
    and `replace` is false.
    """
    target = Path(os.path.realpath(path))
    try:
        before = target.stat()
    except FileNotFoundError:
        before = None
    temporary = target.with_name(f".attn-tui-{os.urandom(8).hex()}.tmp")
    access = 0o666 if before is None and not private else 0o600
    with contextlib.ExitStack() as undo:
        try:  # without a name until it is complete, so that nothing is left behind, whatever ends the process
            os.stat("/proc/self/fd")  # by which it will be named
            descriptor = os.open(target.parent, os.O_WRONLY | os.O_TMPFILE, access)
        except (AttributeError, OSError):  # the system, or the file system, has none
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)  # which Windows needs
            descriptor = os.open(temporary, flags, access)
            undo.callback(temporary.unlink, missing_ok=True)
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            if before is not None and hasattr(os, "fchmod"):  # not on Windows
                with contextlib.suppress(PermissionError):
                    os.fchown(descriptor, before.st_uid, before.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
            os.fsync(descriptor)
            if not os.fstat(descriptor).st_nlink:
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor)  # follows the link only so
                undo.callback(temporary.unlink, missing_ok=True)
        if not replace:
            target.open("xb").close()  # fails if the file was created meanwhile
            undo.callback(target.unlink, missing_ok=True)
        os.replace(temporary, target)
        undo.pop_all()  # success: keep the file
    _flush_folder(target.parent)


def _flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if its file system and its permissions allow it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
