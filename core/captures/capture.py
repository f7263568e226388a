"""The contents of a capture file as plain values; this module does not need NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Layer:
    """One layer's queries and keys, and their metadata."""

    position: int  # among the layers of the file, from 0
    index: int  # the layer's number in the model
    name: str
    heads: int
    kv_heads: int
    batch: int
    queries: int
    keys: int
    d_k: int
    dtype: str  # as stored
    scale: float | None  # the multiplier in the file's metadata
    causal: Literal["top_left", "bottom_right"] | None
    softcap: float | None
    mask: str | None  # the name of the mask's tensor

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The shape of the layer's scores: [batch, heads, queries, keys]."""
        return self.batch, self.heads, self.queries, self.keys


@dataclass(frozen=True)
class HeadSubject:
    """The head that a measurement is of."""

    layer: Layer
    head: int


@dataclass(frozen=True)
class Capture:
    """The contents of a file, from its headers alone."""

    path: Path
    model: str | None
    source: str | None
    licence: str | None
    text: tuple[str, ...] | None  # of each batch element, or one for all
    text_licence: str | None
    tokens: tuple[tuple[str, ...], ...] | None  # of each batch element, one per key
    lengths: tuple[int, ...] | None  # tokens of each batch element that are not padding
    layers: tuple[Layer, ...]  # in order of index
    notes: tuple[str, ...]  # everything that was assumed
    files: tuple[Path, ...]  # all files read
