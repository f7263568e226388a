"""Follow scores through views and copies: which dimension holds the keys, and in which order the rows are.

A product of queries and keys is written as [*rows, keys] in one order, here called canonical. Later operations see it
through views that split, merge and permute dimensions, and copy it to storages with other strides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch


@dataclass(frozen=True)
class Geometry:
    """The sizes and strides of a storage's canonical dimensions; the last one holds the keys."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def keys(self) -> int:
        """The size of the last dimension."""
        return self.sizes[-1]

    def is_across(self, view: torch.Tensor) -> bool:
        """Return whether the last dimension of a view is neither that of the keys nor that of the queries."""
        step = view.stride(-1)
        return view.shape[-1] > 1 and step in self.strides[:-2] and step not in self.strides[-2:]


def geometry_of(tensor: torch.Tensor, order: tuple[int, ...] | None = None, keys: int = 1) -> Geometry:
    """Return the geometry of a tensor whose dimensions in this order are canonical, the last `keys` as one."""
    axes = range(tensor.dim()) if order is None else order
    sizes, strides = tensor.shape, tensor.stride()
    first = len(axes) - keys
    rows = axes[:first]
    return Geometry(
        (*(sizes[a] for a in rows), prod(sizes[a] for a in axes[first:])),
        (*(strides[a] for a in rows), strides[axes[-1]]),
        tensor.storage_offset(),
    )


def canonical_order(tensor: torch.Tensor, geometry: Geometry, cut: int = 0) -> tuple[int, ...] | None:
    """Return the dimensions of a view in canonical order, the keys' last.

    The view must show every element, except that the last `cut` keys may be missing. Return None for any other view.
    """
    if tensor.storage_offset() != geometry.offset:
        return None
    shape, stride = tensor.shape, tensor.stride()
    everything = list(range(tensor.dim()))
    free = [axis for axis in everything if shape[axis] > 1]
    keys = geometry.keys - cut
    fits = [
        axis for axis in everything if shape[axis] == keys and (keys == 1 or stride[axis] == geometry.strides[-1])
    ]
    if not fits:
        return None
    key_axis = fits[-1]
    rows = [axis for axis in free if axis != key_axis]
    match = _match(shape, stride, rows, geometry)
    if match is None:
        return None
    if match == sorted(match):  # dimensions of size 1 keep their places
        return (*(axis for axis in everything if axis != key_axis), key_axis)
    ones = (axis for axis in everything if shape[axis] == 1 and axis != key_axis)
    return (*ones, *match, key_axis)


def split_order(tensor: torch.Tensor, geometry: Geometry) -> tuple[tuple[int, ...], int] | None:
    """Return the dimensions of a view of everything in canonical order, and how many of the last hold the keys."""
    order = canonical_order(tensor, geometry)
    if order is not None or tensor.storage_offset() != geometry.offset:
        return None if order is None else (order, 1)
    shape, stride = tensor.shape, tensor.stride()
    keys, left, step = list[int](), geometry.keys, geometry.strides[-1]
    free = [axis for axis in range(tensor.dim()) if shape[axis] > 1]
    while left > 1:  # such as height and width
        axis = next((axis for axis in free if stride[axis] == step and left % shape[axis] == 0), None)
        if axis is None:
            return None
        free.remove(axis)
        keys.insert(0, axis)
        left, step = left // shape[axis], step * shape[axis]
    rows = _match(shape, stride, free, geometry)
    if rows is None:
        return None
    ones = [axis for axis in range(tensor.dim()) if shape[axis] == 1]
    return (*ones, *rows, *keys), len(keys)


def _match(shape: torch.Size, stride: tuple[int, ...], axes: list[int], geometry: Geometry) -> list[int] | None:
    """Return these dimensions in canonical order; they may split or merge the geometry's. None if they do not fit."""
    wanted = [index for index in range(len(geometry.sizes) - 1) if geometry.sizes[index] > 1]
    free, found = list(axes), list[int]()
    while wanted:
        index = wanted.pop()
        size, step = geometry.sizes[index], geometry.strides[index]
        while size > 1:
            axis = next((axis for axis in free if stride[axis] == step), None)
            if axis is None:
                return None
            free.remove(axis)
            found.append(axis)
            extent = shape[axis]
            while extent > size:  # this dimension merges several
                if extent % size or not wanted or geometry.strides[wanted[-1]] != step * size:
                    return None
                extent //= size
                index = wanted.pop()
                size, step = geometry.sizes[index], geometry.strides[index]
            if size % extent:
                return None
            size, step = size // extent, step * extent
    return None if free else found[::-1]
