"""Which rows of a product belong to which text and head."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch


@dataclass(frozen=True)
class TensorLayout:
    """How the canonical rows of scores split: [outer, heads, inner, queries], such as batch, heads, windows, rows."""

    outer: int
    heads: int
    queries: int
    inner: int = 1
    assumed: bool = False  # nothing said how many heads there are

    @property
    def batch(self) -> int:
        """The texts: outer and inner matrices of each head."""
        return self.outer * self.inner

    def arrange(self, tensor: torch.Tensor, rows: int, width: int) -> torch.Tensor:
        """Return a canonical tensor as [batch, heads of the tensor, rows, width].

        `rows` is the number of queries, keys or values; keys and values may have fewer heads.
        """
        heads = tensor.numel() // max(1, self.batch * rows * width)
        split = tensor.reshape(self.outer, heads, self.inner, rows, width)
        return split.transpose(1, 2).reshape(self.batch, heads, rows, width)

    def pick(self, tensor: torch.Tensor, rows: torch.Tensor, batch: int) -> torch.Tensor:
        """Return these rows of the first texts of a canonical tensor as [batch, heads, rows, width].

        Its last dimensions may be those of the keys, such as height and width, with values repeated along some.
        """
        few, all_rows = tensor, self.batch * self.heads * self.queries
        first = next(axis for axis in range(tensor.dim()) if prod(tensor.shape[:axis]) == all_rows)
        for axis in range(first, tensor.dim()):
            few = few.narrow(axis, 0, 1) if few.stride(axis) == 0 else few
        few = few.reshape(self.outer, self.heads, self.inner, self.queries, *few.shape[first:]).transpose(1, 2)
        outer = -(-batch // self.inner)
        picked = few[:outer].index_select(3, rows).flatten(0, 1)[:batch]
        return picked.expand(*picked.shape[:3], *tensor.shape[first:]).flatten(3)


def layout_of(lead: tuple[int, ...], rows: int, head_counts: tuple[int, ...], batch: int | None) -> TensorLayout:
    """Return the layout of scores whose dimensions before the keys are `lead`.

    The product had `rows` rows in each of its matrices; modules around say that there are `head_counts` heads; the
    input of the outermost one has `batch` texts.
    """
    queries = lead[-1] if lead and rows % lead[-1] == 0 else rows
    outer = lead[:-1] if lead and queries == lead[-1] else ()
    total = prod(lead) // queries
    if len(outer) >= 2:
        return _from_dimensions(outer, queries, rows, head_counts, batch)
    texts = batch if batch and total % batch == 0 else 1
    heads = 1 if total == batch else None
    for each in (texts, 1):
        heads = heads or next((count for count in head_counts if total % (count * each) == 0), None)
    if heads is None:
        return TensorLayout(texts, total // texts, queries, assumed=total > texts)
    return TensorLayout(total // heads, heads, queries)


def _from_dimensions(
    outer: tuple[int, ...], queries: int, rows: int, head_counts: tuple[int, ...], batch: int | None
) -> TensorLayout:
    """Return the layout of scores that have dimensions before those of queries and keys."""
    total, last = prod(outer), len(outer) - 1

    def split(first: int, end: int) -> TensorLayout:
        heads = prod(outer[first:end])
        return TensorLayout(prod(outer[:first]), heads, queries, total // (prod(outer[:first]) * heads))

    def spans() -> Iterator[tuple[int, int]]:
        """Yield the dimensions that may be the heads, the likeliest first; groups of key heads are two of them."""
        behind_batch = next((axis for axis in range(1, last + 1) if prod(outer[:axis]) == batch), None)
        if behind_batch is not None:
            yield behind_batch, behind_batch + 1
            yield behind_batch, min(behind_batch + 2, last + 1)
        yield last, last + 1
        if last > 1:
            yield last - 1, last + 1
        yield 0, 1
        if batch in (None, queries) or behind_batch is None:  # texts without a batch: groups of key heads alone
            yield 0, last + 1

    for first, end in spans():
        if prod(outer[first:end]) in head_counts:
            return split(first, end)
    return split(last - 1, last + 1) if last > 1 and rows > queries else split(last, last + 1)
