"""What is known of one head's attention, as plain values; this module does not need NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...parameters import Value


@dataclass(frozen=True)
class Matrix:
    """The attention weights of a head, in cells of some queries × some keys."""

    layer: int  # position in the file
    head: int
    text: int
    queries: tuple[int, ...]  # the first query of each row of cells, and the first one after the last
    keys: tuple[int, ...]  # the same of columns
    positions: tuple[int, ...]  # among the keys, of the first query of each row of cells
    shares: tuple[tuple[float | None, ...], ...]  # of a query's weight on these keys, mean over queries; None: hidden
    rough: bool  # whether only some queries of each cell were computed


@dataclass(frozen=True)
class RowColumn:
    """One row of attention under one rule; if it is NaN in its number format, its figures are 0."""

    rule: str
    multiplier: float  # of q·k without factors that are stored in q and k
    weights: tuple[float, ...]  # of the keys listed
    rest: float  # the weight of all other visible keys
    sink: float | None  # the weight that the sink logit takes; None without one
    entropy: float  # nats
    jacobian: float  # ‖diag(p) − p pᵀ‖_F
    dead: bool  # whether that is so small that no gradient passes
    saturation: float | None  # σ of the row's logits over √(2 ln n); None with fewer than two finite ones
    apart: Mapping[str, Value]  # its number format and soft-cap, where they are not as in the file
    is_nan: bool = False  # whether softmax has no value: a logit is +∞ or NaN, or all are −∞


@dataclass(frozen=True)
class AttentionRow:
    """One query's attention under several rules."""

    layer: int  # position in the file
    head: int
    query: int
    position: int  # of the query among the keys
    visible: int  # keys that the query sees
    keys: tuple[int, ...]  # those listed, in order: the ones with the largest weights under any of the rules
    columns: tuple[RowColumn, ...]
    threshold: float | None  # the multiplier at which the row saturates and recovers; None if there is none
