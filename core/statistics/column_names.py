"""Short names of columns: what tells them apart, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ..against import apart, settings, words
from ..message import joined, message
from ..parameters import Parameters, Value
from ..scales import UNSCALED_RULES, scale_rule
from .measurement import Column

_UNSCALED = frozenset(UNSCALED_RULES.values())


def is_unscaled(column: Column) -> bool:
    """Return whether the rule of a column is multiplier 1, whether or not q and k are normalised."""
    return column.rule in _UNSCALED


def column_names(columns: Sequence[Column]) -> list[str]:
    """Return `unscaled` and `scaled`, or what tells columns apart: `1/d_k` and `1/√d_k`, `bfloat16` and `float32`.

    A column of a capture with the scale in the file's metadata is `file`.
    """
    return _names([(column.rule, column.multiplier, column.apart) for column in columns])


def setting_names(p: Parameters) -> list[str]:
    """Return the same for A and B before they are measured."""
    return _names([(each.scale, each.multiplier, own) for each, own in zip(settings(p), apart(p), strict=True)])


_Named: TypeAlias = tuple[str, float, Mapping[str, Value]]  # a rule, its multiplier, and what is apart


def _names(columns: Sequence[_Named]) -> list[str]:
    others = [words(apart) for _, _, apart in columns]
    rules = [_rule(column) for column in columns]
    if not any(others) and ("unscaled" in rules[:1] or "file" in rules):
        plain = [rule if rule in ("unscaled", "file") else message("scaled") for rule in rules]
        if len({*plain}) == len(plain):
            return plain
    if len({*rules}) == 1 and all(others):
        return others
    return [joined([rule, other], ", ") if other else rule for rule, other in zip(rules, others, strict=True)]


def _rule(column: _Named) -> str:
    """Return the name of a column's rule."""
    rule, multiplier, _ = column
    if rule == "file":
        return message("file")
    if rule == "custom":
        return f"× {multiplier:.4g}"
    return message("unscaled") if rule in _UNSCALED else scale_rule(rule).label
