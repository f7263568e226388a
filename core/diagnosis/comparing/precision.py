"""Compare the number formats of the scores of two heads, where rounding to one of them changes attention."""

from __future__ import annotations

from dataclasses import dataclass

from ...message import message
from ..causes.coarse import rounding
from ..fitting.evidence import is_short, unit
from .returned import Explanation, score_format

# Nats of KL(exact ‖ rounded) below which nothing changes: those of two equal keys whose scores are rounded twice to
# steps of 0.1, 0.1²/12 for each rounding, times p(1 − p)/2.
_NOTHING = 2e-4


@dataclass(frozen=True)
class CoarseScores:
    """The scores of one head are rounded coarsely, and those of the other less."""

    format: str
    place: int  # 0 for the reference, 1 for the other head
    says: str


def coarse_scores(one: Explanation, other: Explanation) -> CoarseScores | None:
    """Return which head's scores are rounded more coarsely than the other's, if that changes attention."""
    before, after = (score_format(subject) for subject in (one, other))
    if before is None or after is None or unit(before) == unit(after):
        return None
    place = int(unit(after) > unit(before))
    head, format, finer = (other, after, before) if place else (one, before, after)
    if not is_short(format) or head.model.axis != -1:
        return None
    found = rounding(head.model, head.theta, head.subject.used, format)
    if found is None or not found.divergence > _NOTHING:
        return None
    words = (
        "scores are rounded to {format}, in steps of up to {step:.3g} of logit: KL(exact ‖ rounded) {kl:.2g} nats; "
        "they are in {finer} in the reference"
        if place
        else "scores are in {finer}; in the reference they are rounded to {format}, in steps of up to {step:.3g} of "
        "logit: KL(exact ‖ rounded) {kl:.2g} nats"
    )
    return CoarseScores(
        format, place, message(words, format=format, step=found.step, kl=found.divergence, finer=finer)
    )
