"""The list of claims with a cursor, and the text of the selected claim."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events

from ....core.message import message
from ...views.lines import Line
from ...views.results.claims import LEAST_HEIGHT, LEAST_WIDTH, claim_lines, claim_list, first_claim, overview_lines
from ...widgets.lines import LinesWidget, ScrolledLines

_CLAIM = 19  # lines above the figures of all claims, for all but the longest: so they stay in place

if TYPE_CHECKING:
    from ....core.claims.claim import Claim, Outcome


class ClaimListing(LinesWidget):
    """Shows the claims and their verdicts."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    def __init__(self, go: Callable[[int], object]) -> None:
        """Call `go` with a number of claims to move by."""
        super().__init__()
        self._go = go
        self.claims: Sequence[Claim] = ()
        self.outcomes: dict[str, Outcome] = {}
        self.cursor = 0

    @property
    def chosen(self) -> Claim | None:
        """The claim with the cursor."""
        return self.claims[self.cursor] if self.claims else None

    def heading(self, width: int) -> Line:
        return (
            (
                self.glyphs.say(
                    "{tested} of {claims} claims tested", tested=len(self.outcomes), claims=len(self.claims)
                ),
                "heading",
            ),
        )

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return claim_list(self.claims, self.outcomes, self.cursor, width, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        y = self.place_of(event).y
        at = y + first_claim(len(self.claims), self.cursor, self.room.height)
        if y >= 0 and at < len(self.claims):
            self._go(at - self.cursor)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self._go(direction)

    def move(self, step: int) -> None:
        """Move the cursor, at most to the first or last claim."""
        self.cursor = min(max(self.cursor + step, 0), max(len(self.claims) - 1, 0))
        self.redraw()


class ClaimText(ScrolledLines):
    """Shows a claim in full."""

    DEFAULT_CLASSES = "region"

    claim: Claim | None = None
    outcome: Outcome | None = None

    def __init__(self, listing: ClaimListing) -> None:
        """Take the list of claims; where there is room below a claim, the figures of all are shown."""
        super().__init__()
        self._listing = listing

    def show(self, claim: Claim | None, outcome: Outcome | None) -> None:
        """Show a claim; scroll to the top if it is another one."""
        if claim is not self.claim:
            self.top = 0
        self.claim, self.outcome = claim, outcome
        self.redraw()

    def heading(self, width: int) -> Line:
        title = (self.claim.title or self.claim.id) if self.claim else message("the claim")
        return ((self.glyphs.say(title), "heading"),)

    def note(self) -> Line:
        return ((self.claim.id, "dim"),) if self.claim else ()

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.claim is None:
            return ()
        lines = claim_lines(self.claim, self.outcome, width - 1, self.glyphs, True)
        above = max(len(lines), _CLAIM)
        if width >= LEAST_WIDTH and height - above > LEAST_HEIGHT:
            claims, found, at = self._listing.claims, self._listing.outcomes, self._listing.cursor
            table = overview_lines(claims, found, at, width - 1, height - above - 1, self.glyphs)
            lines += [()] * (above + 1 - len(lines)) + table
        return lines
