"""What is asked of the recorder, as the command line, Python and the environment of a program say it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ENDING = ".safetensors"
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
    since: float = 0.0  # when the command began, in seconds of the clock
    messages: str = ""  # a file that has what processes of this run said

    def to_json(self) -> str:
        """Return the options as the value of the environment variable."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Return the options that the environment variable holds."""
        values: dict[str, Any] = json.loads(text)
        for key in ("tokens", "query_tokens"):
            values[key] = None if values.get(key) is None else tuple(values[key])
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


def files_of(options: Options, since: float = 0.0) -> list[Path]:
    """Return the files of all processes that were written under these options since a time, by name."""
    path = Path(options.path)
    name = re.compile(rf"{re.escape(path.stem)}(\.(process|rank)\d+)*{re.escape(path.suffix)}")
    folder, pattern = (path.parent, f"*{path.suffix}") if options.one_file else (path, f"**/*{ENDING}")
    found: list[Path] = []
    for file in folder.glob(pattern):
        with suppress(OSError):
            if (not options.one_file or name.fullmatch(file.name)) and file.stat().st_mtime >= since:
                found.append(file)
    return sorted(found)
