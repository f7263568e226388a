"""Calls of one layer over a cache of keys: which of them continue each other, and all of them as one call."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch

from .layer import LayerCall, RecordedLayer, joined_rows
from .visibility import visible_of

BEAMS = "beams changed places (num_beams=1 keeps all)"
CHANGED = "keys of earlier tokens, or the way they are used, changed"


def continued(old: RecordedLayer, new: RecordedLayer, most: int) -> tuple[bool, RecordedLayer]:
    """Return whether a call adds keys to a cache, and the layer with its queries, or with why they are not kept.

    All keys that the earlier queries saw must be there, or the last of them, as behind a window, or the first, where
    some of the last tokens were taken back. In cross-attention no key is added. At most `most` rows are kept.
    """
    for cache in (old, new):
        cache.copied.synchronize()
    if old.refused:
        return _follows(new), old
    alike = _alike(old, new)
    place = _place(old, new) if alike else None
    if place is None:
        added, same = _longer(old, new)
        return added, replace(old, refused=BEAMS if added and same and alike else CHANGED)
    if sum(len(part.rows) for part in (*old.parts, *new.parts)) > most:
        return place.added, replace(old, refused=f"a layer has at most {most} rows (twice --rows)")
    return place.added, _with(old, new, place)


def _follows(new: RecordedLayer) -> bool:
    """Return whether a call has keys of an earlier one: its first query sees more than are of its own queries."""
    [part] = new.parts
    return int(part.visible.pairs(part.rows[:1], part.keys).flatten(0, 2).any(dim=0).sum()) > part.queries


class _Place(NamedTuple):
    """Where the keys of a call are among those of an earlier one."""

    added: bool  # whether some are new
    begun: int = 0  # how many are before them
    dropped: int = 0  # how many of the last were taken back


def _place(old: RecordedLayer, new: RecordedLayer) -> _Place | None:
    """Return where the keys of a call are among those of an earlier one; None if these changed."""
    last, held, keys = old.parts[-1], old.k.shape[2], new.k.shape[2]
    queries = new.parts[0].queries
    cached = keys - queries
    if keys == held:  # of another text, or in places that were not used yet
        changed = torch.stack([_differ(a, b) for a, b in _pairs(old, new)]).any(0)
        count = int((changed & _seen(new.parts[0])).sum())
        if count <= queries and not bool((changed[last.begun :] & _seen(last)).any()):
            return _Place(count > 0)
    if held <= cached and _equal(old, 0, new, held):
        return _Place(True)
    if _equal(old, held - cached, new, cached):
        return _Place(True, begun=held - cached)
    if held - cached < last.queries and _equal(old, 0, new, cached):
        return _Place(True, dropped=held - cached)
    return None


def _longer(old: RecordedLayer, new: RecordedLayer) -> tuple[bool, bool]:
    """Return whether a call continues a cache though keys changed, and whether some of these are those before."""
    first, last, [part] = old.parts[0], old.parts[-1], new.parts
    held, cached = old.k.shape[2], part.keys - part.queries
    same = _same(old, 0, new) or _same(old, held - cached, new)
    filled = part.keys == held and int(_seen(part).sum()) == int(_seen(last).sum()) + part.queries
    return cached == held or (same and (filled or first.visible.window is not None)), same


def _same(old: RecordedLayer, begun: int, new: RecordedLayer) -> bool:
    """Return whether some keys of a call are those of an earlier one, of which it has those from `begun` on."""
    count = min(old.k.shape[2] - begun, new.k.shape[2] - new.parts[0].queries)
    if begun < 0 or count < 1 or old.k.shape[:2] != new.k.shape[:2] or old.k.shape[3] != new.k.shape[3]:
        return False
    return not bool(_differ(old.k[:, :, begun : begun + count], new.k[:, :, :count]).all())


def _alike(old: RecordedLayer, new: RecordedLayer) -> bool:
    """Return whether two calls of a layer differ in queries, keys and values alone."""

    def said(layer: RecordedLayer) -> tuple[object, ...]:
        tensors = (None if tensor is None else tensor.tolist() for tensor in (layer.head_scales, layer.sinks))
        return (
            layer.scale, layer.softcap, layer.over_queries, layer.k.shape[:2], layer.k.shape[3], layer.k.dtype,
            layer.parts[0].q.shape[1], layer.v is None, *tensors,
        )  # fmt: skip

    return said(old) == said(new)


def _pairs(old: RecordedLayer, new: RecordedLayer) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [(old.k, new.k), *([(old.v, new.v)] if old.v is not None and new.v is not None else [])]


def _equal(old: RecordedLayer, first: int, new: RecordedLayer, count: int) -> bool:
    """Return whether so many keys of the old layer, from the first one on, are the first ones of the new layer."""
    fits = first >= 0 and 0 < count <= old.k.shape[2] - first
    return fits and not any(
        bool(_differ(a[:, :, first : first + count], b[:, :, :count]).any()) for a, b in _pairs(old, new)
    )


def _differ(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return which of as many keys are others, [keys]; NaN is the same as NaN, as in places not used yet."""
    return ~((a == b) | (a.isnan() & b.isnan())).all(3).flatten(0, 1).all(0)


