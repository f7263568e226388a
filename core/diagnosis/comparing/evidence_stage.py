"""Compare what attention returned in two heads: log-sum-exps, weights or outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ...message import message
from ..results import STAGES, StageName
from ..subject import Kind, Subject
from .processing import Processing, percent
from .results import Stage
from .returned import Explanation, ReturnedChange, returned
from .score_change import ScoreChange

# Times what rounding and the noise of q, k and v make of what attention returned. Of 900 healthy pairs of
# benchmarks/compare_pairs.py, those on which it was tuned, outputs and weights are at 1.4 at most, lse at 2.4.
_EXPLAINED = 3.0


def evidence_stage(
    kind: Kind,
    one: Subject,
    other: Subject,
    scores: ScoreChange,
    process: Processing,
    heads: tuple[Explanation, Explanation],
    before: Mapping[StageName, Stage],
) -> Stage:
    """Compare what attention returned; `before` are the stages so far."""
    a, b = (next((each for each in subject.evidence if each.kind == kind), None) for subject in (one, other))
    if a is None or b is None:
        where = "neither file" if a is b else "only the reference" if b is None else "only the other capture"
        known = process.differences.get(kind)
        if known is not None:
            return known
        unjudged = next((subject.facts for subject in (one, other) if not subject.facts.judges_outputs), None)
        if kind == "o" and unjudged is not None:
            how = ", ".join([*unjudged.changed, *(["dropout"] if unjudged.dropout else [])])
            says = message("how the weights met the values was not followed")
            if how:
                says = message("weights were changed ({how})", how=how)
            return Stage(kind, "not-compared", says, changed=True)
        says = (
            message("{where} has them", where=where) if kind == "weights" else message("{where} has it", where=where)
        )
        return Stage(kind, "not-compared", says)
    # Scores that differ are no noise: what follows from them must not pass for the same.
    apart = before["qk"].state == "differs"
    scaled = scores.factor if before["multiplier"].state == "differs" else _ratio(heads, scores.factor)
    found = returned(kind, a, b, heads, None if apart else scaled)
    change = found.change
    known = process.differences.get(kind)
    if known is not None:
        return replace(known, change=change)
    if change <= 1.5 and not found.exact:
        return Stage(kind, "same", _noise_words(found), change)
    cause: StageName | None = next((stage.name for stage in before.values() if stage.state == "differs"), None)
    if cause is not None:
        words = "{change:.2g} × rounding, as {stages} differ before"
        return Stage(kind, "follows", message(words, change=change, stages=STAGES[cause]), change)
    if change <= _EXPLAINED and not found.exact:
        return Stage(kind, "same", _noise_words(found), change)
    if kind != "lse" and all(each.verdict.cause == "dropout-on" for each in (process.reference, process.test)):
        return Stage(kind, "not-compared", message("dropout was on in both: weights were dropped at random"), change)
    return Stage(kind, "differs", _difference(kind, found), change)


def _ratio(heads: tuple[Explanation, Explanation], factor: float) -> float:
    """Return how many times as large the other's scores are, by the multipliers; else `factor`."""
    before, after = (head.multiplier for head in heads)
    return before / after if after and 0 < before / after < math.inf else factor


def _noise_words(change: ReturnedChange) -> str:
    if change.predicted:
        return message("{change:.2g} × rounding, beside what the noise of q, k and v explains", change=change.change)
    return rounding_words(change.change)


def _difference(kind: Kind, found: ReturnedChange) -> str:
    """Return how what attention returned differs, where nothing before it does."""
    factor, change = found.factor, found.change
    if found.more:
        more = f"{found.more:+.4g}".replace("-", "−")
        return message(
            "log-sum-exps are those of the reference {more}: {change:.2g} × rounding", more=more, change=change
        )
    if factor != 1:
        words = {
            "lse": "log-sum-exps are × {factor:.4g} of the reference's: {change:.2g} × rounding",
            "weights": "weights are × {factor:.4g} of the reference's: {change:.2g} × rounding",
            "o": "outputs are × {factor:.4g} of the reference's: {change:.2g} × rounding",
        }[kind]
        return message(words, factor=factor, change=change)
    if not math.isfinite(change):
        return message("numbers that cannot be compared")
    words = "{size} of their size off: {change:.2g} × rounding, and no stage before explains it"
    return message(words, size=percent(found.size), change=change)


def rounding_words(change: float) -> str:
    """Return a change in units of rounding."""
    return "the same numbers" if change == 0 else message("{change:.2g} × rounding", change=change)
