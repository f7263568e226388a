"""What is asked of the recorder, as the command line, Python and the environment of a program say it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .files.whole import may_replace

ENDING = ".safetensors"
_MOST_EARLIER = 100  # files with a wrong date: an environment variable is not long
VARIABLE = "ATTN_TUI_RECORD"  # of the environment: the options of a program that is being recorded


@dataclass(frozen=True)
class Options:
    """Where the recording goes, and how much is kept."""

    path: str  # a .safetensors file, or a folder of steps
    layers: str | None = None  # numbers and ranges such as 0,4,8-11, or a regular expression for names
    rows: int = 256  # queries kept of each layer
    batch: int = 2  # texts kept
    every: int | None = None  # steps from one file to the next; None: one file
    max_steps: int | None = None  # files at most
    values: bool = False
    max_bytes: int = 256 << 20  # of a file
    ranks: str = "0"  # of a distributed run: "0" or "all"
    keep: int | None = None  # the newest files that stay in the folder
    tokens: tuple[str, ...] | None = None
    expect: str | None = None  # the multiplier that is intended, which the file then says
    query_tokens: tuple[str, ...] | None = None  # of cross-attention, whose queries are of another text
    version: str = ""  # of attn-tui
    process: int = 0  # that the command became
    since: float = 0.0  # when the recording began, in seconds of the clock
    earlier: tuple[tuple[str, int, int], ...] = ()  # files dated later that were there before, as `_mark` has them
    reports: tuple[str, str] | None = None  # where processes report to the witness: a path, and what it links to
    overwrite: bool = False  # replace files that are not recordings

    def to_json(self) -> str:
        """Return the options as the value of the environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Return the options that the environment variable holds."""
        values: dict[str, Any] = json.loads(text)
        for key in ("tokens", "query_tokens", "reports"):
            values[key] = None if values.get(key) is None else tuple(values[key])
        values["earlier"] = tuple((path, inode, when) for path, inode, when in values["earlier"])
        return cls(**values)

    @property
    def one_file(self) -> bool:
        """Whether there is one file instead of a folder of steps."""
        return self.every is None


_NUMBERS = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")


def wanted_layer(layers: str | None, number: int, name: str) -> bool:
    """Return whether a layer is asked for, by number or by name; raise re.error for an invalid expression."""
    if layers is None:
        return True
    if _NUMBERS.fullmatch(layers):
        spans = (part.partition("-") for part in layers.split(","))
        return any(int(first) <= number <= int(last or first) for first, _, last in spans)
    return re.search(layers, name) is not None


def problem(options: Options) -> tuple[str, str] | None:
    """Return the option that is not valid, and what it must be; None if all are."""
    for name, least in (("rows", 1), ("batch", 1), ("every", 1), ("max_steps", 1), ("keep", 1), ("max_bytes", 1)):
        value = getattr(options, name)
        if value is not None and value < least:
            return name, f"must be at least {least}, not {value}"
    if options.ranks not in ("0", "all"):
        return "ranks", f"must be 0 or all, not {options.ranks!r}"
    try:
        wanted_layer(options.layers, 0, "")
    except re.error as error:
        return "layers", f"must be numbers such as 0,4,8-11 or a regular expression, not {options.layers!r} ({error})"
    file = options.path.endswith(ENDING)
    if options.every is None and not file:
        return "path", f"must end with {ENDING}, or be a folder together with every"
    if options.every is not None and file:
        return "path", "must be a folder if there is a file for each step"
    return None


def size_in_bytes(text: str) -> int:
    """Return the bytes of 256M, 1.5G, 300k or 1000000; raise ValueError for anything else."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)([kKMGT]?)(?:i?B)?", text.strip())
    if match is None:
        raise ValueError(f"not a size: {text!r}")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def files_of(options: Options) -> list[Path]:
    """Return the files that there are under the names of a recording: of all processes and ranks, or steps."""
    path = Path(options.path)
    if not options.one_file:
        return sorted([*path.glob(f"step-*{ENDING}"), *path.glob(f"rank*/step-*{ENDING}")])
    name = re.compile(rf"{re.escape(path.stem)}(\.(process|rank)\d+(-\d+)?)*{re.escape(path.suffix)}")
    return sorted(file for file in path.parent.glob(f"*{path.suffix}") if name.fullmatch(file.name))


def foreign_file(options: Options) -> Path | None:
    """Return the first file that a recording would replace and may not; None if there is none."""
    path = Path(options.path)
    ranks = [file for file in files_of(options) if re.search(r"[./]rank\d+[./]", str(file)[len(str(path.parent)) :])]
    files = [path] if options.one_file else [file for file in files_of(options) if file not in ranks]
    files += ranks if options.ranks == "all" else []
    return next((file for file in files if not may_replace(file, options.overwrite)), None)


def with_earlier_files(options: Options) -> Options:
    """Return the options of a recording that begins now, with the files there that are dated later."""
    since = time.time()
    earlier = [(str(file), *_mark(file)) for file in files_of(options) if _mark(file)[1] >= since * 1e9]
    return replace(options, since=since, earlier=tuple(earlier[:_MOST_EARLIER]))


def is_of_run(file: Path, options: Options) -> bool:
    """Return whether a file was written since a recording began."""
    inode, when = _mark(file)
    return when >= options.since * 1e9 and (str(file), inode, when) not in options.earlier


def recorded_files(options: Options) -> list[Path]:
    """Return the recordings of all processes of a run."""
    files = [file for file in files_of(options) if is_of_run(file, options)]
    return [file for file in files if file.stat().st_size and may_replace(file)]


def earlier_file(options: Options) -> Path | None:
    """Return the one file of a recording if an earlier one has left it; None for a folder of steps."""
    path = Path(options.path)
    return path if options.one_file and path.exists() and not is_of_run(path, options) else None


def _mark(file: Path) -> tuple[int, int]:
    """Return the number of a file and when it was written, in nanoseconds of the clock; 0 if it is gone."""
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
