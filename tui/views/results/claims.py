"""The claims as lines: one claim in full, the figures of all, and all of them in full for print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, TypeAlias

from ....core.learning.claim import UNCLAIMED, VERDICT_WORDS
from ....core.learning.sources import figure_text
from ....core.message import counted, joined, message
from ....core.statistics.measurement import NOTHING
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, ends, fitted, middle_cut, wrapped
from ..numbers import signed

if TYPE_CHECKING:
    from ....core.learning.claim import Claim, Verdict
    from ....core.learning.outcome import ClaimFinding, Outcome

FigureCells: TypeAlias = tuple[str, str, str, str, str]  # the sign, the label, the claimed, measured and exact values

_SIGN = 10  # cells before a figure
_GAP = 2  # cells between columns of the table of figures
_LONGEST_CLAIM = 24  # cells of a claimed value, which may be a few words
_LEAST_LABEL = 20  # cells of a figure's label

_ROLES: dict[Verdict, Role] = {
    "holds": "scaled",
    "holds in the limit": "accent",
    "depends on the measure": "accent",
    "does not hold": "unscaled",
    "not testable here": "dim",
}


def claim_lines(
    claim: Claim, outcome: Outcome | None, width: int, glyphs: Glyphs, tabular: bool = False
) -> list[Line]:
    """Return one claim: the statement, its source, the verdict, the figures, and why it is true or false.

    The figures are a table if `tabular` and it fits.
    """
    lines: list[Line] = wrapped(glyphs.say(claim.statement), width, "heading")
    lines += [*wrapped(glyphs.say("From {source}.", source=claim.source), width, "dim"), ()]
    if outcome is None:
        lines += [*wrapped(glyphs.say("Not tested yet"), width, "dim"), ()]
    else:
        lines.append(((glyphs.say("Verdict: "), "text"), verdict_word(outcome.verdict, glyphs)))
        lines += [*wrapped(glyphs.say(outcome.reason), width), ()]
        table = figure_table(outcome.findings, width, glyphs) if tabular else []
        lines += table or [line for finding in outcome.findings for line in _finding(finding, width, glyphs)]
        if outcome.findings:
            lines.append(())
    return lines + wrapped(glyphs.say(claim.why), width)


def figure_table(findings: Sequence[ClaimFinding], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the figures as a table: figure, claimed, measured, exact, and ✓ or ✗; empty if it does not fit.

    In a narrow table the name of a figure stands above its values.
    """
    rows = [titles(glyphs), *at_sign([cells_of(finding, glyphs) for finding in findings], glyphs)]
    claimed, measured, exact = (max(cells(row[column]) for row in rows) for column in (2, 3, 4))
    claimed = min(claimed, _LONGEST_CLAIM)
    longest = max(cells(row[1]) for row in rows)
    values = claimed + measured + exact + 2 * _GAP
    room = min(width - 2 - values - _GAP, longest)
    above = room < min(_LEAST_LABEL, longest)
    if not findings or values + 2 > width:
        return []
    lines: list[Line] = []
    gap = " " * _GAP
    for number, (sign, label, says, found, known) in enumerate(rows):
        name: Role = "dim" if number == 0 else "label"
        role: Role = "scaled" if sign == glyphs.say("✓") else "unscaled"
        labels = [text for ((text, _),) in wrapped(label, width - 2 if above else room)]
        if above:
            for at, text in enumerate(labels):
                lines.append(((to_left(sign if at == 0 else "", 2), role), (text, name)))
            sign, labels = "", []
        said = [text for ((text, _),) in wrapped(says, claimed)]
        for at, (text, words) in enumerate(zip_longest(labels, said, fillvalue="")):
            ends_ = (found, known) if at == 0 else ("", "")
            line: Line = () if above else ((to_left(text, room) + gap, name),)
            lines.append(
                (
                    (to_left(sign if at == 0 else "", 2), role),
                    *line,
                    (to_right(words, claimed) + gap + to_right(ends_[0], measured), name if number == 0 else "text"),
                    (gap + to_right(ends_[1], exact), "dim" if number == 0 else "theory"),
                )
            )
    return lines


