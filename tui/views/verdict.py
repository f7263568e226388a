"""The verdict on a head, in a word or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ...core.statistics.catalogue import ONE_HOT, SINK
from ...core.statistics.measurement import Estimate

Verdict: TypeAlias = Literal["", "no keys", "nearly uniform", "sink", "one-hot"]

UNIFORM = 0.98  # above this share of ln n, the weights of a row are nearly equal


def verdict(measured: Mapping[str, Estimate]) -> Verdict:
    """Return the first verdict that applies, or "".

    Uniform weights are tested first because with few keys the first one gets much of the weight; sinks before one-hot
    heads because low entropy on the first key is not a look-up.
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
