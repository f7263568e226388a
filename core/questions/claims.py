"""The question of the Claims pane: what study notes say, tested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ..work.part import results_of
from .question import Question
from .request import Cache, Priority, Request, Work

if TYPE_CHECKING:
    from ..claims.claim import Claim, Outcome
    from ..program.text import Dialect
    from ..tables.table import Table
    from ..work.part import Part


@dataclass(frozen=True, eq=False)
class ClaimList:
    """The claims to be tested."""

    claims: Sequence[Claim]


@dataclass(frozen=True)
class ListClaims(Request):
    """Ask for the claims, untested. Answered by ClaimList."""

    def work(self, cache: Cache) -> Work:
        from ..claims.catalogue import CLAIMS
        from ..claims.claim import without_figures

        yield ClaimList([without_figures(claim) for claim in CLAIMS])


@dataclass(frozen=True)
class CheckClaims(Question["Sequence[Outcome]"]):
    """Test claims, by default all; in the app, one by one."""

    first: str = ""  # the claim to test before the others
    ids: tuple[str, ...] = ()

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND

    def parts(self) -> Iterable[Part[Outcome]]:
        from ..work.claims import claim_parts

        return claim_parts(self.first, self.ids)

    def work(self, cache: Cache) -> Work:
        """Answer with ClaimList, then with an Outcome for each claim when ready."""
        yield from ListClaims().work(cache)
        for done in cache.workers.begin(self.parts()).steps():
            yield from results_of(done) or (None,)

    def result(self, found: Sequence[Outcome]) -> Sequence[Outcome]:
        from ..claims.catalogue import CLAIMS

        whole = {claim.id: claim for claim in CLAIMS}  # with the figures, which are not sent
        return [replace(outcome, claim=whole[outcome.claim.id]) for outcome in found]

    @property
    def words(self) -> Sequence[str]:
        return ["claims"]

    @property
    def file_name(self) -> str:
        return "claims"

    def table(self, answer: Sequence[Outcome]) -> Table[Any]:
        from ..tables.learning import claims_table

        return claims_table(answer)

    def code(self, answer: Sequence[Outcome], dialect: Dialect) -> str:
        from ..program.library import claims_code

        one = f": {answer[0].claim.id}" if len(answer) == 1 else ""
        return claims_code(answer, f"{self.line()}{one}")
