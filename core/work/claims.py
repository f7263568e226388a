"""Tests of claims, cut into parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..claims import catalogue
from ..claims.claim import Outcome, without_figures
from ..claims.examine import examine
from .part import Part, Steps

_SECONDS = 0.5  # that a claim takes


def claim_parts(first: str = "", ids: Sequence[str] = ()) -> Iterator[Part[Outcome]]:
    """Yield a part for each claim, or those of `ids`, that of the `first` id before the others."""
    for claim in sorted(catalogue.CLAIMS, key=lambda each: each.id != first):
        if ids and claim.id not in ids:
            continue
        yield Part(examine_claim, (claim.id,), _SECONDS)


def examine_claim(claim: str) -> Steps[Outcome]:
    """Test the claim of this id; the outcome has no figures, whose sources cannot be sent."""
    outcome = examine(next(each for each in catalogue.CLAIMS if each.id == claim))
    yield 1.0, (replace(outcome, claim=without_figures(outcome.claim)),)
