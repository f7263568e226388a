"""What may be intended: candidates for the multiplier of a file, and how many heads each of them fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..scales import RuleSetting, multiplier
from .groups import HeadVerdict
from .results import Product

_USUAL = ("sqrt_d_k", "d_k", "none")  # rules that are always candidates, the most common first
_ALIKE = 1e-3  # relative: what rounding makes of one multiplier at least
_ERRORS = 5.0  # standard errors


@dataclass(frozen=True)
class Expectation:
    """A candidate for what is intended."""

    rule: str | None  # a scale rule, a number or a formula of d; None: what the file and its configuration say
    multiplier: Product | None  # that of the first head; None if it is not known
    fits: int  # heads whose multiplier it is


def expectations(heads: Sequence[HeadVerdict], stated: Sequence[Product | None]) -> list[Expectation]:
    """Return what the file says, the usual rules, and the multiplier that most heads have, if it is none of these.

    `stated` is what the file and its configuration say of each head.
    """
    if not heads:
        return []
    as_stated = sum(said is not None and _is(head, said) for head, said in zip(heads, stated, strict=True))
    rows = [Expectation(None, stated[0], as_stated), *(expectation(rule, heads) for rule in _USUAL)]
    known = [head.verdict.multiplier for head in heads if head.verdict.multiplier is not None]
    if known:
        usual, _ = Counter(f"{number:.4g}" for number in known).most_common(1)[0]
        most = next(number for number in known if f"{number:.4g}" == usual)
        if not any(
            expectation.multiplier is not None and _near(expectation.multiplier, most) for expectation in rows
        ):
            rows.append(expectation(f"{most:.6g}", heads))
    return rows


def expectation(rule: str, heads: Sequence[HeadVerdict]) -> Expectation:
    """Return a rule as a candidate; raise InputError if it is none that depends on d_k and the layer alone."""
    values = [Product(multiplier(rule, RuleSetting(d_k=head.layer.d_k, layer=head.layer.index))) for head in heads]
    return Expectation(rule, values[0], sum(_is(head, value) for head, value in zip(heads, values, strict=True)))


def _is(head: HeadVerdict, candidate: Product) -> bool:
    """Return whether a head was multiplied by a candidate, as far as its error tells."""
    used, error = head.verdict.multiplier, head.verdict.multiplier_error or 0.0
    return used is not None and abs(used - candidate) <= max(_ALIKE * abs(candidate), _ERRORS * error)


def _near(one: Product, other: Product) -> bool:
    return abs(one - other) <= _ALIKE * abs(other)
