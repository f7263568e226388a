"""The one sentence under a table that says what its numbers mean."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.statistics.catalogue import SINK
from ...core.statistics.measurement import Column
from .glyphs import Glyphs
from .numbers import percent, short

_UNIFORM = 0.98  # from this share of ln n on, the weights of a row are close to equal


def sentence(columns: Sequence[Column], glyphs: Glyphs) -> str:
    """Computed from the values: Unscaled, logits have standard deviation 8: 30 % of rows are one-hot …"""
    first, *others = columns
    clauses = [_clause(first, "logits have standard deviation ", glyphs), *(_clause(c, "", glyphs) for c in others)]
    return glyphs.say(" ".join(clauses))


def _clause(column: Column, quantity: str, glyphs: Glyphs) -> str:
    """What one column says."""
    scaled = f"Scaled × {short(column.multiplier, glyphs)}"
    who = {"none": "Unscaled", "file": "With the file's scale"}.get(column.rule, scaled)
    std = column.measured["logit_std"].value
    one_hot, dead = column.measured["one_hot_rows"].value, column.measured["dead_rows"].value
    if std is None or one_hot is None or dead is None:
        return f"{who}, no query sees a key."
    if one_hot == dead == 0:
        rows = "no row is one-hot or dead"
    else:
        rows = f"{percent(one_hot)} of rows are one-hot and {percent(dead)} dead"
    text = f"{who}, {quantity}{short(std, glyphs)}: {rows}"
    fraction, first = column.measured["entropy_fraction"].value, column.measured["first_key_weight"].value
    if fraction is not None and fraction > _UNIFORM:
        text += f", and attention is nearly uniform ({percent(fraction)} of ln n)"
    keys = column.measured["effective_keys"].value
    if first is not None and first > SINK and keys is not None and keys > 1.001:
        text += f"; the first key alone holds {percent(first)}"
    return text + "."
