"""The Claims pane: what is said about √d_k, put to the test while one watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from ...core.errors import InputError
from ...core.parameters import Parameters
from .. import work
from ..command import in_shell
from ..messages import ClaimsListed, ClaimTested, ToLab
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..widgets.claims import ClaimList, ClaimText
from .two_parts import TwoParts

if TYPE_CHECKING:
    from ...core.export.formats import Format


class ClaimsPane(TwoParts):
    """The claims at the left, the chosen one with its figures at the right."""

    NAME = "Claims"
    WORK = ("claims",)
    LEFT = (40, 40)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "claim"), ("PgUp PgDn", "read on"), ("Enter", "see it in the Lab"), ("r", "test again"), ("?", "help"),
        ("q", "quit"), (">", "next pane"), ("v", "view"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next claim", show=False, id="claims.next"),
        Binding("up,k", "move(-1)", "previous claim", show=False, id="claims.previous"),
        Binding("home", "move(-1000)", "first claim", show=False, id="claims.first"),
        Binding("end", "move(1000)", "last claim", show=False, id="claims.last"),
        Binding("pagedown,space", "read(8)", "read on", show=False, id="claims.read_on"),
        Binding("pageup", "read(-8)", "read back", show=False, id="claims.read_back"),
        Binding("v", "view", "the list or the claim, where only one fits", show=False, id="claims.view"),
        Binding("enter", "to_lab", "the claim's parameters into the Lab", show=False, id="claims.to_lab"),
        Binding("r", "again", "put all claims to the test again", show=False, id="claims.again"),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(parameters, glyphs)
        self.claims = self.left = self.in_front = ClaimList()
        self.text = self.right = ClaimText()

    def shown(self) -> None:
        if not self.claims.claims:
            self.action_again()

    def statuses(self) -> Sequence[Line]:
        return ()

    def numbers(self, kind: Format) -> str:
        from ...core.export.claims import claims_csv, claims_json, claims_markdown

        claims, found = self.claims.claims, self.claims.outcomes
        if not claims or len(found) < len(claims):
            raise InputError(f"{len(found)} of {len(claims) or 'all'} claims have been put to the test so far.")
        outcomes = [found[claim.id] for claim in claims]
        if kind == "markdown":
            return claims_markdown(outcomes, self.glyphs.say)
        return (claims_json if kind == "json" else claims_csv)(outcomes)

    def command(self) -> str:
        return in_shell(["attn-tui", "claims"])

    def on_claims_listed(self, message: ClaimsListed) -> None:
        self.claims.claims = message.claims
        self.claims.outcomes.clear()
        self._show()

    def on_claim_tested(self, message: ClaimTested) -> None:
        self.claims.outcomes[message.outcome.claim.id] = message.outcome
        self._show()

    def action_move(self, step: int) -> None:
        self.claims.move(step)
        self._show()

    def action_read(self, lines: int) -> None:
        self.bring(self.text)
        self.text.scroll_by(lines)

    def action_view(self) -> None:
        self.bring(self.claims if self.in_front is self.text else self.text)

    def action_again(self) -> None:
        self.compute("claims", work.check_claims)

    def action_to_lab(self) -> None:
        claim = self.claims.chosen
        if claim is not None and claim.parameters is not None:
            self.post_message(ToLab(claim.parameters))

    def _show(self) -> None:
        claim = self.claims.chosen
        self.claims.redraw()
        self.text.show(claim, self.claims.outcomes.get(claim.id) if claim else None)