def titles(glyphs: Glyphs) -> FigureCells:
    """Return the headings of the cells of a figure."""
    return "", glyphs.say("figure"), glyphs.say("claimed"), glyphs.say("measured"), glyphs.say("exact")


def cells_of(finding: ClaimFinding, glyphs: Glyphs) -> FigureCells:
    """Return the sign, the label, and the claimed, measured and exact values of a figure."""
    compared = finding.claimed != UNCLAIMED.words
    sign = ("✓" if finding.agrees else "✗") if compared else ""
    measured, stderr = finding.measured or NOTHING
    spread = "" if stderr is None else f" ± {figure_text(stderr, 2)}"
    values = (
        finding.claimed if compared else "–",
        "–" if measured is None else figure_text(measured) + spread,
        "–" if finding.exact is None else figure_text(finding.exact),
    )
    claimed, found, exact = (glyphs.say(signed(glyphs.say(text), glyphs)) for text in values)
    return glyphs.say(sign), glyphs.say(finding.label), claimed, found, exact


def at_sign(rows: Sequence[FigureCells], glyphs: Glyphs) -> list[FigureCells]:
    """Return the cells of figures; measured values are padded, so that their ± are in one line if right-aligned."""
    sign = glyphs.say("±")
    parts = [found.partition(sign) for _, _, _, found, _ in rows]
    longest = max((cells(error) for _, found, error in parts if found), default=0)
    unsigned = " " * (cells(sign) + 1) * bool(longest)
    padded = [value + (found or unsigned) + to_left(error, longest) for value, found, error in parts]
    return [(*row[:3], found, row[4]) for row, found in zip(rows, padded, strict=True)]


def verdict_word(verdict: Verdict, glyphs: Glyphs) -> Span:
    """Return the verdict in words."""
    return glyphs.say(VERDICT_WORDS[verdict]), _ROLES[verdict]


def _finding(finding: ClaimFinding, width: int, glyphs: Glyphs) -> list[Line]:
    """Return one figure: whether it matches the claim, its label, and the claimed, measured and exact values."""
    sign, role = (message("✓ matches"), "scaled") if finding.agrees else (message("✗ off"), "unscaled")
    sign = "" if finding.claimed == UNCLAIMED.words else sign
    facts = _facts(finding, glyphs)
    texts = wrapped(glyphs.say(finding.label), width - _SIGN, "label") + wrapped(facts, width - _SIGN)
    signs = [glyphs.say(sign), *[""] * (len(texts) - 1)]
    return [((to_left(sign, _SIGN), role), *text) for sign, text in zip(signs, texts, strict=True)]


def _facts(finding: ClaimFinding, glyphs: Glyphs) -> str:
    """Return the claimed value, the measured one with its standard error, and the exact one, as far as known."""
    values: list[str] = []
    claimed = "" if finding.claimed == UNCLAIMED.words else signed(glyphs.say(finding.claimed), glyphs)
    if finding.measured is not None and finding.measured.value is not None:
        stderr = finding.measured.stderr
        plus = f" ± {figure_text(stderr, 2)}" if stderr is not None else ""
        number = signed(figure_text(finding.measured.value) + plus, glyphs)
        values.append(message("measured {number}", number=number) if claimed else number)
    if finding.exact is not None:
        values.append(message("exact {number}", number=signed(figure_text(finding.exact), glyphs)))
    facts = ", ".join(map(glyphs.say, values))
    if not claimed:
        return glyphs.say("for comparison: {facts}", facts=facts)
    return glyphs.say("claimed {claimed}, {facts}", claimed=claimed, facts=facts)


def claims_report(outcomes: Sequence[Outcome], width: int, glyphs: Glyphs) -> list[Line]:
    """Return all claims in full, for print, and the number of each verdict."""
    lines: list[Line] = []
    for outcome in outcomes:
        lines += claim_lines(outcome.claim, outcome, width, glyphs)
        rule: Line = ((glyphs.rule * width, "dim"),)
        lines += [(), rule, ()]
    return [*lines, *wrapped(verdict_counts(outcomes, glyphs), width, "heading")]


