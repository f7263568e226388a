"""What is said of a multiplier that is not the expected one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...message import counted, joined, message
from ..multipliers import Name, is_scale, near
from ..subject import StatedFacts

_LISTED = 8  # layers that are named
_ALIKE = 0.005  # relative: what rounding makes of one multiplier in several layers; bfloat16 rounds by 0.004 at most


def times(multiplier: float, words: str) -> str:
    return (
        words
        if math.isnan(multiplier)
        else message("× {multiplier:.4g}: {words}", multiplier=multiplier, words=words)
    )


def other_scale_words(multiplier: float, expected: float, facts: StatedFacts, words: str) -> str:
    """Return what is said of a multiplier that is not the expected one, beside those of other layers."""
    if twice := _twice(multiplier, expected, facts):
        return message("{words}. Look where q is made", words=twice)
    whole = facts.prescaled * multiplier
    if facts.prescaled != 1:
        words = message("altogether × {whole:.4g}: {words}", whole=whole, words=words)
        return _beside_others(words, facts, whole)
    return times(multiplier, _beside_others(words, facts, whole))


def _twice(multiplier: float, expected: float, facts: StatedFacts) -> str:
    """Return what is said of the scale that is inside q and k and applied once more; empty if it is not."""
    if not is_scale(facts.prescaled, expected * facts.prescaled) or not near(facts.prescaled, multiplier, 1e-3):
        return ""
    whole = facts.prescaled * multiplier
    twice = message(
        "layer {number} multiplies twice: q and k arrive × {inside:.4g}, attention multiplies by {multiplier:.4g} "
        "again: × {whole:.4g} in all",
        number=facts.layer,
        inside=facts.prescaled,
        multiplier=multiplier,
        whole=whole,
    )
    return _beside_others(twice, facts, whole)


def _beside_others(words: str, facts: StatedFacts, whole: float) -> str:
    """Return words on a layer's multiplier with that of most others of its kind, if it is another one."""
    of = dict(facts.others)
    alike = {usual: [number for number, each in of.items() if near(each, usual, _ALIKE)] for usual in of.values()}
    usual = max(alike, key=lambda each: len(alike[each]), default=whole)
    numbers = alike.get(usual, [])
    if 2 * len(numbers) <= len(of) or near(usual, whole, _ALIKE):
        return words
    shown = ", ".join(map(str, numbers[:_LISTED])) + ", …" * (len(numbers) > _LISTED)
    return counted("{words}; layer {shown} has × {usual}", "{words}; layers {shown} have × {usual}",
                   len(numbers), words=words, shown=shown, usual=f"{usual:.4g}")  # fmt: skip


def unusual(multiplier: float, assumed: float, facts: StatedFacts, named: Sequence[Name]) -> str:
    """Return what is said of a recorded multiplier that is not 1/√d_k, where nothing says what is intended."""
    if twice := _twice(multiplier, assumed, facts):
        template = "{words}. Look where q is made, or say what is intended with `--expect` or `--config`"
        return message(template, words=twice)
    whole, likely = facts.prescaled * multiplier, [name.cause for name in named if name.cause != "scale-other"][:2]
    seen = message(
        "× {multiplier:.4g} as recorded, where 1/√{d_k} is × {usual:.4g}",
        multiplier=whole,
        d_k=facts.d_k,
        usual=assumed * facts.prescaled,
    )
    seen = _beside_others(seen, facts, whole)
    if likely[:1] == ["prescale-extra"]:
        template = "{seen}: {words}. Say what is intended with `--expect` or `--config`"
        return message(template, seen=seen, words=named[0].words)
    template = "{seen}: {causes}? Say what is intended with `--expect` or `--config`"
    return message(template, seen=seen, causes=joined(likely or ["scale-other"], ", "))
