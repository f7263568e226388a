"""The Train pane: attention learning under several scale rules side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar, TypeAlias

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.widget import Widget

from ....core.errors import InputError
from ....core.field import next_of
from ....core.message import message
from ....core.questions.request import Failed, Progress, Request
from ....core.questions.train import RunRace
from ....core.training.settings import Race
from ....core.training.snapshot import QUANTITIES, Quantity, RaceSnapshot
from ...views.bars import Key, progress_status
from ...views.lines import Line
from ...views.page import LOW
from ...widgets.typing import typing
from ..fields import FieldsPane
from ..lists import choose_of, choose_rules
from ..pane import Host
from ..stepping import BLANK, HEADED
from .widget import MOST_RULES, START, RaceCurves, RaceHeadline, RaceSettings

_CACHED = 12  # races whose curves are kept, so that undo shows them at once
UndoState: TypeAlias = tuple[Race, str, str, frozenset[str]]


class TrainPane(FieldsPane):
    """The settings at the left; curves and results at the right."""

    NAME = "Train"
    LEFT = (25, 34)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "setting"), ("←→", "step"), ("/", "rules"), ("m", "quantity"), ("v", "numbers"), ("?", "help"),
        ("q", "quit"), (">", "next tab"), ("0-9", "type"), ("r", "new seeds"), ("z", "axis"), ("R", "reset"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j,tab", "move(1)", "next setting", id="train.next"),
        Binding("up,k,shift+tab", "move(-1)", "previous setting", id="train.previous"),
        Binding("right,l", "step(1)", "step the setting up", id="train.step_up"),
        Binding("left,h", "step(-1)", "step the setting down", id="train.step_down"),
        *typing("0123456789.-e", "type into the setting"),
        Binding("backspace", "erase", "erase a digit"),
        Binding("enter", "enter", "accept the typed value, or choose from a list", id="train.edit"),
        Binding("escape", "cancel", "cancel typing"),
        Binding("slash", "find", "choose the scale rules from a list", id="train.find"),
        Binding("m", "choose_quantity", "choose the quantity", id="train.statistic"),
        Binding("M", "quantity", "next quantity", id="train.next_statistic"),
        Binding("z", "axis", "logarithmic or linear axis", id="train.axis"),
        Binding("r", "again", "train with new seeds", id="train.again"),
        Binding("R", "reset", "reset the race", id="train.reset"),
        Binding("v", "view", "all results or the recalled share; on narrow screens also settings", id="train.view"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.settings = self.fields = self.left = RaceSettings(self.leave_field, self.changed)
        self.curves = self.right = self.in_front = RaceCurves()
        self.headline = RaceHeadline()
        self._known: dict[Race, RaceSnapshot] = {}  # complete races

    def compose(self) -> ComposeResult:
        yield self.headline
        yield from super().compose()

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        """Return where the parts stand; a high screen has a headline above both."""
        self.curves.headed = self.headed
        lines = self.headed * (max(LOW, 1 + len(self.race.rules)) + (size.height >= BLANK))
        yield self.headline, Region(0, 0, size.width, lines)
        for part, region in super().regions(Size(size.width, size.height - lines)):
            yield part, region.translate((0, lines))

    @property
    def headed(self) -> bool:
        """Whether the screen has room for the headline."""
        return self.is_attached and self.screen.size.height >= HEADED and not self.one_at_a_time

    @property
    def race(self) -> Race:
        """The race on screen."""
        return self.settings.race

    def action_view(self) -> None:
        """Turn from the recalled share to all results and back; on a narrow screen then to the settings."""
        if self.one_at_a_time and self.in_front is self.curves and self.curves.numbers:
            self.bring(self.settings)
        elif self.in_front is not self.curves and self.one_at_a_time:
            self.bring(self.curves)
            return
        self.curves.numbers = not self.curves.numbers

    # Results

    def leave(self) -> None:
        self.settings.finish()
        self.host.engine.withdraw(RunRace)

    def show(self) -> None:
        """Show the race, and run it unless its curves are known."""
        objection = self.settings.objection
        if objection:
            self.host.engine.withdraw(RunRace)
            self.curves.dim(True)
            self.curves.waiting = message("{objection}.", objection=objection)
        elif self.race in self._known:
            self.host.engine.withdraw(RunRace)
            self._take(self._known[self.race])
        else:
            self.curves.waiting = message("Training.")
            self.ask(RunRace(self.race))
        self._show_headline()
        self.host.show_status()

    def _show_headline(self) -> None:
        """Show the race of the curves in the headline, too; before the first, the one that is to be run."""
        shown = self.headline.shown = self.curves.shown
        self.headline.number = str((shown.race if shown else self.race).d_k)
        self.headline.dim(self.curves.dimmed)

    @property
    def _is_shown(self) -> bool:
        return self.curves.shown is not None and self.curves.shown.race == self.race

    def _take(self, shown: RaceSnapshot) -> None:
        self.curves.shown = shown
        self.curves.dim(False)
        if shown.complete:
            self._known[shown.race] = shown
            while len(self._known) > _CACHED:
                del self._known[next(iter(self._known))]
        self.show_progress(None if shown.complete else shown.done / shown.race.steps)
        self._show_headline()

    def show_answer(self, request: Request, answer: object) -> None:
        match answer:
            case RaceSnapshot() if answer.race == self.race and not self.is_current:
                self._take(answer)
            case Progress() if not self._is_shown:
                self.curves.dim(True)
                self._show_headline()
            case Failed(reason):
                self.curves.dim(True)
                self.curves.waiting = message("{reason}.", reason=reason)
                self._show_headline()
            case _:
                pass

    @property
    def is_current(self) -> bool:
        shown = self.curves.shown
        return bool(self.settings.objection) or (self._is_shown and shown is not None and shown.complete)

    @property
    def is_stale(self) -> bool:
        return self.curves.dimmed

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return progress_status(self.progress, self.glyphs, f"d_k {self.race.d_k}")
        alone: Line = ((f"d_k {self.race.d_k}", "text"),)
        return [] if self.headed else [alone]

    # Export and undo

    @property
    def question(self) -> RunRace:
        return RunRace(self.race)

    def answered(self) -> Sequence[RaceSnapshot]:
        shown = self.curves.shown
        if self.settings.objection:
            raise InputError("{objection}.", objection=self.settings.objection)
        if shown is None or not self.is_current:
            done = shown.done if shown is not None and self._is_shown else 0
            raise InputError("{done} of {steps} steps trained so far.", done=done, steps=self.race.steps)
        return [shown]

    @property
    def undo_state(self) -> UndoState:
        return self.race, self.settings.cursor, self.curves.quantity.name, self.curves.other_axis

    def restore_state(self, state: UndoState) -> None:
        self.settings.race, self.settings.cursor, name, self.curves.other_axis = state
        self.curves.quantity = next(quantity for quantity in QUANTITIES if quantity.name == name)

    def show_item(self, item: Race) -> None:
        self.settings.finish()
        self.settings.race = item
        self.show()

    # Keys

    def action_enter(self) -> None:
        """Accept the typed value; if nothing is typed, choose from the list of the setting with the cursor."""
        self.accept()

    def action_type(self, character: str) -> None:
        if character == "e" and not (self.is_typing and self.settings.field.kind == "real"):
            raise SkipAction  # no number starts with it; it exports, as in other panes
        super().action_type(character)

    def action_find(self) -> None:
        """Choose the scale rules from a list."""
        choose_rules(self.host, self.race.rules, self._take_rules, message("scale rules to train with"))

    def _take_rules(self, names: Sequence[str]) -> None:
        """Train with these rules, as far as they can be raced."""
        rules = tuple(name for name in names if name != "custom")
        if len(rules) < len(names):
            self.host.say(message("custom has no multiplier here; type the number itself in the list."))
        if len(rules) > MOST_RULES:
            self.host.say(message("At most {most} rules are trained at once; the first ones are.", most=MOST_RULES))
        if rules:
            self.settings.finish()
            self.settings.race = replace(self.race, rules=rules[:MOST_RULES])
            self.show()

    def action_quantity(self) -> None:
        self._show_quantity(next_of(QUANTITIES, self.curves.quantity))

    def action_choose_quantity(self) -> None:
        """Choose the quantity from a list."""
        quantities = [(quantity, quantity.label) for quantity in QUANTITIES]
        choose_of(self.host, message("quantity"), quantities, self.curves.quantity, self._show_quantity)

    def _show_quantity(self, quantity: Quantity) -> None:
        self.curves.quantity = quantity

    def action_axis(self) -> None:
        self.curves.other_axis ^= {self.curves.quantity.name}

    def action_again(self) -> None:
        """Train with seeds that follow those on screen."""
        self.leave_field()
        seed = (self.race.seed + self.race.seeds) % 2**32
        self.settings.race = replace(self.race, seed=seed)
        self.show()

    def action_reset(self) -> None:
        self.settings.finish()
        self.settings.race = START
        self.show()
