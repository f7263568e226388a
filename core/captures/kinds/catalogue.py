"""KINDS: the file formats of captures. To add one, add a module with `contents` here, and a row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...message import message
from ...plain import plain
from ..files import PICKLED, CaptureError, Identity, opened

if TYPE_CHECKING:
    from ..stored import Contents


@dataclass(frozen=True)
class Kind:
    """One file format: its extension, a test of the first bytes, and the module that reads it."""

    ending: str
    begins: Callable[[bytes], bool]
    module: str

    def contents(self, stream: BinaryIO, path: Path, identity: Identity) -> Contents:
        """Return what the open file declares, reading headers and metadata only."""
        found: Contents = import_module(f".{self.module}", __package__).contents(stream, path, identity)
        return found


KINDS: tuple[Kind, ...] = (
    Kind(".safetensors", lambda start: start[8:9] == b"{", "safetensors"),
    Kind(".npz", lambda start: start.startswith((b"PK\x03\x04", b"PK\x05\x06")), "npz"),
    Kind(".npy", lambda start: start.startswith(b"\x93NUMPY"), "npy"),
    Kind(".safetensors.index.json", lambda start: start.lstrip().startswith(b"{"), "sharded"),
)
ENDINGS = message("{endings} or {last}", endings=", ".join(kind.ending for kind in KINDS[:-1]), last=KINDS[-1].ending)
_START = 16  # bytes that identify a format


def contents(path: Path) -> Contents:
    """Return what a file declares; its format is recognised by its first bytes, else by its extension."""
    with opened(path) as (stream, identity):
        start = stream.read(_START)
        for kind in KINDS:
            if kind.begins(start):
                return kind.contents(stream, path, identity)
        for kind in KINDS:
            if start and path.suffix.lower() == kind.ending:
                return kind.contents(stream, path, identity)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):  # as torch.save wrote once
        raise CaptureError("{path}: {fault}", path=plain(path), fault=PICKLED)
    fault = "not a file of tensors" if start else "the file is empty"
    raise CaptureError("{path}: {fault}; must be a {endings} file", path=plain(path), fault=fault, endings=ENDINGS)
