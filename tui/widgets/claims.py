"""The list of claims with a cursor, and the one it stands on in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..views.claims import claim_lines, claim_list
from ..views.lines import Line, Role, fitted
from .lines import LinesWidget

if TYPE_CHECKING:
    from ...core.lab.claims import Claim, Outcome


class ClaimList(LinesWidget):
    """Shows the claims and their verdicts."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: Sequence[Claim] = ()
        self.outcomes: dict[str, Outcome] = {}
        self.cursor = 0

    @property
    def chosen(self) -> Claim | None:
        """The claim with the cursor."""
        return self.claims[self.cursor] if self.claims else None

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return claim_list(self.claims, self.outcomes, self.cursor, width, height, self.glyphs)

    def move(self, step: int) -> None:
        """Move the cursor, as far as there are claims."""
        self.cursor = min(max(self.cursor + step, 0), max(len(self.claims) - 1, 0))
        self.redraw()


class ClaimText(LinesWidget):
    """Shows one claim in full; what does not fit is reached by scrolling, and the last line says so."""

    claim: Claim | None = None
    outcome: Outcome | None = None
    top = 0

    def show(self, claim: Claim | None, outcome: Outcome | None) -> None:
        """Show this claim; another one begins at its top."""
        if claim is not self.claim:
            self.top = 0
        self.claim, self.outcome = claim, outcome
        self.redraw()

    def scroll_by(self, lines: int) -> None:
        """Show what stands further down, or up."""
        self.top = max(self.top + lines, 0)
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.claim is None:
            return ()
        lines = claim_lines(self.claim, self.outcome, width - 1, self.glyphs)
        self.top = min(self.top, max(len(lines) - height + 1, 0)) if len(lines) > height else 0
        shown = lines[self.top : self.top + height]
        if self.top + height < len(lines):
            dim: Role = "dim"
            shown[-1] = ((f"{len(lines) - self.top - height + 1} more lines: PgDn", dim),)
        return [fitted(line, width) for line in shown]
