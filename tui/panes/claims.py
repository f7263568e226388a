"""The Claims pane: what is said about √d_k, put to the test while one watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message

from ...core.parameters import Parameters
from ..views.bars import Key
from ..widgets.claims import ClaimList, ClaimText

if TYPE_CHECKING:
    from ...core.lab.claims import Claim, Outcome

KEYS: tuple[Key, ...] = (
    ("↑↓", "claim"), ("PgUp PgDn", "read on"), ("Enter", "see it in the Lab"), ("r", "test again"), ("?", "help"),
    ("q", "quit"), (">", "next pane"),
)  # fmt: skip


class ClaimsPane(Container, can_focus=True):
    """The claims at the left, the chosen one with its figures at the right."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next claim", show=False),
        Binding("up,k", "move(-1)", "previous claim", show=False),
        Binding("home", "move(-1000)", "first claim", show=False),
        Binding("end", "move(1000)", "last claim", show=False),
        Binding("pagedown,space", "read(8)", "read on", show=False),
        Binding("pageup", "read(-8)", "read back", show=False),
        Binding("enter", "to_lab", "the claim's parameters into the Lab, to see it happen", show=False),
        Binding("r", "again", "put all claims to the test again", show=False),
    ]

    class Again(Message):
        """The claims are to be put to the test."""

    class ToLab(Message):
        """The Lab is to take over a claim's parameters."""

        def __init__(self, parameters: Parameters) -> None:
            super().__init__()
            self.parameters = parameters

    def __init__(self) -> None:
        super().__init__(classes="pane")
        self.claims = ClaimList()
        self.text = ClaimText()

    def compose(self) -> ComposeResult:
        yield self.claims
        yield self.text

    def show_claims(self, claims: Sequence[Claim]) -> None:
        """These are about to be put to the test."""
        self.claims.claims = claims
        self.claims.outcomes.clear()
        self._show()

    def show_outcome(self, outcome: Outcome) -> None:
        """One of them has been."""
        self.claims.outcomes[outcome.claim.id] = outcome
        self._show()

    def action_move(self, step: int) -> None:
        self.claims.move(step)
        self._show()

    def action_read(self, lines: int) -> None:
        self.text.scroll_by(lines)

    def action_again(self) -> None:
        self.post_message(self.Again())

    def action_to_lab(self) -> None:
        claim = self.claims.chosen
        if claim is not None and claim.parameters is not None:
            self.post_message(self.ToLab(claim.parameters))

    def _show(self) -> None:
        claim = self.claims.chosen
        self.claims.redraw()
        self.text.show(claim, self.claims.outcomes.get(claim.id) if claim else None)
