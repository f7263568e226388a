"""How the tensors beside queries and keys were understood when a head was read; this module does not need NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

# What True and 1 mean in a mask, or the number at and below which a mask that is added to logits hides a key.
Form: TypeAlias = "Literal['visible', 'hidden'] | float"


@dataclass(frozen=True)
class UsedMask:
    """A mask or a bias of one head, as its values were understood."""

    path: Path
    name: str
    # (batch or 1, heads or 1, queries or 1, keys); of a mask of queries, (batch or 1, queries)
    shape: tuple[int, ...]
    head: int  # the place along the axis of heads
    form: Form
    adds: bool = False  # whether its numbers are added to the logits
    hides: bool = True  # whether some of them hide keys
    of_queries: bool = False  # whether it tells which queries count
    of_tokens: bool = False  # whether its queries are all tokens, of which only some are stored


@dataclass(frozen=True)
class Understood:
    """What changes the logits of one head, beside its queries, keys and scale."""

    masks: tuple[UsedMask, ...] = ()
    positions: tuple[int, ...] | None = None  # of the queries, if the file lists them
    lengths: tuple[int, ...] | None = None  # tokens of each text, if those beyond are hidden for it
    padding: bool = False  # whether tokens that no query sees do not count as queries
    slope: float | None = None  # of ALiBi
    sink: float | None = None
    scales: tuple[Path, str, tuple[int, int, int]] | None = None  # the tensor, as (batch, heads, queries) or 1 each


NOTHING_ELSE = Understood()
