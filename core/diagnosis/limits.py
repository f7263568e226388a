"""The limits of a check; loads no numbers, so that a program that only names them starts fast."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import cast

from ..errors import InputError
from ..message import short


@dataclass(frozen=True)
class Limits:
    """What a head may be; None means any value."""

    max_logit: float = 100.0  # the largest |logit|, before a soft-cap
    max_capped: float = 0.5  # the share of logits beyond 2 soft-caps, where its slope is below 0.07
    min_spread: float = 0.01  # the standard deviation of logits within rows
    min_token_spread: float = 0.05  # of q and of k: the length of what differs between tokens over their length
    min_file_entropy: float = 0.2  # the median over heads of entropy / ln n
    min_entropy: float | None = None  # of a head, over ln n
    max_one_hot: float | None = None  # share of rows
    max_first_key: float | None = None  # weight
    set: frozenset[str] = frozenset()  # those that the user chose


LIMITS = tuple(field.name for field in fields(Limits) if field.name != "set")


def limit(value: object, where: str) -> float:
    """Return a number from 0 up, which may be a text; raise InputError, which begins with `where`, if it is none."""
    try:
        number = float(cast(str, value)) if isinstance(value, (str, int, float)) else -1.0
    except (ValueError, OverflowError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        shown = short(repr(value))
        raise InputError("{where}: must be a number from 0 up, not {value}", where=where, value=shown)
    return number
