"""The Claims pane: claims about √d_k, tested live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from ....core.claims.claim import VERDICT_WORDS, Outcome
from ....core.errors import InputError
from ....core.message import message
from ....core.questions.claims import CheckClaims, ClaimList
from ....core.questions.request import Failed, Request
from ...views.bars import Key
from ...views.lines import Line
from ..fields import TwoParts
from ..lists import choose_one
from ..pane import Host, next_where
from .widget import ClaimListing, ClaimText

if TYPE_CHECKING:
    from ....core.program.text import Dialect


_PLAIN = ("holds", "not testable here")  # verdicts that `n` and `N` pass


class ClaimsPane(TwoParts):
    """The claims at the left, the selected one with its figures at the right."""

    NAME = "Claims"
    LEFT = (43, 54)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "claim"), ("PgUp PgDn", "scroll"), ("/", "find"), ("Enter", "Lab"), ("?", "help"), ("q", "quit"),
        (">", "next tab"), ("n N", "not true"), ("r", "test again"), ("v", "view"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next claim", id="claims.next"),
        Binding("up,k", "move(-1)", "previous claim", id="claims.previous"),
        Binding("home", "move(-1000)", "first claim", id="claims.first"),
        Binding("end", "move(1000)", "last claim", id="claims.last"),
        Binding("slash", "find", "find a claim by words", id="claims.find"),
        Binding("n", "of_note(1)", "next claim not simply true", id="claims.next_of_note"),
        Binding("N", "of_note(-1)", "previous claim not simply true", id="claims.previous_of_note"),
        Binding("pagedown,space", "read(8)", "scroll down", id="claims.read_on"),
        Binding("pageup", "read(-8)", "scroll up", id="claims.read_back"),
        Binding("v", "view", "switch between list and claim (narrow screens)", id="claims.view"),
        Binding("enter", "to_lab", "open the claim in the Lab, in Softmax or in Train", id="claims.to_lab"),
        Binding("r", "again", "test all claims again", id="claims.again"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.claims = self.left = self.in_front = ClaimListing(self.action_move)
        self.text = self.right = ClaimText(self.claims)
        self._wanted = ""  # the claim to select once the claims are known

    def follow(self) -> None:
        if not self.claims.claims:
            self.action_again()

    def statuses(self) -> Sequence[Line]:
        return ()

    @property
    def question(self) -> CheckClaims:
        return CheckClaims()

    def answered(self) -> Sequence[Outcome]:
        claims, found = self.claims.claims, self.claims.outcomes
        if not claims:
            raise InputError("No claims tested so far.")
        if len(found) < len(claims):
            raise InputError("{tested} of {claims} claims tested so far.", tested=len(found), claims=len(claims))
        return [found[claim.id] for claim in claims]

    def code(self, dialect: Dialect) -> str:
        """Return the program of the selected claim."""
        claim = self.claims.chosen
        if claim is None or claim.id not in self.claims.outcomes:
            raise InputError("This claim is still being tested.")
        return self.question.code([self.claims.outcomes[claim.id]], dialect)

    def show_answer(self, request: Request, answer: object) -> None:
        match answer:
            case ClaimList(claims):
                self.claims.claims = claims
                self.claims.outcomes.clear()
                self.show_claim(self._wanted)
            case Outcome():
                self.claims.outcomes[answer.claim.id] = answer
            case Failed(reason):
                self.host.say(message("{reason}.", reason=reason))
            case _:
                pass
        self._show()

    @property
    def undo_state(self) -> int:
        return self.claims.cursor

    def restore_state(self, state: int) -> None:
        self.claims.move(state - self.claims.cursor)
        self._show()

    def action_move(self, step: int) -> None:
        self.claims.move(step)
        self._show()

    def action_find(self) -> None:
        """Find a claim by its words, in a list."""
        from ...views.fields.choices import Choice

        found, chosen = self.claims.outcomes, self.claims.chosen
        rows = [
            Choice(
                claim.id,
                claim.id,
                VERDICT_WORDS[found[claim.id].verdict] if claim.id in found else "",
                claim.statement,
                claim.source,
                words=(claim.statement, claim.why),
            )
            for claim in self.claims.claims
        ]
        choose_one(self.host, "claim", rows, chosen.id if chosen else "", self.show_claim)

    def action_of_note(self, direction: int) -> None:
        """Go to the next claim that was tested and is not simply true."""
        found = [self.claims.outcomes.get(claim.id) for claim in self.claims.claims]
        wanted = [outcome is not None and outcome.verdict not in _PLAIN for outcome in found]
        at = next_where(wanted, self.claims.cursor, direction)
        if at is None:
            self.host.say(message("No claim tested so far is false or true only with a condition."))
        else:
            self.action_move(at - self.claims.cursor)

    def show_item(self, item: str) -> None:
        if not self.claims.outcomes:
            self.host.engine.withdraw(CheckClaims)
            self.ask(CheckClaims(first=item))
        self.show_claim(item)

    def show_claim(self, name: str) -> None:
        """Select the claim with this name, now or as soon as the claims are known."""
        self._wanted = name
        at = next((at for at, claim in enumerate(self.claims.claims) if claim.id == name), None)
        if at is not None:
            self.claims.move(at - self.claims.cursor)
            self._wanted = ""
            self.bring(self.text)
            self._show()

    def action_read(self, lines: int) -> None:
        self.bring(self.text)
        self.text.scroll_by(lines)

    def action_again(self) -> None:
        self.host.engine.withdraw(CheckClaims)
        self.ask(CheckClaims())

    def action_to_lab(self) -> None:
        claim = self.claims.chosen
        if claim is not None and claim.scores:
            self.host.to_pane("Softmax", claim.scores)
        elif claim is not None and claim.race is not None:
            self.host.to_pane("Train", claim.race)
        elif claim is not None and claim.parameters is not None:
            self.host.to_lab(claim.parameters)
        elif claim is not None:
            self.host.say(message("No pane shows this claim; its figures are all there is."))

    def _show(self) -> None:
        claim = self.claims.chosen
        self.claims.redraw()
        self.text.show(claim, self.claims.outcomes.get(claim.id) if claim else None)
