"""Texts of several lengths as engines lay them out, packed into one or in pages of a cache, as a padded batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import InputError
from ..files.stored import AnyArray

_OF_QUERIES = ("q", "o", "lse")


@dataclass(frozen=True)
class TextLayout:
    """Where the tokens of each text are."""

    starts: Sequence[int] | None = None  # of the queries of each text, and their end, if they are packed
    key_starts: Sequence[int] | None = None  # of the keys, if they are packed
    pages: Sequence[Sequence[int]] | None = None  # of the keys of each text, if they are in a cache
    lengths: Sequence[int] | None = None  # keys of each text

    @property
    def moves(self) -> bool:
        """Whether tokens change places."""
        return not (self.starts is None and self.key_starts is None and self.pages is None)


def layout_of(starts: Any, key_starts: Any, pages: Any, lengths: Any) -> TextLayout:
    """Return the layout that these arrays say; raise InputError if they are not whole numbers, or do not ascend."""
    named = {"cu_seqlens": starts, "cu_seqlens_k": key_starts, "block_table": pages, "lengths": lengths}
    found: dict[str, Any] = {}
    for name, value in named.items():
        array = None if value is None else np.asarray(value.cpu() if hasattr(value, "cpu") else value)
        if array is not None:
            axes = 2 if name == "block_table" else 1
            if array.ndim != axes or array.dtype.kind not in "iu" or not array.size:
                raise InputError(f"{name} must be whole numbers with {axes} {'axes' if axes > 1 else 'axis'}")
            ascends = not name.startswith("cu_") or (array[0] == 0 and bool((np.diff(array) >= 0).all()))
            if not ascends or (name == "lengths" and array.min() < 0):
                raise InputError(f"{name} must {'ascend from 0' if not ascends else 'be from 0 up'}")
        found[name] = None if array is None else array.tolist()
    layout = TextLayout(*found.values())
    if layout.pages is not None and layout.lengths is None:
        raise InputError("block_table needs lengths: how many keys each text has")
    if layout.starts is not None and layout.pages is None and layout.key_starts is None:
        layout = TextLayout(layout.starts, layout.starts, lengths=layout.lengths)
    return layout


def padded(tensors: Mapping[str, AnyArray], layout: TextLayout, at_end: bool) -> dict[str, AnyArray]:
    """Return q, k, v, o and lse, [batch, head, token, d], as a padded batch, with masks of its padding.

    Packed tensors have one text, and those in pages have the pages as texts. Texts end together, or begin together.
    Texts without queries or without keys are left out. Raise InputError if the layout does not fit the tensors.
    """
    of_keys = layout.lengths
    queries, keys = tensors["q"].shape[2], tensors["k"].shape[2]
    of_queries = of_keys if layout.starts is None and queries == keys and layout.pages is None else None
    texts: dict[str, list[AnyArray]] = {}
    for role, array in tensors.items():
        if role in _OF_QUERIES:
            texts[role] = _texts(role, array, layout.starts, None, of_queries)
        else:
            texts[role] = _texts(role, array, layout.key_starts, layout.pages, of_keys)
    counts = {role: len(found) for role, found in texts.items()}
    if len({*counts.values()}) > 1:
        said = ", ".join(f"{count} of {role}" for role, count in counts.items())
        raise InputError(f"cu_seqlens, block_table and lengths are of different numbers of texts: {said}")
    there = [at for at, (a, b) in enumerate(zip(texts["q"], texts["k"], strict=True)) if a.shape[1] and b.shape[1]]
    if not there:
        raise InputError("no text has both queries and keys")
    found: dict[str, AnyArray] = {}
    for role, each in texts.items():
        of_role = role in _OF_QUERIES
        packed = (layout.starts if of_role else layout.key_starts or layout.pages) is not None
        chosen = [each[at] for at in there]
        wide = max(text.shape[1] for text in chosen) if packed else tensors[role].shape[2]
        found[role], seen = _batch(chosen, wide, at_end)
        if not seen.all():
            found["query_mask" if of_role else "key_mask"] = seen
    return found


def _texts(
    role: str,
    array: AnyArray,
    starts: Sequence[int] | None,
    pages: Sequence[Sequence[int]] | None,
    lengths: Sequence[int] | None,
) -> list[AnyArray]:
    """Return the tokens of each text, [head, token, d]."""
    heads, tokens, width = array.shape[1:]
    if pages is not None and lengths is not None:
        if len(pages) != len(lengths):
            raise InputError(f"block_table has {len(pages)} texts, and lengths {len(lengths)}")
        found: list[AnyArray] = []
        for row, length in zip(pages, lengths, strict=True):
            own = row[: -(-length // tokens)]
            if len(own) * tokens < length or any(not 0 <= page < len(array) for page in own):
                raise InputError(
                    f"block_table names pages {list(own)[:4]} for {length} keys; {role} has pages 0 to "
                    f"{len(array) - 1} of {tokens} tokens"
                )
            found.append(array[own].swapaxes(0, 1).reshape(heads, -1, width)[:, :length])
        return found
    if starts is not None:
        if len(array) > 1 or starts[-1] > tokens:
            raise InputError(
                f"{role} has {len(array)} texts of {tokens} tokens, and cu_seqlens ends at {starts[-1]}; must have "
                "one text with all tokens, as axes without batch"
            )
        return [array[0][:, first:last] for first, last in pairwise(starts)]
    if lengths is None:
        return list(array)
    if len(lengths) != len(array) or max(lengths) > tokens:
        raise InputError(f"lengths {list(lengths)[:8]} do not fit {role} of {len(array)} texts of {tokens} tokens")
    return [text[:, :length] for text, length in zip(array, lengths, strict=True)]


def _batch(texts: Sequence[AnyArray], wide: int, at_end: bool) -> tuple[AnyArray, AnyArray]:
    """Return texts as [batch, head, token, d] with zeros beside them, and which tokens are theirs, [batch, token]."""
    heads, _, width = texts[0].shape
    found, seen = np.zeros((len(texts), heads, wide, width), texts[0].dtype), np.zeros((len(texts), wide), np.bool_)
    for at, text in enumerate(texts):
        first = wide - text.shape[1] if at_end else 0
        found[at, :, first : first + text.shape[1]] = text
        seen[at, first : first + text.shape[1]] = True
    return found, seen
