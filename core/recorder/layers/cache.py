"""Calls of one layer over a cache of keys: which of them continue each other, and all of them as one call."""

from __future__ import annotations

from dataclasses import replace

import torch

from .layer import Layer, Part, joined_rows
from .visibility import visible_of

BEAMS = "beams changed places (num_beams=1 keeps all)"
CHANGED = "the keys of earlier tokens changed"
OTHER = "the layer computes something else than before"


def continued(old: Layer, new: Layer, most: int) -> tuple[bool, Layer | str]:
    """Return whether a call adds keys to a cache, and the layer with its queries, or why they are not kept.

    The keys of another call are those before, in cross-attention; or some are added, and all that the earlier queries
    saw are still there, the last of them behind a window. At most `most` rows are kept.
    """
    for each in (old, new):
        each.copied.synchronize()
    [part], held, keys = new.parts, old.k.shape[2], new.k.shape[2]
    cached = keys - part.queries
    added = cached == max(held, old.newest) > 0
    if old.refused:
        return added, old.refused
    if not _alike(old, new):
        return added, OTHER
    begun, dropped = 0, 0  # of the earlier keys: how many are before those of this call, and how many were taken back
    if keys == held and (filled := _filled(old, new)) is not None:
        added = filled
    elif _equal(old, held - cached, new, cached):
        begun, added = held - cached, True
    elif held - cached < old.parts[-1].queries and _equal(old, 0, new, cached):
        dropped, added = held - cached, True
    else:
        same = added and _equal(old, 0, new, 1)
        return added, BEAMS if same else CHANGED
    if sum(len(each.rows) for each in old.parts) + len(part.rows) > most:
        return added, f"a layer has at most {most} rows (twice --rows)"
    return added, _with(old, new, begun, dropped)


def _alike(old: Layer, new: Layer) -> bool:
    """Return whether two calls of a layer differ in queries, keys and values alone."""

    def said(layer: Layer) -> tuple[object, ...]:
        tensors = (None if each is None else each.tolist() for each in (layer.head_scales, layer.sinks))
        return (
            layer.scale, layer.softcap, layer.over_queries, layer.k.shape[:2], layer.k.shape[3], layer.k.dtype,
            layer.parts[0].q.shape[1], layer.v is None, *tensors,
        )  # fmt: skip

    return said(old) == said(new)


def _equal(old: Layer, first: int, new: Layer, count: int) -> bool:
    """Return whether so many keys of the old layer, from the first one on, are the first ones of the new layer."""
    pairs = [(old.k, new.k), *([(old.v, new.v)] if old.v is not None and new.v is not None else [])]
    fits = first >= 0 and 0 < count <= old.k.shape[2] - first
    return fits and all(torch.equal(a[:, :, first : first + count], b[:, :, :count]) for a, b in pairs)


def _filled(old: Layer, new: Layer) -> bool | None:
    """Return whether the call filled places of keys that no query saw; None if it changed other keys, too."""
    changed = (old.k != new.k).any(dim=3).flatten(0, 1).any(dim=0)
    if old.v is not None and new.v is not None:
        changed |= (old.v != new.v).any(dim=3).flatten(0, 1).any(dim=0)
    last = old.parts[-1]
    seen = last.visible.pairs(last.rows, last.keys).flatten(0, 2).any(dim=0)
    count = int(changed.sum())
    return None if count > new.parts[0].queries or bool((changed[last.begun :] & seen).any()) else count > 0


def _with(old: Layer, new: Layer, begun: int, dropped: int) -> Layer:
    """Return the old layer with the queries of the new one, without the last queries whose keys were taken back."""
    parts = [*old.parts[:-1], _without(old.parts[-1], dropped)]
    whole = replace(old, parts=parts)
    whole.parts.append(replace(_beside(whole, new), begun=begun))
    whole.k = torch.cat((old.k[:, :, :begun], new.k), dim=2)
    if old.v is not None and new.v is not None:
        whole.v = torch.cat((old.v[:, :, :begun], new.v), dim=2)
    whole.changed = tuple(dict.fromkeys((*old.changed, *new.changed)))
    whole.dropout, whole.followed = max(old.dropout, new.dropout), old.followed and new.followed
    whole.not_finite = tuple((a + c, b + d) for (a, b), (c, d) in zip(old.not_finite, new.not_finite, strict=True))
    whole.residual, whole.tolerance = max(old.residual, new.residual), max(old.tolerance, new.tolerance)
    whole.notes = list(dict.fromkeys((*old.notes, *new.notes)))
    return whole


def _without(part: Part, count: int) -> Part:
    """Return a part without its last queries and their keys."""
    if not count:
        return part
    left, keys = part.queries - count, part.keys - count
    kept = part.rows < left
    cut = part.cut(lambda tensor: tensor if tensor.shape[2] == 1 < len(kept) else tensor[:, :, kept])
    mask, bias = (each if each is None else each[..., :keys] for each in (cut.visible.mask, cut.bias))
    visible = replace(cut.visible, mask=mask)
    return replace(cut, rows=part.rows[kept], queries=left, keys=keys, visible=visible, bias=bias)


def _beside(old: Layer, new: Layer) -> Part:
    """Return the part of the new layer beside those of the old one, whose factor of queries may be another number."""
    [part], (before, of_keys), (after, keys) = new.parts, old.prescaled, new.prescaled
    if of_keys != keys or before is None or after is None:
        old.prescaled = (None if before is None or after is None else before, of_keys if of_keys == keys else None)
        return part
    if before == after:
        return part
    number = torch.full((1, 1, len(part.rows), 1), after / before)
    return replace(part, row_factors=number if part.row_factors is None else number * part.row_factors)


def joined(layer: Layer) -> Part:
    """Return the queries of all calls as one part, numbered through."""
    if len(layer.parts) == 1:
        return layer.parts[0]
    parts, keys = layer.parts, layer.k.shape[2]
    numbers, queries = list[torch.Tensor](), 0
    for part in parts:
        numbers.append(part.rows + queries)
        queries += part.queries
    rows = torch.cat(numbers)
    pairs = [_wide(part, part.visible.pairs(part.rows, part.keys), keys) for part in parts]
    whole = {
        name: torch.cat([part.tensors[name] for part in parts], dim=2)
        for name in ("q", "lse", "o")
        if all(name in part.tensors for part in parts)
    }
    if any(part.bias is not None for part in parts):
        biases = (torch.zeros(1, 1, 1, part.keys) if part.bias is None else part.bias.float() for part in parts)
        whole["bias"] = joined_rows([_wide(part, bias, keys) for part, bias in zip(parts, biases, strict=True)])
    if any(part.row_factors is not None for part in parts):
        ones = (torch.ones(1, 1, len(part.rows), 1) for part in parts)
        own = [one if part.row_factors is None else part.row_factors for part, one in zip(parts, ones, strict=True)]
        whole["row_factors"] = joined_rows(own)
    visible = visible_of(joined_rows(pairs), rows, queries)
    return Part(
        whole["q"], whole.get("lse"), rows, queries, keys, visible, whole.get("bias"), whole.get("o"),
        whole.get("row_factors"),
    )  # fmt: skip


def _wide(part: Part, tensor: torch.Tensor, keys: int) -> torch.Tensor:
    """Return [batch, heads, rows, keys] with zeros for the keys that the part's queries did not have."""
    tensor = tensor.expand(*tensor.shape[:2], len(part.rows), part.keys)
    return torch.nn.functional.pad(tensor, (part.begun, keys - part.begun - part.keys))
