"""The Learn pane: a tour of why attention divides by √d_k, questions, bugs to find, and claims with verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Size

from ....core.captures.capture import sample_path
from ....core.errors import InputError
from ....core.learning.claim import VERDICT_WORDS
from ....core.learning.items import (
    AT,
    ITEMS,
    Attempt,
    Found,
    Item,
    is_right,
    remembered,
    section_from,
    to_remember,
    typed,
)
from ....core.learning.outcome import Outcome
from ....core.message import message
from ....core.questions.lab import Measure, Report
from ....core.questions.learn import ItemFigures, ReadItems, all_claims, capture_of
from ....core.questions.request import Failed, Request
from ...views.bars import Key
from ...views.lines import Line
from ...widgets.typing import typing
from ..fields import TwoParts
from ..lists import choose_one
from ..pane import FileHead, Host, next_where
from .widget import ItemList, ItemPage, pictured

if TYPE_CHECKING:
    from ....core.program.text import Dialect

_FIELD_KEYS: tuple[Key, ...] = (  # letters and digits type
    ("Enter", "answer"), ("Esc", "leave the field"), ("a-z 0-9", "type"), ("↑↓", "item"),
    ("Backspace", "erase, back"), ("?", "help"), (">", "next tab"), ("PgUp PgDn", "scroll"),
)  # fmt: skip
_TO_FIELD: Key = ("Tab", "type a guess")
_KEYS_OF_CLAIMS = {"n": message("not true"), "r": message("test again")}
_TO_NEXT: Key = ("Enter", "next")
_OF_QUESTIONS: tuple[Key, ...] = (("1", "knew it"), ("2", "not yet"))
# What undo restores: the item, what the user did with each, and those that were answered.
UndoState: TypeAlias = tuple[int, Mapping[str, Attempt], frozenset[str]]
_PLAIN = ("holds", "not testable here")  # verdicts that `n` and `N` pass
_ROOMY = 170  # screens from this width show every question in full


class LearnPane(TwoParts):
    """The items at the left, the selected one at the right; on narrow screens one of them."""

    NAME = "Learn"
    SIDE_BY_SIDE = 100  # from this width, the list stands beside the text
    LEFT = (44, 72)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("Enter", "answer"), ("m", "list"), ("Backspace", "back"), ("E", "show"), ("?", "help"), ("q", "quit"),
        (">", "next tab"), ("↑↓", "item"), ("v", "view"), ("n", "not yet done"),
        ("r", "ask again"), ("PgUp PgDn", "scroll"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "next", "show the answer, then the next item", id="learn.next"),
        Binding("backspace", "back", "erase a character; go back", id="learn.back"),
        *typing("0123456789", "type a guess, or the number of a cause; 1: I knew it, 2: not yet"),
        Binding("tab", "fields", "go to the field of the guess"),
        Binding("escape", "cancel", "erase the guess; leave its field", id="learn.cancel"),
        Binding("down,j", "move(1)", "next item", id="learn.next_item"),
        Binding("up,k", "move(-1)", "previous item", id="learn.previous_item"),
        Binding("home", "move(-1000)", "first item", id="learn.first"),
        Binding("end", "move(1000)", "last item", id="learn.last"),
        Binding("n", "of_note(1)", "next item not yet done; next claim not simply true", id="learn.next_of_note"),
        Binding("N", "of_note(-1)", "the previous one", id="learn.previous_of_note"),
        Binding("M", "section", "the next section: questions, bugs, claims, tour", id="learn.next_section"),
        Binding("E", "evidence", "show it in the tab it speaks of", id="learn.evidence"),
        Binding("m,slash", "find", "choose an item", id="learn.find"),
        Binding("v", "view", "switch between list and text (narrow screens)", id="learn.view"),
        Binding("r", "again", "hide the answer and ask again; test all claims again", id="learn.again"),
        Binding("pagedown,space", "read(8)", "scroll down", id="learn.read_on"),
        Binding("pageup", "read(-8)", "scroll up", id="learn.read_back"),
    ]  # fmt: skip

    def __init__(self, host: Host, progress: Mapping[str, Any] | None = None) -> None:
        super().__init__(host)
        self.at, self.done = remembered(progress or {})
        self.list = self.left = ItemList(self._go)
        self.page = self.right = self.in_front = ItemPage(self.take)
        self.text = self.page.text
        self.attempts: dict[str, Attempt] = {}
        self.found: dict[str, Found] = {}
        self.outcomes: dict[str, Outcome] = {}  # of claims
        self._asked: tuple[str, ...] = ()  # the items of the last request
        self._left = False  # whether Esc left the field of this item's guess
        self._captures: TemporaryDirectory[str] | None = None  # of bugs

    @property
    def item(self) -> Item:
        """The selected item."""
        return ITEMS[self.at]

    @property
    def attempt(self) -> Attempt:
        """What the user did with it."""
        return self.attempts.get(self.item.id, Attempt())

    @property
    def saved_settings(self) -> Mapping[str, Any]:
        return to_remember(self.at, self.done)

    def columns(self, size: Size) -> tuple[int, int]:
        if size.width < self.SIDE_BY_SIDE:
            return super().columns(size)
        left = self.LEFT[size.width >= _ROOMY]
        return left, size.width - left

    def follow(self) -> None:
        self._show()

    def on_mount(self) -> None:
        if not self.has_class("hidden"):  # another pane may have been opened since
            self.focus()  # before, there was no field

    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the field of the guess, if there is one and Esc has not left it; otherwise the pane."""
        if self.text.is_attached and self.text.can_focus and self.in_front is self.page and not self._left:
            self.text.focus(scroll_visible)
            return self
        return super().focus(scroll_visible)

    @property
    def keys(self) -> Sequence[Key]:
        if self.text.has_focus:
            return _FIELD_KEYS if not self.attempt.text else (_FIELD_KEYS[0], ("Esc", "erase"), *_FIELD_KEYS[2:])
        answered = self.attempt.stage == self.item.stages
        first = (_TO_NEXT,) if answered else (self.KEYS[0], _TO_FIELD) if self.text.can_focus else self.KEYS[:1]
        if self.item.kind == "question" and self.attempt.stage:
            first = (*first, *_OF_QUESTIONS)
        of_claims = _KEYS_OF_CLAIMS if self.item.kind == "claim" else {}
        return (*first, *((key, of_claims.get(key, words)) for key, words in self.KEYS[1:]))

    def leave(self) -> None:
        self.host.engine.withdraw(Measure)

    def on_resize(self) -> None:
        self._picture()

    def statuses(self) -> Sequence[Line]:
        return ()

    @property
    def is_current(self) -> bool:
        return self.item.id in self.found

    @property
    def is_typing(self) -> bool:
        return bool(self.attempt.text) and not self.attempt.stage

    @property
    def undo_state(self) -> UndoState:
        return self.at, dict(self.attempts), frozenset(self.done)

    def restore_state(self, state: UndoState) -> None:
        self.at, attempts, done = state
        self.attempts, self.done = dict(attempts), {*done}

    def show_answer(self, request: Request, answer: object) -> None:
        match answer:
            case list():
                self._take(cast("list[ItemFigures]", answer))
                self._show()
            case Report() if answer.parameters == self.page.wanted:
                self.page.show(answer)
            case Failed() if isinstance(request, Measure):
                pass  # the picture is missing, the text says everything
            case Failed(reason):
                self._asked = ()  # so that coming back to it tries again
                self.host.say(message("{reason}.", reason=reason))
            case _:
                pass

    # Export and copying

    @property
    def question(self) -> ReadItems:
        return ReadItems((self.item.id,))

    def answered(self) -> Sequence[ItemFigures]:
        if not self.is_current:
            raise InputError("The figures are still being measured.")
        guess = self.attempt.guess if self.attempt.stage else None
        return [ItemFigures(self.item.id, self.found[self.item.id], guess)]

    def code(self, dialect: Dialect) -> str:
        if self.item.kind == "bug":
            raise InputError("E opens the capture of this bug, where Y shows the code of its head.")
        if self.attempt.stage < self.item.stages:
            raise InputError("Enter shows the answer; then Y shows its code.")
        return super().code(dialect)

    # Going through the items

    def action_next(self) -> None:
        """Take the guess and show the answer; with the answer on screen, go to the next item."""
        attempt, item = self.attempt, self.item
        if self.in_front is self.list and self.one_at_a_time:
            self.action_fields()
        elif attempt.stage == item.stages:
            if self.at + 1 < len(ITEMS):
                self._go(self.at + 1)
            else:
                self.host.say(message("That was the last one. Esc, then v, lists them all."))
        elif attempt.objection:
            self._set(replace(attempt, refused=True))
        else:
            self._set(replace(attempt, stage=attempt.stage + 1))

    def action_back(self) -> None:
        """Hide the answer, or go to the item before."""
        attempt = self.attempt
        if attempt.stage:
            self._set(replace(attempt, stage=attempt.stage - 1))
        elif self.at:
            self._go(self.at - 1)

    def action_type(self, character: str) -> None:
        """Type into the field, which takes the focus; of a question with its answer, say whether it was known."""
        if self.item.kind == "question" and self.attempt.stage and character in "12":
            self._judge(known=character == "1")
            return
        if not self.text.can_focus:
            raise SkipAction
        self.action_fields()
        self.text.type(character)

    def _judge(self, known: bool) -> None:
        """Take whether the answer to a question was known, and go on; one that was not is asked again."""
        if known:
            self._set(replace(self.attempt, guess=1.0))
        else:
            self.done.discard(self.item.id)
            self._set(Attempt())
            self.host.say(message("It is asked again: n goes to what is not done."))
        self._go(min(self.at + 1, len(ITEMS) - 1))

    def action_fields(self) -> None:
        """Go to the field of the guess."""
        self._left = False
        self.bring(self.page)
        self.focus()

    def action_cancel(self) -> None:
        """Leave the field of the guess."""
        self._left = True
        self.focus()

    def take(self, text: str) -> None:
        """Take the text of the field as the guess."""
        self._set(typed(self.item, text, self.glyphs.say))

    def action_move(self, step: int) -> None:
        self._go(min(max(self.at + step, 0), len(ITEMS) - 1))

    def action_of_note(self, direction: int) -> None:
        """Go to the next item not yet done; from a claim, to the next one that was tested and is not simply true."""
        of_claims = self.item.kind == "claim"
        wanted = [
            item.id in self.outcomes and self.outcomes[item.id].verdict not in _PLAIN
            if of_claims
            else item.stages > 0 and item.id not in self.done
            for item in ITEMS
        ]
        at = next_where(wanted, self.at, direction)
        if at is not None:
            self._go(at)
        elif of_claims:
            self.host.say(message("No claim tested so far is false or true only with a condition."))
        else:
            self.host.say(message("All are done. r asks this one again."))

    def action_section(self) -> None:
        """Go to the next section: the tour, the questions, the bugs or the claims."""
        self._go(section_from(self.at))

    def action_find(self) -> None:
        """Find an item by its words, in a list."""
        from ...views.fields.items import item_row

        verdicts = {item: VERDICT_WORDS[outcome.verdict] for item, outcome in self.outcomes.items()}
        rows = [item_row(item, item.id, verdicts.get(item.id, "")) for item in ITEMS]
        choose_one(self.host, message("item"), rows, self.item.id, self.show_item)

    def show_item(self, item: str) -> None:
        self._asked = tuple(name for name in self._asked if name != item)  # so that it is tested before the others
        self._go(AT[item])

    def action_again(self) -> None:
        if self.item.kind == "claim":
            self.host.engine.withdraw(ReadItems)
            for name in self.outcomes:
                del self.found[name]
            self.outcomes, self._asked = {}, ()
            self._show()
        else:
            self._set(Attempt())

    def action_view(self) -> None:
        super().action_view()
        self.focus()

    def action_read(self, lines: int) -> None:
        self.text.scroll_by(lines)

    def action_evidence(self) -> None:
        """Show the pane that the item speaks of, in the state that it speaks of."""
        shown, host = self.item.shown, self.host
        match shown.pane:
            case "Lab":
                host.to_lab(shown.parameters)
                host.to_pane("Lab", shown.statistic)
            case "Softmax":
                host.change(shown.parameters)
                host.to_pane("Softmax", shown.scores)
            case "Train" if shown.race is not None:
                host.to_pane("Train", shown.race)
            case "Capture":
                of_bug = self.item.kind == "bug"
                if of_bug and not self.is_current:
                    return  # its capture is being made
                file = capture_of(self._folder, self.item.id) if of_bug else sample_path()
                host.to_pane("Capture", FileHead(file, shown.head or (0, 0), None, self.NAME))
            case "":
                host.say(shown.what)
                return
            case _:
                host.change(shown.parameters)
                host.to_pane(shown.pane, shown.item or None)
        host.say(message("{what} Alt+6 returns to the tour; u restores what stood before.", what=shown.what))

    def _ask_for_item(self) -> None:
        """Request the figures of the item, or the capture of a bug; and the claims, once one of them is shown."""
        asked = all_claims().items if self.item.kind == "claim" else self._asked
        later = (name for name in asked if name not in self.found and name != self.item.id)
        self._asked = (self.item.id, *(name for name in later if ITEMS[AT[name]].kind == "claim"))
        try:
            folder = self._folder if self.item.kind == "bug" else None
        except OSError as error:
            self.host.say(message("No folder for captures can be made: {reason}.", reason=error.strerror))
        else:
            self.ask(ReadItems(self._asked, folder))

    def _take(self, answer: Sequence[ItemFigures]) -> None:
        """Keep what was found out about items; the verdicts on claims are in the order of the list."""
        self.found |= {figures.item: figures.found for figures in answer}
        self.outcomes |= {figures.item: figures.outcome for figures in answer if figures.of.kind == "claim"}
        self.outcomes = dict(sorted(self.outcomes.items(), key=lambda outcome: AT[outcome[0]]))

    def on_unmount(self) -> None:
        if self._captures is not None:
            self._captures.cleanup()

    @property
    def _folder(self) -> Path:
        """The folder for the captures of bugs; it is deleted when the app ends."""
        if self._captures is None:
            self._captures = TemporaryDirectory(prefix="attn-tui-", ignore_cleanup_errors=True)
        return Path(self._captures.name)

    def _go(self, at: int) -> None:
        self._left &= at == self.at
        self.at = at
        self.bring(self.page if not self.one_at_a_time else self.in_front)
        self._show()
        self.focus()
        self.host.show_keys()

    def _set(self, attempt: Attempt) -> None:
        before = self.attempt
        self.attempts[self.item.id] = attempt
        if attempt == Attempt():  # nothing that undo could take back
            del self.attempts[self.item.id]
        self._show()
        if attempt.stage != before.stage:
            self._left = False
            self.focus()
        self.host.show_keys()

    def _show(self) -> None:
        """Show the selected item, and request its figures."""
        found = self.found.get(self.item.id)
        if found is None and self.item.id not in self._asked:
            self._ask_for_item()
        if found is not None and self.attempt.stage and is_right(self.item, self.attempt, found):
            self.done.add(self.item.id)
        self.list.cursor, self.list.done, self.list.outcomes = self.at, self.done, self.outcomes
        self.page.show_item(self.at, self.attempt, found, self.outcomes)
        self._picture()

    def _picture(self) -> None:
        """Show the picture of the selected item, if there is room for it; measure it unless it is known."""
        wanted = pictured(self.item, bool(self.attempt.stage))
        self.page.want(wanted)
        if wanted is None or len(self.page.heights(self.page.size)) == 1:
            return
        known = self.host.engine.cached(wanted)
        if known is None:
            self.ask(Measure(wanted))
        else:
            self.page.show(known)
