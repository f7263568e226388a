"""What is known of tensors while a forward pass is recorded, by storage: views share it, and nothing is kept alive.

A note is found through the storage's address; the weak reference beside it says whether that storage is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import ref

import torch

from ..layers.geometry import Geometry
from ..layers.placement import Placement
from ..layers.scores import ScoreFactors, Scores

View = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides and offset in a storage


@dataclass(frozen=True)
class VectorNote:
    """Tensors that may become queries or keys."""

    factor: float | None = 1.0  # multiplied onto them; None if it is not one known number
    parts: tuple[tuple[View, float | None], ...] = ()  # views multiplied in place, with their factors
    width: int | None = None  # before the last dimension was padded with zeros
    parameter: bool = False
    normed: bool = False  # divided by their own lengths: the first vector multiplied onto them is the norm's gain
    times: torch.Tensor | None = None  # multiplied onto them, component by component
    amplitude: float | None = 1.0  # the factor inside `times`
    # What each row was multiplied by beside the factor, for each element: in the tensor's shape, or as it is stored.
    by_row: torch.Tensor | None = None

    @property
    def known(self) -> float | None:
        """The factor; None if it is not one known positive number."""
        return None if self.by_row is not None else self.beside_rows

    @property
    def beside_rows(self) -> float | None:
        """The factor beside those of rows; None if it is not one known positive number."""
        positive = self.factor is not None and self.factor > 0
        return self.factor if positive and (self.times is None or self.normed) else None


@dataclass(frozen=True)
class DropoutNote:
    """Random zeros and ones, or multiples of them, that dropout multiplies by."""

    dropout: float  # the share of zeros


@dataclass(frozen=True)
class WeightNote:
    """Attention weights on their way to the values."""

    layer: Any  # the pending layer that they belong to
    geometry: Geometry
    sinks: int = 0
    raw: bool = False  # exponentials that are not yet divided by their sum
    logarithm: bool = False  # of the weights
    dropout: float = 0.0
    mixed: bool = False  # whether weights that are not of queries and keys were added
    changed: tuple[str, ...] = ()  # other operations between softmax and the values
    index: torch.Tensor | None = None  # the canonical numbers of the storage's elements, if rearranged

    def with_all_of(self, other: WeightNote) -> WeightNote:
        """Return these weights with everything that was done to others of the same layer."""
        return replace(
            self,
            raw=self.raw or other.raw,
            logarithm=self.logarithm or other.logarithm,
            dropout=max(self.dropout, other.dropout),
            mixed=self.mixed or other.mixed,
            changed=tuple(dict.fromkeys((*self.changed, *other.changed))),
        )


@dataclass(frozen=True)
class Summand:
    """Outputs of weights that have met the values of some keys: the sum of those of all keys is the output."""

    layer: Any  # the pending layer
    place: Placement
    keys: torch.Tensor  # bool [keys]
    width: int  # d_v


@dataclass(frozen=True)
class Products:
    """Weights times values, element by element: their sum over the keys is the output."""

    note: WeightNote
    weights: torch.Tensor  # [..., rows, keys]
    values: torch.Tensor  # [..., rows, keys, d_v]


Note = Any


@dataclass
class Notebook:
    """Notes on storages."""

    _entries: dict[int, tuple[ref[torch.UntypedStorage], Note]] = field(default_factory=dict[int, Any])
    _heavy: list[int] = field(default_factory=list[int])

    def find(self, tensor: object) -> Note | None:
        """Return the note on the storage of a tensor; None for anything else."""
        if not isinstance(tensor, torch.Tensor) or not self._entries:
            return None
        try:
            entry = self._entries.get(tensor.untyped_storage()._cdata)
        except (RuntimeError, NotImplementedError):  # sparse and other tensors without storage
            return None
        return None if entry is None or entry[0]() is None else entry[1]

    def put(self, tensor: torch.Tensor, note: Note) -> None:
        """Write a note on the storage of a tensor."""
        try:
            storage = tensor.untyped_storage()
        except (RuntimeError, NotImplementedError):
            return
        key = storage._cdata
        if isinstance(note, VectorNote) and note.by_row is not None:
            note = _stored(tensor, note, note.by_row)
        tensors = note.times is not None or note.by_row is not None if isinstance(note, VectorNote) else False
        if tensors or isinstance(note, (Scores, WeightNote, Summand, Products)):  # these keep other tensors alive
            self._drop_expired(self._heavy)
            self._heavy = [*filter(self._entries.__contains__, self._heavy), key]
        elif len(self._entries) % 1024 == 1023:
            self._drop_expired(list(self._entries))
        self._entries[key] = (ref(storage), note)

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
            if entry is not None and entry[0]() is None:
                del self._entries[key]

    def vectors(self, tensor: object) -> VectorNote:
        """Return what is known of possible queries or keys."""
        note = self.find(tensor)
        if isinstance(note, Scores):
            return VectorNote(note.factor)
        if not isinstance(note, VectorNote):
            return _PLAIN
        if note.by_row is not None and isinstance(tensor, torch.Tensor):
            if elements(tensor) != note.by_row.numel():  # a view of other elements, as of complex numbers
                return VectorNote(None, width=note.width)
            return replace(note, by_row=note.by_row.as_strided(*view_of(tensor)))
        if note.parts and isinstance(tensor, torch.Tensor):
            return replace(note, factor=_factor_of_part(tensor, note), parts=())
        return note

    def factor(self, tensor: object) -> float | None:
        """Return the factor multiplied onto a tensor; None if it is not one known number."""
        return self.vectors(tensor).known


def factors_of(notes: Notebook, q: torch.Tensor, k: torch.Tensor) -> ScoreFactors:
    """Return the factors inside queries and keys of one shape, with those of rows in the queries."""
    note = notes.vectors(q)
    return ScoreFactors(note.beside_rows, notes.factor(k), None if note.by_row is None else note.by_row[..., :1])


def view_of(tensor: torch.Tensor) -> View:
    """Return where in its storage a tensor is."""
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _stored(tensor: torch.Tensor, note: VectorNote, by_row: torch.Tensor) -> VectorNote:
    """Return a note whose factors of rows are where the tensor's elements are in its storage."""
    if by_row.numel() != tensor.numel() or tensor.numel() < elements(tensor):
        return VectorNote(None, width=note.width)  # broadcast, or other elements have other factors
    stored = torch.empty(elements(tensor), dtype=torch.float32, device=tensor.device)
    stored.as_strided(*view_of(tensor)).copy_(by_row.reshape(tensor.shape))
    return replace(note, by_row=stored)


def elements(tensor: torch.Tensor) -> int:
    """Return how many elements the tensor's storage has room for."""
    return tensor.untyped_storage().nbytes() // max(1, tensor.element_size())


def _factor_of_part(tensor: torch.Tensor, note: VectorNote) -> float | None:
    """Return the factor of a view of which parts may have been multiplied in place; None if not of all of it."""
    found = note.factor
    for view, factor in note.parts:
        changed = torch.zeros(elements(tensor), dtype=torch.bool)
        changed.as_strided(*view).fill_(True)
        inside = changed.as_strided(*view_of(tensor))
        if bool(inside.any()):
            found = factor if bool(inside.all()) or factor == found else None
    return found


_PLAIN = VectorNote()
