"""Where the matrices of a view of attention weights are among all weights: which queries, and which keys."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch

from .geometry import Geometry

LARGEST = 1 << 24  # elements that are numbered one by one: 128 MiB


@dataclass(frozen=True)
class Placement:
    """The canonical rows and keys of each matrix of a view; -1 where there is none, as in padding."""

    rows: torch.Tensor  # [matrices, rows]
    keys: torch.Tensor  # [matrices or 1, columns]


def placement(view: torch.Tensor, geometry: Geometry, index: torch.Tensor | None) -> Placement | None:
    """Return the placement of a view [..., rows, keys]; None if its columns are not the same keys in all rows.

    `index` numbers the elements of the view's storage, where they are not in the order of the geometry.
    """
    if view.dim() < 2 or view.numel() == 0:
        return None
    return _of_strides(view, geometry) if index is None else _of_index(_seen(view, index), geometry.keys)


def numbers(view: torch.Tensor, geometry: Geometry, index: torch.Tensor | None) -> torch.Tensor | None:
    """Return the canonical number of each element of a view, -1 for padding; None if it has none or is too large."""
    if view.numel() > LARGEST:
        return None
    return _coordinates(_offsets(view), geometry) if index is None else _seen(view, index)


def indexed(out: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Return the numbers of a tensor's elements in the order of its storage."""
    index = torch.full((out.untyped_storage().nbytes() // max(1, out.element_size()),), -1, dtype=torch.int64)
    index.as_strided(out.shape, out.stride(), out.storage_offset()).copy_(found)
    return index


def _seen(view: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return index.as_strided(view.shape, view.stride(), view.storage_offset())


def _offsets(view: torch.Tensor) -> torch.Tensor:
    """Return the place in its storage of each element of a view."""
    found = torch.full((1,) * view.dim(), view.storage_offset(), dtype=torch.int64)
    for axis, (size, stride) in enumerate(zip(view.shape, view.stride(), strict=True)):
        shape = [1] * view.dim()
        shape[axis] = size
        found = found + (torch.arange(size) * stride).reshape(shape)
    return found


def _coordinates(offsets: torch.Tensor, geometry: Geometry) -> torch.Tensor | None:
    """Return the canonical numbers of elements at these places; None if one is not an element."""
    rest, found = offsets - geometry.offset, torch.zeros_like(offsets)
    steps = [prod(geometry.sizes[axis + 1 :]) for axis in range(len(geometry.sizes))]
    axes = [axis for axis, size in enumerate(geometry.sizes) if size > 1]
    for axis in sorted(axes, key=lambda axis: -geometry.strides[axis]):
        stride, size = geometry.strides[axis], geometry.sizes[axis]
        if stride <= 0:
            return None
        place = rest.div(stride, rounding_mode="floor").clamp(max=size - 1)
        rest, found = rest - place * stride, found + place * steps[axis]
        if bool((place < 0).any()):
            return None
    return None if bool(rest.any()) else found


def _of_strides(view: torch.Tensor, geometry: Geometry) -> Placement | None:
    """Return the placement of a view from its first and last column, as its strides are regular."""
    columns = view.shape[-1]
    first, last = (_coordinates(_offsets(view[..., at : at + 1]), geometry) for at in (0, columns - 1))
    if first is None or last is None:
        return None
    step, odd = divmod(view.stride(-1), geometry.strides[-1]) if columns > 1 else (1, 0)
    if odd or step < 1 or not bool((last - first == step * (columns - 1)).all()):
        return None
    rows, keys = first // geometry.keys, torch.remainder(first, geometry.keys)
    if not bool((keys == keys.reshape(-1)[0]).all()) or not bool((last // geometry.keys == rows).all()):
        return None
    return Placement(rows.reshape(-1, view.shape[-2]), keys.reshape(-1)[:1] + torch.arange(columns)[None] * step)


def _of_index(numbered: torch.Tensor, keys: int) -> Placement | None:
    """Return the placement of a view whose elements have these numbers [..., rows, keys]."""
    flat = numbered.reshape(-1, *numbered.shape[-2:])
    known = flat >= 0
    rows = torch.where(known, flat // keys, -1)
    columns = torch.where(known, torch.remainder(flat, keys), -1)
    row, column = rows.amax(dim=-1, keepdim=True), columns.amax(dim=-2, keepdim=True)
    if bool((known & ((rows != row) | (columns != column))).any()):
        return None
    filled = (row >= 0) & (column >= 0)
    return None if bool((filled & ~known).any()) else Placement(row[..., 0], column[..., 0, :])
