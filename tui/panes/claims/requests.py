"""The request of the Claims pane: to test every claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ...compute.question import Question
from ...compute.request import Cache, Priority, Request, Work

if TYPE_CHECKING:
    from ....core.claims.claim import Claim, Outcome
    from ....core.program.text import Dialect
    from ....core.tables.table import Table


@dataclass(frozen=True)
class CheckClaims(Question["Sequence[Outcome]"]):
    """Test every claim. Answered by ClaimList, then by an Outcome for each claim when ready."""

    first: str = ""  # the claim to test before the others

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND

    def work(self, cache: Cache) -> Work:
        from ....core.claims.catalogue import CLAIMS, check, check_all
        from ....core.claims.claim import without_figures

        yield ClaimList([without_figures(claim) for claim in CLAIMS])
        for claim in CLAIMS:
            if claim.id == self.first:
                yield replace(check(claim), claim=without_figures(claim))
        for outcome in check_all([claim for claim in CLAIMS if claim.id != self.first]):
            yield outcome and replace(outcome, claim=without_figures(outcome.claim))

    @property
    def words(self) -> Sequence[str]:
        return ["claims"]

    @property
    def file_name(self) -> str:
        return "claims"

    def table(self, answer: Sequence[Outcome]) -> Table[Any]:
        from ....core.tables.learning import claims_table

        return claims_table(answer)

    def code(self, answer: Sequence[Outcome], dialect: Dialect) -> str:
        from ....core.program.library import claims_code

        one = f": {answer[0].claim.id}" if len(answer) == 1 else ""
        return claims_code(answer, f"{self.line()}{one}")


@dataclass(frozen=True)
class ListClaims(Request):
    """Ask for the claims, untested. Answered by ClaimList."""

    def work(self, cache: Cache) -> Work:
        from ....core.claims.catalogue import CLAIMS
        from ....core.claims.claim import without_figures

        yield ClaimList([without_figures(claim) for claim in CLAIMS])


@dataclass(frozen=True, eq=False)
class ClaimList:
    """The claims to be tested."""

    claims: Sequence[Claim]
