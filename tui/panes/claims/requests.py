"""The request of the Claims pane: to test every claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ....core.work.part import results_of
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
        from ....core.work.claims import claim_parts

        yield from ListClaims().work(cache)
        for done in cache.workers.begin(claim_parts(self.first)).steps():
            yield from results_of(done) or (None,)

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
