"""What is known of tensors while a forward pass is recorded, by storage: views share it, and nothing is kept alive.

A note is found through the storage's address. The weak reference beside it keeps the address from being used again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..layers.geometry import Geometry
from ..layers.scores import Scores

View = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides and offset in a storage


@dataclass(frozen=True)
class Vectors:
    """Tensors that may become queries or keys."""

    factor: float | None = 1.0  # multiplied onto them; None if it is not one known number
    parts: tuple[tuple[View, float | None], ...] = ()  # views multiplied in place, with their factors
    width: int | None = None  # before the last dimension was padded with zeros
    parameter: bool = False
    normed: bool = False  # divided by their own lengths: the first vector multiplied onto them is the norm's gain
    times: torch.Tensor | None = None  # multiplied onto them, component by component
    amplitude: float | None = 1.0  # the factor inside `times`

    @property
    def known(self) -> float | None:
        """The factor; None if it is not one known positive number."""
        positive = self.factor is not None and self.factor > 0
        return self.factor if positive and (self.times is None or self.normed) else None


@dataclass(frozen=True)
class Weights:
    """Attention weights on their way to the values."""

    layer: Any  # the pending layer that they belong to
    geometry: Geometry
    sinks: int = 0
    raw: bool = False  # exponentials that are not yet divided by their sum
    logarithm: bool = False  # of the weights
    changed: tuple[str, ...] = ()  # operations between softmax and the values


Note = Any


@dataclass
class Notebook:
    """Notes on storages."""

    _entries: dict[int, tuple[StorageWeakRef, Note]] = field(default_factory=dict[int, Any])
    _heavy: list[int] = field(default_factory=list[int])

    def find(self, tensor: object) -> Note | None:
        """Return the note on the storage of a tensor; None for anything else."""
        if not isinstance(tensor, torch.Tensor) or not self._entries:
            return None
        try:
            entry = self._entries.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse and other tensors without storage
            return None
        return None if entry is None or entry[0].expired() else entry[1]

    def put(self, tensor: torch.Tensor, note: Note) -> None:
        """Write a note on the storage of a tensor."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            return
        key = storage._cdata
        if isinstance(note, (Scores, Weights)) or note.times is not None:  # these keep other tensors alive
            self._drop_expired(self._heavy)
            self._heavy = [*filter(self._entries.__contains__, self._heavy), key]
        elif len(self._entries) % 1024 == 1023:
            self._drop_expired(list(self._entries))
        self._entries[key] = (StorageWeakRef(storage), note)

    def drop(self, tensor: object) -> None:
        """Remove the note on the storage of a tensor."""
        if isinstance(tensor, torch.Tensor) and self.find(tensor) is not None:
            self._entries.pop(tensor.untyped_storage()._cdata, None)

    def clear(self) -> None:
        """Remove all notes."""
        self._entries.clear()
        self._heavy.clear()

    def _drop_expired(self, keys: Sequence[int]) -> None:
        for key in keys:
            entry = self._entries.get(key)
            if entry is not None and entry[0].expired():
                del self._entries[key]

    def vectors(self, tensor: object) -> Vectors:
        """Return what is known of possible queries or keys."""
        note = self.find(tensor)
        if isinstance(note, Scores):
            return Vectors(note.factor)
        if not isinstance(note, Vectors):
            return _PLAIN
        if note.parts and isinstance(tensor, torch.Tensor):
            return replace(note, factor=_factor_of_part(tensor, note), parts=())
        return note

    def factor(self, tensor: object) -> float | None:
        """Return the factor multiplied onto a tensor; None if it is not one known number."""
        return self.vectors(tensor).known


def view_of(tensor: torch.Tensor) -> View:
    """Return where in its storage a tensor is."""
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def elements(tensor: torch.Tensor) -> int:
    """Return how many elements the tensor's storage has room for."""
    return tensor.untyped_storage().nbytes() // max(1, tensor.element_size())


def _factor_of_part(tensor: torch.Tensor, note: Vectors) -> float | None:
    """Return the factor of a view of which parts may have been multiplied in place; None if not of all of it."""
    found = note.factor
    for view, factor in note.parts:
        changed = torch.zeros(elements(tensor), dtype=torch.bool)
        changed.as_strided(*view).fill_(True)
        inside = changed.as_strided(*view_of(tensor))
        if bool(inside.any()):
            found = factor if bool(inside.all()) or factor == found else None
    return found


_PLAIN = Vectors()
