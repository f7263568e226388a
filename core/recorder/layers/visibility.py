"""Which keys each query sees, as few words as possible: causal, window, a mask of keys, or a mask of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Visible:
    """The keys that queries see: all, less those behind the query, outside the window or hidden by the mask."""

    offset: int | None = None  # query i sees keys up to i + offset; None: not causal
    window: int | None = None  # and of these the last `window`
    mask: torch.Tensor | None = None  # [batch or 1, heads or 1, rows or 1, keys], True = visible

    def pairs(self, rows: torch.Tensor, keys: int) -> torch.Tensor:
        """Return whether each of these queries sees each key: [batch or 1, heads or 1, rows, keys]."""
        seen = torch.ones(1, 1, len(rows), keys, dtype=torch.bool)
        if self.offset is not None:
            seen = seen & _band(rows + self.offset, keys, self.window)
        return seen if self.mask is None else seen & self.mask


def visible_of(pairs: torch.Tensor, rows: torch.Tensor, queries: int) -> Visible:
    """Return the shortest description of visible pairs [batch or 1, heads or 1, rows, keys]; `rows` are kept."""
    pairs = shared(pairs)
    keys = pairs.shape[-1]
    if bool(pairs.all()):
        return Visible()
    causal_at: int | None = None
    union = pairs.flatten(0, 1).any(dim=0)
    for offset in dict.fromkeys((keys - queries, 0)) if 1 < queries <= keys else ():  # else some have no own key
        places = rows + offset
        causal = _band(places, keys, None)
        if bool((union & ~causal).any()) or bool(causal.all()):
            continue
        window = int(union.sum(dim=-1).max())
        for width in (None, window):
            band = _band(places, keys, width)
            mask = _mask_beside(pairs, band)
            if mask is None or mask.shape[-2] == 1:
                return Visible(offset, width, mask)
        causal_at = offset if causal_at is None else causal_at
    if causal_at is not None:
        return Visible(causal_at, None, pairs)
    return Visible(mask=_mask_beside(pairs, torch.ones_like(union)))


def _band(places: torch.Tensor, keys: int, window: int | None) -> torch.Tensor:
    """Return whether keys are at or before each place, and fewer than `window` before it."""
    distance = places[:, None] - torch.arange(keys)
    return distance >= 0 if window is None else (distance >= 0) & (distance < window)


def _mask_beside(pairs: torch.Tensor, band: torch.Tensor) -> torch.Tensor | None:
    """Return the mask that together with the band gives these pairs, of keys if possible; None if none is needed."""
    if bool((pairs == band).all()):
        return None
    keys = pairs.any(dim=2, keepdim=True)
    if bool(((keys & band) == pairs).all()):
        return shared(keys)
    return pairs


def shared(pairs: torch.Tensor) -> torch.Tensor:
    """Return these values once if they are the same for all texts, or for all heads."""
    for axis in (0, 1):
        first = pairs.narrow(axis, 0, 1)
        if pairs.shape[axis] > 1 and bool((pairs == first).all()):
            pairs = first
    return pairs
