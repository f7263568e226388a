"""What is said of a multiplier that is not the expected one."""

from __future__ import annotations

from collections.abc import Sequence

from ...message import joined, message
from ..multipliers import Name, is_scale, near
from ..results import Finding, amount
from ..subject import StatedFacts

_ALIKE = 1e-3  # relative: what rounding makes of one factor that is inside q and k, and applied again


def other_scale(multiplier: float, expected: float, facts: StatedFacts, named: Sequence[Name]) -> Finding:
    """Return the finding that q·k as stored was multiplied by another number, which has these names."""
    first, *others = named
    words = _composed(multiplier, expected, facts, first.words)
    return Finding(first.cause, words, tuple(each.cause for each in others))


def _composed(multiplier: float, expected: float, facts: StatedFacts, words: str) -> str:
    """Return why the multiplier is what it is: of which factors it is the product, if there are several."""
    if facts.prescaled == 1:
        return words
    arrives, applied = _arriving(facts), amount(multiplier)
    whole = facts.product(multiplier)
    if is_scale(facts.prescaled, expected * facts.prescaled) and near(facts.prescaled, multiplier, _ALIKE):
        return message(
            "applied twice: {arrives}, then attention × {again:.4g} again", arrives=arrives, again=multiplier
        )
    if near(whole, 1, _ALIKE):
        return message("not scaled: {arrives}, which undoes attention's {applied}", arrives=arrives, applied=applied)
    if near(multiplier, 1, _ALIKE):
        return message("{words}: {arrives}", words=words, arrives=arrives)
    return message("{words}: {arrives}, then attention {applied}", words=words, arrives=arrives, applied=applied)


def _arriving(facts: StatedFacts) -> str:
    """Return what q and k contain: `q arrives × 0.1768`."""
    sides = [
        message("{side} arrives {amount}", side=side, amount=amount(factor))
        for side, factor in zip(("q", "k"), facts.inside, strict=True)
        if factor != 1
    ]
    return joined(sides, ", ")


def unusual(multiplier: float, assumed: float, facts: StatedFacts, named: Sequence[Name]) -> tuple[str, Finding]:
    """Return what is said of a recorded multiplier that is not 1/√d_k, where nothing says what is intended."""
    found = other_scale(multiplier, assumed, facts, named)
    says = message(
        "{used}, where 1/√{d_k} is {usual}: {why}?",
        used=amount(facts.product(multiplier)),
        d_k=facts.d_k,
        usual=amount(facts.product(assumed)),
        why=found.says,
    )
    return says, found
