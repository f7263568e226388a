"""Which rows of a product belong to which text and head."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch


@dataclass(frozen=True)
class Layout:
    """How the canonical rows of scores split into texts, heads and queries."""

    batch: int
    heads: int
    queries: int
    heads_first: bool = False  # [heads, batch, queries] instead of [batch, heads, queries]
    assumed: bool = False  # nothing said how many heads there are

    def arrange(self, tensor: torch.Tensor, inner: int, width: int) -> torch.Tensor:
        """Return a canonical tensor as [batch, heads of the tensor, inner, width].

        `inner` is the number of queries, keys or values; keys and values may have fewer heads.
        """
        heads = tensor.numel() // max(1, self.batch * inner * width)
        if self.heads_first:
            return tensor.reshape(heads, self.batch, inner, width).transpose(0, 1)
        return tensor.reshape(self.batch, heads, inner, width)


def layout_of(lead: tuple[int, ...], rows: int, head_counts: tuple[int, ...]) -> Layout:
    """Return the layout of scores whose dimensions before the keys are `lead`.

    The product had `rows` rows in each of its matrices; modules around say that there are `head_counts` heads.
    """
    queries = lead[-1] if lead and rows % lead[-1] == 0 else rows
    outer = lead[:-1] if lead and queries == lead[-1] else ()
    total = prod(lead) // queries
    if len(outer) >= 2:
        return _from_dimensions(outer, queries, rows, head_counts)
    heads = next((count for count in head_counts if total % count == 0), None)
    if heads is None:
        return Layout(1, total, queries, assumed=total > 1)
    return Layout(total // heads, heads, queries)


def _from_dimensions(outer: tuple[int, ...], queries: int, rows: int, head_counts: tuple[int, ...]) -> Layout:
    last, pair = outer[-1], outer[-1] * outer[-2]
    total = prod(outer)
    if len(outer) == 2 and last not in head_counts and outer[0] in head_counts:
        return Layout(last, outer[0], queries, heads_first=True)
    grouped = len(outer) > 2 and last not in head_counts and (pair in head_counts or rows > queries)
    heads = pair if grouped else last
    return Layout(total // heads, heads, queries)
