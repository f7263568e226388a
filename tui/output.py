"""Where plain output goes: results to stdout or into a file, messages to stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
from pathlib import Path

from ..core.errors import InputError
from .views.glyphs import ASCII, UNICODE, Glyphs, glyphs_for


class OutputError(InputError):
    """A result that cannot be written; the message is one line: what and where."""


def screen_glyphs(ascii_only: bool) -> Glyphs:
    """The characters for stdout: ASCII if asked for, or where the locale shows no more."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # it is, where it was closed
        return ASCII if ascii_only else UNICODE
    return glyphs_for(ascii_only or _is_c_locale())


def _is_c_locale() -> bool:
    """Whether somebody named the C locale, which has ASCII alone.

    Python then writes UTF-8 all the same, and names C.UTF-8 as the LC_CTYPE of a process whose LANG is C. With no
    locale named at all, as in containers, terminals mostly do show UTF-8.
    """
    names = [os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if names[1].upper() in ("C.UTF-8", "C.UTF8", "UTF-8") and names[2] in ("C", "POSIX"):
        names[1] = ""
    return next((name for name in names if name), "") in ("C", "POSIX")


def is_terminal() -> bool:
    """Whether a person reads stdout on a terminal that can be painted on."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
    return on_terminal and os.environ.get("TERM", "") not in ("dumb", "unknown")


def screen_width() -> int:
    """Cells in a line of the terminal, 80 if that is not known."""
    return shutil.get_terminal_size((80, 24)).columns


def say(message: str, glyphs: Glyphs = UNICODE) -> None:
    """One line for people; whatever a terminal would obey is spelled out."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"attn-tui: {glyphs.say(line)}\n")
        sys.stderr.flush()


def check_target(path: Path | None, read: tuple[Path, ...] = ()) -> None:
    """Raise OutputError for what cannot be written, before work is put into it; files just read are not replaced."""
    if path is None:
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise OutputError("stdout is closed; -o FILE writes to a file")
        return
    folder = Path(os.path.realpath(path)).parent
    try:
        if path.is_dir():
            raise OutputError(f"{path}: is a directory, where the name of a file is needed")
        if any(path.exists() and path.samefile(other) for other in read):
            raise OutputError(f"{path}: is the capture itself, which is never written over")
        if not folder.is_dir():
            raise OutputError(f"{path}: there is no directory {folder}")
        place = path if path.exists() and not path.is_file() else folder
        if not os.access(place, os.W_OK):
            raise OutputError(f"{path}: {place} is not writable")
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from error


def write(text: str, path: Path | None, ascii_only: bool = False, replace: bool = True) -> None:
    """The result, as far as its characters can be written; raises OutputError, or BrokenPipeError for a reader gone.

    A file appears whole or not at all; one that exists is replaced only with `replace`.
    """
    if path is None:
        encoding = "ascii" if ascii_only else sys.stdout.encoding or "utf-8"
        shown = text.encode(encoding, "backslashreplace").decode(encoding)
        try:
            sys.stdout.write(shown)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            drop_stdout()
            raise OutputError(f"stdout: {error.strerror}") from error
        return
    data = text.encode("ascii" if ascii_only else "utf-8", "backslashreplace")
    try:
        write_file(data, path, replace)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def write_file(data: bytes, path: Path, replace: bool = True) -> None:
    """Into a file beside it, which then takes its name; a device or a pipe is written to as it is.

    With `replace` false, raises FileExistsError for a file that exists.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(data)
        return
    beside = target.with_name(f".attn-tui-{os.getpid()}.tmp")
    with contextlib.ExitStack() as undo:
        undo.callback(beside.unlink, missing_ok=True)
        with open(beside, "xb") as file:
            file.write(data)
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        if not replace:
            target.open("xb").close()  # fails if somebody else has taken this name meanwhile
            undo.callback(target.unlink, missing_ok=True)
        os.replace(beside, target)
        undo.pop_all()  # what is there now is to stay


def drop_stdout() -> None:
    """Send what is left in stdout's buffer nowhere, so that Python does not fail on it once more when it ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
