"""Export the outcomes of claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..claims.claim import VERDICT_WORDS
from ..statistics.measurement import Estimate
from .columns import estimate_json
from .formats import Say, csv_text, escaped, existing, json_text, version

if TYPE_CHECKING:
    from ..claims.claim import Outcome

_CLAIMS = "attn-tui/claims-1"


def claims_json(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes of claims as one JSON object."""
    return json_text(
        {
            "schema": _CLAIMS,
            "version": version(),
            "claims": [
                {
                    "id": outcome.claim.id,
                    "statement": outcome.claim.statement,
                    "source": outcome.claim.source,
                    "verdict": outcome.verdict,
                    "reason": outcome.reason,
                    "why": outcome.claim.why,
                    "figures": [
                        {
                            "label": finding.label,
                            "claimed": finding.claimed,
                            "measured": None if finding.measured is None else estimate_json(finding.measured),
                            "exact": existing(finding.exact),
                            "agrees": finding.agrees,
                        }
                        for finding in outcome.findings
                    ],
                }
                for outcome in outcomes
            ],
        }
    )


def claims_csv(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each figure, and one for each claim without figures."""
    lines: list[list[Any]] = []
    for outcome in outcomes:
        place = [outcome.claim.id, outcome.verdict]
        for finding in outcome.findings:
            measured = finding.measured or Estimate(None, None)
            known = [existing(number) for number in (*measured, finding.exact)]
            lines.append([*place, finding.label, finding.claimed, *known, finding.agrees])
        if not outcome.findings:
            lines.append([*place, *[None] * 6])
    return csv_text(["claim", "verdict", "figure", "claimed", "measured", "stderr", "exact", "agrees"], lines)


def claims_markdown(outcomes: Sequence[Outcome], say: Say = str) -> str:
    """Return a table with a line for each claim: its verdict in words, statement and the reason for the verdict."""
    rule = "| verdict | claim | because |\n| :-- | :-- | :-- |\n"
    lines = ((VERDICT_WORDS[outcome.verdict], outcome.claim.statement, outcome.reason) for outcome in outcomes)
    return rule + "".join(f"| {' | '.join(escaped(text, say) for text in line)} |\n" for line in lines)