def verdict_counts(outcomes: Sequence[Outcome], glyphs: Glyphs) -> str:
    """Return how many claims were tested, and the number of each verdict."""
    counts: Counter[Verdict] = Counter(outcome.verdict for outcome in outcomes)
    told = [
        counted("{number} {judged}", "{number} {judged}", count, judged=VERDICT_WORDS[verdict])
        for verdict, count in counts.most_common()
    ]
    return glyphs.say("{count} claims: {told}", count=len(outcomes), told=joined(told, ", "))


LEAST_WIDTH, LEAST_HEIGHT = 110, 10  # cells and lines of a table worth showing
_APART = "  "
_TITLE, _CLAIMED = 30, 16  # most cells of a claim's title and of a claimed value


def overview_lines(
    outcomes: Mapping[str, Outcome], chosen: str, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return a row for each figure tested so far, at most `height` lines; those of the chosen claim are marked."""
    cursor = [*outcomes].index(chosen) if chosen in outcomes else -1
    names: list[tuple[int, str]] = []  # of each row: which claim it is of, and its title in the first one
    figures: list[FigureCells] = []
    for at, outcome in enumerate(outcomes.values()):
        for number, finding in enumerate(outcome.findings):
            names.append((at, glyphs.say(outcome.claim.title or outcome.claim.id) if number == 0 else ""))
            figures.append(cells_of(finding, glyphs))
    if not figures:
        return []
    rows = [(*name, texts) for name, texts in zip(names, at_sign(figures, glyphs), strict=True)]
    counts: Line = ((verdict_counts([*outcomes.values()], glyphs), "dim"),)
    lines = [ends(((glyphs.say("all figures"), "heading"),), counts, width)]
    head, name_of_title = titles(glyphs), glyphs.say("claim")
    room = max(height - 2, 0)
    first = _first_row([at for at, _, _ in rows], cursor, room)
    title = max(min(max(cells(text) for _, text, _ in rows), _TITLE), cells(name_of_title))
    columns = [head, *(texts for _, _, texts in rows)]  # of all rows, so that widths do not change with the cursor
    claimed, measured, exact = (max(cells(row[at]) for row in columns) for at in (2, 3, 4))
    claimed = min(claimed, _CLAIMED)
    label = min(
        max(width - 3 - title - claimed - measured - exact - 4 * len(_APART), 0),
        max(cells(row[1]) for row in columns),
    )
    sign = glyphs.say("…")

    def line(mark: str, name: str, texts: Sequence[str], names: Role, others: Role) -> Line:
        verdict: Role = "scaled" if texts[0] == glyphs.say("✓") else "unscaled"
        says = middle_cut(texts[2], claimed, sign)
        room = label + claimed - cells(says)  # a long name has also what a short claimed value leaves
        return fitted(
            (
                (to_left(mark, 1), "accent"),
                (to_left(middle_cut(name, title, sign), title) + _APART, names),
                (to_left(texts[0], 2), verdict),
                (to_left(middle_cut(texts[1], room, sign), room) + _APART, names),
                (says + _APART, others),
                (to_right(texts[3], measured) + _APART, others),
                (to_right(texts[4], exact), "accent" if others == "accent" else "theory"),
            ),
            width,
        )

    lines.append(line("", name_of_title, head, "dim", "dim"))
    for at, name, texts in rows[first : first + room]:
        roles: tuple[Role, Role] = ("accent", "accent") if at == cursor else ("label", "text")
        lines.append(line(glyphs.cursor if at == cursor else "", name, texts, *roles))
    return lines


def _first_row(claims: Sequence[int], cursor: int, room: int) -> int:
    """Return the first row of the page with the selected claim, given the claim of each row.

    A page ends before a claim that does not fit, so that a step within a page moves nothing but the mark.
    """
    first = 0
    for at, rows in groupby(range(len(claims)), key=claims.__getitem__):
        start, *others = rows
        if start + 1 + len(others) > first + room:
            first = start
        if at >= cursor:
            break
    return min(first, max(len(claims) - room, 0))
