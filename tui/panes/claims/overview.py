"""The figures of all claims as one table, for screens with room below the selected claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, ends, fitted, middle_cut
from .view import FigureCells, at_sign, cells_of, titles, verdict_counts

if TYPE_CHECKING:
    from ....core.claims.claim import Claim, Outcome

LEAST_WIDTH, LEAST_HEIGHT = 110, 10  # cells and lines of a table worth showing
_GAP = "  "
_TITLE, _CLAIMED = 30, 16  # most cells of a claim's title and of a claimed value


def overview_lines(
    claims: Sequence[Claim], outcomes: Mapping[str, Outcome], cursor: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return a row for each figure tested so far, at most `height` lines; those of the selected claim are marked."""
    names: list[tuple[int, str]] = []  # of each row: which claim it is of, and its title in the first one
    figures: list[FigureCells] = []
    for at, claim in enumerate(claims):
        outcome = outcomes.get(claim.id)
        for number, finding in enumerate(outcome.findings if outcome else ()):
            names.append((at, glyphs.say(claim.title or claim.id) if number == 0 else ""))
            figures.append(cells_of(finding, glyphs))
    if not figures:
        return []
    rows = [(*name, texts) for name, texts in zip(names, at_sign(figures, glyphs), strict=True)]
    found = (outcomes[claim.id] for claim in claims if claim.id in outcomes)
    counts: Line = ((verdict_counts(list(found), glyphs), "dim"),)
    lines = [ends(((glyphs.say("all figures"), "heading"),), counts, width)]
    head, name_of_title = titles(glyphs), glyphs.say("claim")
    room = max(height - 2, 0)
    first = _first_row([at for at, _, _ in rows], cursor, room)
    title = max(min(max(cells(text) for _, text, _ in rows), _TITLE), cells(name_of_title))
    columns = [head, *(texts for _, _, texts in rows)]  # of all rows, so that widths do not change with the cursor
    claimed, measured, exact = (max(cells(row[at]) for row in columns) for at in (2, 3, 4))
    claimed = min(claimed, _CLAIMED)
    label = min(
        max(width - 3 - title - claimed - measured - exact - 4 * len(_GAP), 0), max(cells(row[1]) for row in columns)
    )
    sign = glyphs.say("…")

    def line(mark: str, name: str, texts: Sequence[str], names: Role, others: Role) -> Line:
        verdict: Role = "scaled" if texts[0] == glyphs.say("✓") else "unscaled"
        says = middle_cut(texts[2], claimed, sign)
        room = label + claimed - cells(says)  # a long name has also what a short claimed value leaves
        return fitted(
            (
                (to_left(mark, 1), "accent"),
                (to_left(middle_cut(name, title, sign), title) + _GAP, names),
                (to_left(texts[0], 2), verdict),
                (to_left(middle_cut(texts[1], room, sign), room) + _GAP, names),
                (says + _GAP, others),
                (to_right(texts[3], measured) + _GAP, others),
                (to_right(texts[4], exact), "accent" if others == "accent" else "theory"),
            ),
            width,
        )

    lines.append(line("", name_of_title, head, "dim", "dim"))
    for at, name, texts in rows[first : first + room]:
        chosen = at == cursor
        roles: tuple[Role, Role] = ("accent", "accent") if chosen else ("label", "text")
        lines.append(line(glyphs.cursor if chosen else "", name, texts, *roles))
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
