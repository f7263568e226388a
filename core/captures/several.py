"""Open several files of captured queries and keys, each a capture of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..plain import plain
from .capture import Layer, Meaning
from .files import CaptureError
from .head import CaptureFile
from .reader import open_capture


def open_captures(
    paths: Sequence[Path], axes: str | None = None, mask_true: Meaning | None = None
) -> list[CaptureFile]:
    """Return the contents of files or folders in order; if there are several, layers are named after their file.

    Raise CaptureError, one line, if one cannot be read or is given twice.
    """
    captures: list[CaptureFile] = []
    for number, path in enumerate(paths):
        captures.append(open_capture(path, axes, mask_true))
        if any(os.path.samefile(path, other) for other in paths[:number]):
            raise CaptureError("{path}: is given twice", path=plain(path))
    if len(captures) == 1:
        return captures
    names = [path.name for path in paths]
    labels = names if len({*names}) == len(names) else [*map(str, paths)]
    return [_named(capture, plain(label)) for capture, label in zip(captures, labels, strict=True)]


def _named(capture: CaptureFile, label: str) -> CaptureFile:
    """Return the capture with layers that say which file they are of, inside a folder too."""

    def named(layer: Layer) -> Layer:
        return replace(layer, file=f"{label}/{layer.file}" if layer.file else label)

    stored = tuple(replace(each, layer=named(each.layer)) for each in capture.stored)
    return replace(capture, layers=tuple(each.layer for each in stored), stored=stored)
