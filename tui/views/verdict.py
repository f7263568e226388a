"""What a head amounts to, in a word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ...core.statistics.catalogue import ONE_HOT, SINK
from ...core.statistics.measurement import Estimate

Verdict: TypeAlias = Literal["", "no keys", "nearly uniform", "sink", "one-hot"]

UNIFORM = 0.98  # from this share of ln n on, the weights of a row are close to equal


def verdict(measured: Mapping[str, Estimate]) -> Verdict:
    """The first word that fits; none for a head that spreads its weight in between.

    Uniform weights go first, since with few keys the first of them holds much; a sink goes before one-hot, since
    low entropy on the first key is no look-up.
    """
    max_weight = measured["max_weight"].value
    if max_weight is None:
        return "no keys"
    fraction = measured["entropy_fraction"].value
    if fraction is not None and fraction > UNIFORM:
        return "nearly uniform"
    first = measured["first_key_weight"].value
    if first is not None and first > SINK and fraction is not None:
        return "sink"
    return "one-hot" if max_weight > ONE_HOT else ""