def _seen(part: LayerCall) -> torch.Tensor:
    """Return which of its keys the queries of a call saw: [keys]."""
    return part.visible.pairs(part.rows, part.keys).flatten(0, 2).any(dim=0)


def _with(old: RecordedLayer, new: RecordedLayer, place: _Place) -> RecordedLayer:
    """Return the old layer with the queries of the new one, without those whose keys were taken back."""
    whole = replace(old, parts=[*old.parts[:-1], _without(old.parts[-1], place.dropped)])
    whole.parts.append(replace(_beside(whole, new), begun=place.begun))
    whole.k, *values = [torch.cat((a[:, :, : place.begun], b), dim=2) for a, b in _pairs(old, new)]
    whole.v = values[0] if values else None
    whole.changed = tuple(dict.fromkeys((*old.changed, *new.changed)))
    whole.dropout, whole.followed = max(old.dropout, new.dropout), old.followed and new.followed
    whole.not_finite = tuple((a + c, b + d) for (a, b), (c, d) in zip(old.not_finite, new.not_finite, strict=True))
    whole.checked = new.checked if new.checked == "bias" else old.checked
    whole.residual, whole.tolerance = max(old.residual, new.residual), max(old.tolerance, new.tolerance)
    whole.notes = list(dict.fromkeys((*old.notes, *new.notes)))
    return whole


def _without(part: LayerCall, count: int) -> LayerCall:
    """Return a part without its last queries and their keys."""
    if not count:
        return part
    left, keys = part.queries - count, part.keys - count
    kept = part.rows < left
    cut = part.cut(lambda tensor: tensor if tensor.shape[2] == 1 < len(kept) else tensor[:, :, kept])
    mask, bias = (tensor if tensor is None else tensor[..., :keys] for tensor in (cut.visible.mask, cut.bias))
    visible = replace(cut.visible, mask=mask)
    return replace(cut, rows=part.rows[kept], queries=left, keys=keys, visible=visible, bias=bias)


def _beside(old: RecordedLayer, new: RecordedLayer) -> LayerCall:
    """Return the part of the new layer beside those of the old one, whose factor of queries may be another number."""
    [part], (before, of_keys), (after, keys) = new.parts, old.prescaled, new.prescaled
    if of_keys != keys or before is None or after is None:
        old.prescaled = (None if before is None or after is None else before, of_keys if of_keys == keys else None)
        return part
    if before == after:
        return part
    number = torch.full((1, 1, len(part.rows), 1), after / before)
    return replace(part, row_factors=number if part.row_factors is None else number * part.row_factors)


def joined(layer: RecordedLayer) -> LayerCall:
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
        factors = [
            one if part.row_factors is None else part.row_factors for part, one in zip(parts, ones, strict=True)
        ]
        whole["row_factors"] = joined_rows(factors)
    visible = visible_of(joined_rows(pairs), rows, queries)
    return LayerCall(
        whole["q"], whole.get("lse"), rows, queries, keys, visible, whole.get("bias"), whole.get("o"),
        whole.get("row_factors"),
    )  # fmt: skip


def _wide(part: LayerCall, tensor: torch.Tensor, keys: int) -> torch.Tensor:
    """Return [batch, heads, rows, keys] with zeros for the keys that the part's queries did not have."""
    tensor = tensor.expand(*tensor.shape[:2], len(part.rows), part.keys)
    return torch.nn.functional.pad(tensor, (part.begun, keys - part.begun - part.keys))
