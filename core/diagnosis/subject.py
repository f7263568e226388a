"""One head to diagnose: its queries and keys, what is said about it, and the evidence of what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray
from ..captures.capture import StatedAttention
from .configuration import Configuration
from .results import Product

Kind: TypeAlias = Literal["weights", "lse", "o"]
KeysAndValues: TypeAlias = "Callable[[], tuple[FloatArray, FloatArray | None]]"
Indices: TypeAlias = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What attention returned: weights [texts, rows, keys], lse [texts, rows], or o [texts, rows, d_v] with v."""

    kind: Kind
    values: FloatArray  # float64
    format: str  # the number format that they were rounded to
    v: FloatArray | None = None  # [texts, keys, d_v]
    v_format: str = "float32"


@dataclass(frozen=True)
class StatedFacts(StatedAttention):
    """What a file and a configuration say about a head; None where they say nothing.

    A scale that was observed is what a recorder saw, which is not an expectation.
    """

    d_k: int
    prescaled: float = 1.0  # the product of the factors that are already inside q and k
    inside: tuple[float, float] = (1.0, 1.0)  # the factor inside q, and inside k
    unknown_factor: bool = False  # whether q or k contains a factor that nobody knows
    not_finite: tuple[int, int] | None = None  # scores of the layer that were NaN or infinite, and of how many
    # Queries that see no key and are NaN in the next layer, of how many, and the words for that layer.
    lost: tuple[int, int, str] | None = None
    sink: float | None = None  # a logit of no key
    window: int | None = None  # keys that a query sees, its own included
    layer: int = 0
    others: tuple[tuple[int, float], ...] = ()  # layers of its kind, and what was recorded of their multipliers
    head: int = 0
    heads: int = 1  # of the layer, as stored
    kv_heads: int = 1
    keys: int | None = None
    d_model: int | None = None  # of the model
    n_heads: int | None = None
    config: Configuration | None = None
    unknown_positions: str = (
        ""  # why the expected multipliers of rows are not known, though a configuration says them
    )
    same_rows: str = ""  # what it means if rows of the stored scores have one multiplier, though others are expected
    # The least and the largest factor of a row inside q, if nothing says which ones are intended.
    row_factors: tuple[float, float] | None = None

    @property
    def judges_outputs(self) -> bool:
        """Whether outputs tell of the weights that softmax returned."""
        return self.followed and not self.changed and not self.dropout

    def product(self, multiplier: float) -> Product:
        """Return what q·k was multiplied by in all, from the multiplier of q·k as stored."""
        return Product(self.prescaled * multiplier)


@dataclass(frozen=True, eq=False)
class Subject:
    """A head, for some or all of its rows; arrays are float64."""

    q: FloatArray  # [texts, rows, d_k]
    k: FloatArray  # [texts, keys, d_k]
    format: str  # of q and k as stored, or of q if k has another one
    facts: StatedFacts
    evidence: tuple[Evidence, ...]
    positions: Indices  # [rows], the key that is each query's own token
    seen: BoolArray | None = None  # [texts, rows, keys], as the file says; None: all
    present: BoolArray | None = None  # [texts, keys], False for padding; None: all
    bias: FloatArray | None = None  # [texts, rows, keys], added to the logits after the soft-cap
    row_scales: FloatArray | None = None  # [texts, rows], of the expected multipliers of rows relative to the scale
    shift: int = 0  # keys − queries: how far the two alignments of a causal mask are apart
    whole: bool = True  # whether all rows of the layer are here
    # Returns k and v of key head h mod kv_heads, read when they are asked for; None if that is this head's.
    tiled: KeysAndValues | None = None
    k_format: str | None = None  # of k as stored, if it is another one

    @cached_property
    def scores(self) -> FloatArray:
        """The scores q·k as stored, [texts, rows, keys]."""
        return self.q @ self.k.mT

    @cached_property
    def used(self) -> BoolArray:
        """The rows with a visible key, [texts, rows]; others, of padding tokens, say nothing."""
        if self.seen is None:
            return np.ones(self.q.shape[:2], np.bool_)
        return np.any(self.seen, axis=-1, keepdims=True)[..., 0]


def places(count: int) -> Indices:
    """Return the numbers from 0 below `count`."""
    return np.arange(count, dtype=np.intp)


def some_rows(subject: Subject, rows: Indices, texts: int | None = None, keys: int | None = None) -> Subject:
    """Return the subject with these rows only, and its first texts and keys."""
    every = np.array_equal(rows, places(subject.q.shape[1]))
    other = keys not in (None, subject.k.shape[1])
    if every and not other and texts in (None, subject.q.shape[0]):
        return subject
    of, to = slice(texts), slice(keys)
    evidence = tuple(
        replace(
            each,
            values=each.values[of, rows, to] if each.kind == "weights" else each.values[of, rows],
            v=None if each.v is None else each.v[of, to],
        )
        for each in subject.evidence
    )
    tiled = subject.tiled

    def some_tiled() -> tuple[FloatArray, FloatArray | None]:
        assert tiled is not None
        k, v = tiled()
        return k[of, to], None if v is None else v[of, to]

    return replace(
        subject,
        q=subject.q[of, rows],
        k=subject.k[of, to],
        evidence=evidence,
        positions=subject.positions[rows],
        seen=None if subject.seen is None else subject.seen[of, rows, to],
        present=None if subject.present is None else subject.present[of, to],
        bias=None if subject.bias is None else subject.bias[of, rows, to],
        row_scales=None if subject.row_scales is None else subject.row_scales[of, rows],
        shift=0 if other else subject.shift,
        whole=subject.whole and every and not other,
        tiled=None if tiled is None else some_tiled,
    )


def spread_rows(rows: int, most: int) -> Indices:
    """Return at most `most` rows, evenly spread, the last included."""
    if rows <= most:
        return places(rows)
    return np.unique(np.linspace(rows - 1, 0, most).round().astype(np.intp))
