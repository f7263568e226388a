"""What operations do to attention weights: they move, they change, or what becomes of them is not followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

import torch

from ..layers.eager import Pending
from ..layers.geometry import canonical_order, geometry_of, split_order
from ..layers.placement import LARGEST, indexed, numbers
from .notes import Notebook, Summand, WeightNote

_MOVING = (
    "flip index_select gather repeat roll index tile repeat_interleave take_along_dim cat stack constant_pad_nd "
    "unsqueeze_copy permute_copy unfold_copy"
)
_MOVES = frozenset(f"aten::{name}" for name in _MOVING.split())


def passed(notes: Notebook, source: torch.Tensor, out: torch.Tensor, note: WeightNote) -> None:
    """Pass weights on to a result of their shape, or of more dimensions."""
    added = out.dim() - source.dim()
    found = _order(source, note)
    if found is not None and added >= 0 and out.shape[added:] == source.shape and prod(out.shape[:added]) == 1:
        order, keys = (*range(added), *(axis + added for axis in found[0])), found[1]
        notes.put(out, replace(note, geometry=geometry_of(out, order, keys)))
        return
    place = numbers(source, note.geometry, note.index)
    fits = len(out.shape) >= len(source.shape) and out.numel() <= LARGEST and all(
        one in (1, wide) for one, wide in zip(reversed(source.shape), reversed(out.shape), strict=False)
    )  # fmt: skip
    if place is None or not fits:
        reached(note, "a copy of a part")
    else:
        notes.put(out, replace(note, index=indexed(out, place.expand(out.shape))))


def _order(view: torch.Tensor, note: WeightNote) -> tuple[tuple[int, ...], int] | None:
    """Return the canonical order of a view of everything, and how many of its dimensions hold the keys."""
    if note.index is not None:
        return None
    if note.sinks:
        order = canonical_order(view, note.geometry, note.sinks)
        return None if order is None else (order, 1)
    return split_order(view, note.geometry)


def altered(note: WeightNote, name: str, source: torch.Tensor, out: torch.Tensor) -> WeightNote:
    """Return the note on the result of an operation, which changed the weights unless their values are the same."""
    if out is not source and out.shape == source.shape and _equal(source, out):
        return note
    return replace(note, changed=(*note.changed, name))


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether all values are equal; those of NaN, as of a row that sees no key, may become 0."""
    return bool(((a == b) | (a.isnan() & ((b == 0) | b.isnan()))).all())


def reached(note: WeightNote, name: str) -> None:
    """Remember an operation whose result is not followed."""
    pending: Pending = note.layer
    if not pending.done:
        pending.reached = (*note.changed, name)


def is_new(name: str) -> bool:
    """Return whether an operation makes a tensor of the shape or kind of another one, and not of its values."""
    return name.endswith("_like") or name.startswith("aten::new_")


def other(notes: Notebook, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> bool:
    """Follow weights through an operation without a rule for them; return whether there were any."""
    name = func._schema.name
    found = [(tensor, note) for tensor in _tensors(args) if isinstance(note := notes.find(tensor), WeightNote)]
    if not found:
        return False
    if name in _MOVES and isinstance(out, torch.Tensor):
        _moved(notes, func, args, kwargs, out, found)
        return True
    source, note = found[0]
    short = name.removeprefix("aten::").rstrip("_")
    for tensor in _tensors((out,)):
        if not tensor.is_floating_point() or is_new(name):
            continue
        same_storage = tensor.untyped_storage()._cdata == source.untyped_storage()._cdata
        if same_storage and not func._schema.is_mutable:  # a view
            continue
        if same_storage:
            notes.put(source, replace(note, changed=(*note.changed, short)))
        elif tensor.shape == source.shape:
            passed(notes, source, tensor, altered(note, short, source, tensor))
        else:
            reached(note, short)
    return True


def _moved(
    notes: Notebook,
    func: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    out: torch.Tensor,
    found: Sequence[tuple[torch.Tensor, WeightNote]],
) -> None:
    """Move the numbers of the elements as the elements were moved."""
    name, note = func._schema.name, found[0][1]
    short = name.removeprefix("aten::")
    of = {id(tensor): numbers(tensor, own.geometry, own.index) for tensor, own in found if own.layer is note.layer}
    sources = [*_tensors(args[:1])]
    padded = name != "aten::constant_pad_nd" or not (args[2] if len(args) > 2 else kwargs.get("value", 0))
    if not padded or any(of.get(id(source)) is None for source in sources):
        reached(note, short)
        return

    def numbered(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return of[id(value)] if id(value) in of else value.cpu()
        if isinstance(value, (list, tuple)):
            return [numbered(item) for item in cast("Sequence[Any]", value)]
        return value

    given, named = numbered(args), {key: numbered(value) for key, value in kwargs.items()}
    if name == "aten::constant_pad_nd":
        given, named = given[:2], {"value": -1}
    changed = tuple(dict.fromkeys(number for _, own in found for number in own.changed))
    moved = cast(Callable[..., torch.Tensor], func)(*given, **named)
    notes.put(out, replace(note, changed=changed, index=indexed(out, moved)))


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among values and the lists among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(cast("Sequence[Any]", value))


def summed(notes: Notebook, a: Any, b: Any, number: float, out: torch.Tensor) -> bool:
    """Add outputs of some keys to those of others, or to 0; return whether these are such outputs."""
    left, right = notes.find(a), notes.find(b)
    if not isinstance(left, Summand) and not isinstance(right, Summand):
        return False
    if isinstance(left, Summand) and isinstance(right, Summand):
        alike = left.layer is right.layer and left.width == right.width and left.place.rows.equal(right.place.rows)
        if not alike or number != 1 or bool((left.keys & right.keys).any()):
            return True
        found = replace(left, keys=left.keys | right.keys)
    else:
        found, rest = (left, b) if isinstance(left, Summand) else (cast(Summand, right), a)
        if number != 1 or (isinstance(rest, torch.Tensor) and (rest.numel() != out.numel() or bool(rest.any()))):
            return True
        if not isinstance(rest, torch.Tensor) and rest != 0:
            return True
    notes.put(out, found)
    size = (*found.place.rows.shape, found.width)
    pending: Pending = found.layer
    whole = bool(found.keys.all()) and out.is_contiguous() and out.numel() == prod(size)
    if whole and pending.outputs is not None and not pending.done:
        pending.outputs.add_outputs(found.place, out.reshape(size))
    return True
