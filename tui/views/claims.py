"""Claims and what became of them: a list with verdicts, one claim in full, and all of them for print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .glyphs import Glyphs
from .lines import Line, Role, fitted, wrapped
from .numbers import short

if TYPE_CHECKING:
    from ...core.lab.claims import Claim, Finding, Outcome, Verdict

VERDICT = 15  # cells of a verdict in a list

_WORDS: dict[Verdict, tuple[str, Role]] = {
    "holds": ("holds", "scaled"),
    "holds in the limit": ("in the limit", "accent"),
    "does not hold": ("does not hold", "unscaled"),
    "not testable here": ("not testable", "dim"),
}


def claim_list(
    claims: Sequence[Claim], outcomes: Mapping[str, Outcome], cursor: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """How many are done, then a line for each claim, those around the cursor."""
    room = max(height - 2, 1)
    first = min(max(cursor - room // 2, 0), max(len(claims) - room, 0))
    done = f"{len(outcomes)} of {len(claims)} put to the test"
    lines: list[Line] = [((f" {done}", "heading"),), ()]
    for index in range(first, min(first + room, len(claims))):
        claim = claims[index]
        outcome = outcomes.get(claim.id)
        word, role = _WORDS[outcome.verdict] if outcome else (glyphs.say("…"), "dim")
        chosen = index == cursor
        mark: Role = "accent" if chosen else "text"
        name: Role = "accent" if chosen else "label"
        lines.append(
            ((glyphs.cursor if chosen else " ", mark), (word.ljust(VERDICT), role), (glyphs.say(claim.id), name))
        )
    return [fitted(line, width) for line in lines]


def claim_lines(claim: Claim, outcome: Outcome | None, width: int, glyphs: Glyphs) -> list[Line]:
    """One claim: what is said and where, the figures, the verdict, and why it is so."""
    lines: list[Line] = wrapped(glyphs.say(claim.statement), width, "heading")
    lines += [*wrapped(glyphs.say(f"Said in {claim.source}."), width, "dim"), ()]
    if outcome is None:
        lines.append((("Being put to the test", "dim"),))
    else:
        word, role = _WORDS[outcome.verdict]
        lines.append((("Verdict: ", "text"), (word, role)))
        lines += [*wrapped(glyphs.say(outcome.reason), width), ()]
        for finding in outcome.findings:
            lines += _finding(finding, width, glyphs)
        lines.append(())
    return lines + wrapped(glyphs.say(claim.why), width)


def _finding(finding: Finding, width: int, glyphs: Glyphs) -> list[Line]:
    """One figure: claimed, measured, exact."""
    role: Role = "scaled" if finding.agrees else "unscaled"
    texts = wrapped(glyphs.say(finding.label), width - 8, "label")
    texts += wrapped(glyphs.say(", ".join(_facts(finding, glyphs))), width - 8)
    signs = ["agrees" if finding.agrees else "differs", *[""] * (len(texts) - 1)]
    return [((sign.ljust(8), role), *text) for sign, text in zip(signs, texts, strict=True)]


def _facts(finding: Finding, glyphs: Glyphs) -> list[str]:
    facts = [f"claimed {finding.claimed}"]
    if finding.measured is not None and finding.measured.value is not None:
        stderr = finding.measured.stderr
        plus = f" ± {short(stderr, glyphs)}" if stderr is not None else ""
        facts.append(f"measured {short(finding.measured.value, glyphs)}{plus}")
    if finding.exact is not None:
        facts.append(f"exact {short(finding.exact, glyphs)}")
    return facts


def claims_report(outcomes: Sequence[Outcome], width: int, glyphs: Glyphs) -> list[Line]:
    """All claims for print: each with its verdict, its figures and why it is so."""
    lines: list[Line] = []
    for outcome in outcomes:
        lines += claim_lines(outcome.claim, outcome, width, glyphs)
        rule: Line = ((glyphs.rule * width, "dim"),)
        lines += [(), rule, ()]
    counts: Counter[Verdict] = Counter(outcome.verdict for outcome in outcomes)
    told = ", ".join(f"{count} {_WORDS[verdict][0]}" for verdict, count in counts.most_common())
    return [*lines, ((f"{len(outcomes)} claims: {told}", "heading"),)]
