"""Numbers that are not finite: in q and k, in scores that overflow their format, and in evidence."""

from __future__ import annotations

import numpy as np

from ...arrays import BoolArray
from ...attention.formats import FORMATS
from ...message import message
from ..multipliers import expected_multiplier
from ..results import Expected, Finding, StageName, Verdict
from ..subject import Evidence, StatedFacts, Subject


def scores_not_finite(subject: Subject, expected: Expected, bad: int, count: int) -> Verdict:
    """Return the verdict on a head some of whose scores were not finite, though its queries and keys are."""
    short = subject.facts.scores or subject.format
    largest, limit = _largest_score(subject), _limit(short)
    says = message("{bad:,} of {count:,} scores of the layer are NaN or infinite", bad=bad, count=count)
    if largest > limit:
        words = (
            "{bad:,} of {count:,} scores of the layer overflowed {format}: |q·k| is up to {largest:,.6g}, and "
            "{format} ends at {limit:,.6g}"
        )
        says = message(words, bad=bad, count=count, format=short, largest=largest, limit=limit)
    return Verdict("cause", says, expected, (Finding("not-finite", says, stage="qk", born=True),))


def would_overflow(subject: Subject) -> str:
    """Return that scores in the format of q and k would overflow, if they would; else nothing."""
    largest, short = _largest_score(subject), subject.facts.scores or subject.format
    if short != "float16" or largest <= _limit(short):
        return ""
    words = "in {format} scores would overflow: q·k is up to {largest:,.6g}, and {format} ends at {limit:,.6g}"
    return message(words, format=short, largest=largest, limit=_limit(short))


def _largest_score(subject: Subject) -> float:
    return float(np.abs(subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0)).max())


def _limit(short: str) -> float:
    """Return the largest number of a format, float32's for one that is not known."""
    return FORMATS[short if short in FORMATS else "float32"].largest


def rows_lost(facts: StatedFacts) -> Finding | None:
    """Return that queries which see no key are NaN from here on, if they are."""
    if facts.lost is None:
        return None
    bad, count, place = facts.lost
    words = "{bad:,} of {count:,} queries see no key, and are NaN in {place}"
    says = message(words, bad=bad, count=count, place=place)
    return Finding("not-finite", says, stage="mask", born=True)


def not_finite(facts: StatedFacts, says: str, stage: StageName = "qk") -> Verdict:
    """Return the verdict on a head whose q, k or v cannot be used."""
    return Verdict("cause", says, expected_multiplier(facts, None), (Finding("not-finite", says, stage=stage),))


def inputs_not_finite(subject: Subject) -> str | None:
    for name, x in (("q", subject.q), ("k", subject.k)):
        if not (np.isfinite(x.sum()) or np.isfinite(x).all()):  # a sum needs no second array
            return name
    return None


def rows_not_finite(subject: Subject, evidence: Evidence, wrong: BoolArray) -> Finding:
    """Return where numbers of evidence that are not finite, in these of the rows that see a key, come from."""
    kind, short = evidence.kind, subject.facts.scores or subject.format
    says = message(
        "{kind}: {rows} of {count} rows have values that are NaN or infinite",
        kind=kind,
        rows=int(wrong.sum()),
        count=len(wrong),
    )
    shown = np.abs(subject.scores if subject.seen is None else np.where(subject.seen, subject.scores, 0))
    largest, limit = shown.max(axis=-1)[subject.used], _limit(short)
    if np.any(wrong & (largest > limit)) and not np.any(wrong & (largest < limit / 2)):
        words = (
            "{bad:,} of {count:,} scores pass {format}: |q·k| is up to {largest:,.6g}, and {format} ends at "
            "{limit:,.6g}; {says}"
        )
        bad = int((shown > limit).sum())
        count = shown.size if subject.seen is None else int(np.broadcast_to(subject.seen, shown.shape).sum())
        says = message(words, bad=bad, count=count, largest=largest.max(), format=short, limit=limit, says=says)
        return Finding("not-finite", says, stage="qk")
    return Finding("not-finite", says, stage=kind)
