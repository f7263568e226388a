"""The list of items; the selected item, and below it a picture or the figures of all claims, if there is room."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.widget import Widget

from ....core.learning.items import ITEMS, SECTIONS, Attempt, Found, count
from ....core.learning.outcome import Outcome
from ....core.learning.step import LONGEST
from ....core.learning.walks import CORRELATIONS
from ....core.message import message
from ...views.lines import Line, Span, Thumb, ends, fitted, window
from ...views.plots import walks
from ...views.results.cards import CURSOR, item_lines
from ...views.results.claims import LEAST_HEIGHT, LEAST_WIDTH, overview_lines, verdict_word
from ...views.results.table import with_theory
from ...widgets.bars import Paragraph
from ...widgets.lines import Content, LinesWidget, ScrolledLines
from ...widgets.pictures import Histograms, SaturationGauge
from ...widgets.placed import Stack
from ...widgets.typing import pasted_line, typed_character

if TYPE_CHECKING:
    from ....core.learning.items import Item
    from ....core.parameters import Parameters
    from ....core.questions.lab import Report

# The rows of the list: titles of sections, and the indices of items.
_ROWS: tuple[str | int, ...] = tuple(
    row
    for index, item in enumerate(ITEMS)
    for row in ((SECTIONS[item.kind], index) if item.number == 1 else (index,))
)
CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_/()*^,=% ~'"  # that the field takes
_ROW = {row: place for place, row in enumerate(_ROWS) if isinstance(row, int)}


class ItemList(LinesWidget):
    """Shows the sections with their items, and which of these were answered."""

    HEADED, TITLE = True, message("learn")
    DEFAULT_CLASSES = "region"

    cursor: Content[int] = Content(0)  # the index of an item
    done: Content[Collection[str]] = Content(())  # the items that were answered
    outcomes: Content[Mapping[str, Outcome]] = Content(MappingProxyType({}))  # of claims

    def __init__(self, go: Callable[[int], object]) -> None:
        """Call `go` with the index of an item to be selected."""
        super().__init__()
        self._go = go

    def note(self) -> Line:
        if ITEMS[self.cursor].kind == "claim":
            tested, claims = len(self.outcomes), count("claim")
            return ((self.glyphs.say("{tested} of {claims} claims tested", tested=tested, claims=claims), "dim"),)
        items = sum(item.stages > 0 for item in ITEMS)
        return ((self.glyphs.say("{done} of {items} done", done=len(self.done), items=items), "dim"),)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        first = self._first(height)
        return [self._line(row, width) for row in _ROWS[first : first + height]]

    def _first(self, height: int) -> int:
        """Return the first row shown: the cursor stays in view."""
        return window(_ROW[self.cursor], len(_ROWS), height)

    def _line(self, row: str | int, width: int) -> Line:
        if isinstance(row, str):
            done = [item.id in self.done for item in ITEMS if SECTIONS[item.kind] == row and item.stages]
            said = self.glyphs.say("{done} of {items}", done=sum(done), items=len(done)) if done else ""
            return fitted(ends(((self.glyphs.say(row), "heading"),), ((said, "dim"),), width), width)
        item, chosen = ITEMS[row], row == self.cursor
        mark: Span = (self.glyphs.say("✓") if item.id in self.done else " ", "scaled")
        if item.kind == "claim":
            outcome = self.outcomes.get(item.id)
            mark = verdict_word(outcome.verdict, self.glyphs) if outcome else (self.glyphs.say("…"), "dim")
        room = max(width - 4 - cell_len(mark[0]) - 1, 0)
        title, sign = self.glyphs.say(item.title), self.glyphs.say("…")
        if cell_len(title) > room:
            title = set_cell_size(title, max(room - cell_len(sign), 0)).rstrip() + sign
        line: Line = (
            (self.glyphs.cursor if chosen else " ", "accent"),
            (f"{item.number:2} ", "dim"),
            (title, "accent" if chosen else "label"),
        )
        return fitted(ends(line, (mark,), width), width)

    def thumb(self) -> Thumb | None:
        height = self.room.height
        return Thumb(self._first(height), height, len(_ROWS))

    def on_click(self, event: events.Click) -> None:
        y = self.place_of(event).y
        row = y + self._first(self.room.height)
        at = _ROWS[row] if y >= 0 and row < len(_ROWS) else ""
        if isinstance(at, int):
            self._go(at)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self._go(min(max(self.cursor + direction, 0), len(ITEMS) - 1))


class ItemText(ScrolledLines):
    """Shows one item, with its answer once that is asked for.

    Until then it has the field of the guess: with the focus, letters and digits type into it and are nothing else.
    """

    HEADED = LEADS = True
    DEFAULT_CLASSES = "region"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("backspace", "erase", "erase"),
        Binding("ctrl+u", "clear", "erase all"),
        Binding("escape", "cancel", "erase the guess; leave the field"),
    ]

    def __init__(self, typed: Callable[[str], None]) -> None:
        """Call `typed` with the new text of the field: a message would come after a key that follows at once."""
        super().__init__()
        self.typed = typed
        self.at = 0
        self.attempt = Attempt()
        self.found: Found | None = None
        self.outcomes: Mapping[str, Outcome] = {}

    def show(self, at: int, attempt: Attempt, found: Found | None, outcomes: Mapping[str, Outcome]) -> None:
        """Show an item; scroll to the top if it is another one, or shows more."""
        self.outcomes = outcomes
        if (at, attempt.stage) != (self.at, self.attempt.stage):
            self.top = 0
        self.at, self.attempt, self.found = at, attempt, found
        self.can_focus = ITEMS[at].asks and not attempt.stage
        self.redraw()

    def type(self, character: str) -> None:
        """Type into the field. A digit replaces the number of a cause, because no number has two."""
        text = self.attempt.text
        replaces = ITEMS[self.at].kind == "bug" and text.isdecimal() and character.isdecimal()
        self.typed((("" if replaces else text) + character)[:LONGEST])

    def on_key(self, event: events.Key) -> None:
        """Type a character into the field."""
        character = typed_character(event, CHARACTERS)
        if self.has_focus and character:
            event.stop()
            self.type(character)

    def on_paste(self, event: events.Paste) -> None:
        """Type the first line of what is pasted."""
        if self.has_focus:
            event.stop()
            self.typed((self.attempt.text + pasted_line(event))[:LONGEST])

    def action_erase(self) -> None:
        """Erase the last character; of an empty field, leave the key to the pane."""
        if not self.attempt.text:
            raise SkipAction
        self.typed(self.attempt.text[:-1])

    def action_clear(self) -> None:
        self.typed("")

    def action_cancel(self) -> None:
        """Erase what is typed; if nothing is, leave the field."""
        if not self.attempt.text:
            raise SkipAction
        self.typed("")

    def heading(self, width: int) -> Line:
        item = ITEMS[self.at]
        number, items = item.number, count(item.kind)
        match item.kind:
            case "step":
                text = message("step {number} of {count}: {title}", number=number, count=items, title=item.title)
            case "question":
                text = message("question {number} of {count}", number=number, count=items)
            case "bug":
                text = message("bug {number} of {count}: {title}", number=number, count=items, title=item.title)
            case "claim":
                text = message("claim {number} of {count}: {title}", number=number, count=items, title=item.title)
        return ((self.glyphs.say(text), "heading"),)

    def note(self) -> Line:
        item = ITEMS[self.at]
        return ((item.id, "dim"),) if item.kind == "claim" else ()

    def lines_needed(self, width: int, height: int) -> int:
        """Return the lines of the whole item, in the widest setting that fits in a height."""
        item = ITEMS[self.at]
        return 1 + len(item_lines(item, self.attempt, self.found, width - 1, height - 1, self.glyphs, whole=True))

    def write(self, width: int, height: int) -> Sequence[Line]:
        item, cursor = ITEMS[self.at], CURSOR if self.has_focus else ""
        lines = item_lines(item, self.attempt, self.found, width - 1, height, self.glyphs, cursor)
        if len(lines) < height:
            lines = [(), *lines]
        above = max(len(lines), _CLAIM)
        if item.kind == "claim" and width >= LEAST_WIDTH and height - above > LEAST_HEIGHT:
            room = width - 1, height - above - 1
            lines += [()] * (above + 1 - len(lines)) + overview_lines(self.outcomes, item.id, *room, self.glyphs)
        return lines


_CLAIM = 21  # lines above the figures of all claims, for all but the longest: so they stay in place
_OF_RANDOM = ("Lab", "Rules", "Sweep")  # panes that show random q and k of the app's parameters
_GAUGE = 4  # lines of the gauge with its title and its zones
_HISTOGRAMS, _WALKS = 9, 12  # lines from which these are shown


def pictured(item: Item, answered: bool) -> Parameters | None:
    """Return the parameters of the Lab's picture of an item; None if it has none, or none before it is answered."""
    of_random = item.kind in ("step", "question") and item.shown.pane in _OF_RANDOM and item.id not in CORRELATIONS
    return item.shown.parameters if answered and of_random else None


class Walks(LinesWidget):
    """Shows scores as random walks, for the items that are about them."""

    TITLE = walks.TITLE
    DEFAULT_CLASSES = "region"
    HEADED = True

    item, answered = "", False

    def show(self, item: str, answered: bool) -> None:
        """Show the walks of an item, with their theory once it is answered."""
        if (item, answered) != (self.item, self.answered):
            self.item, self.answered = item, answered
            self.redraw()

    def note(self) -> Line:
        return ((self.glyphs.say(walks.walks_note(self.item, self.answered)), "dim"),) if self.item else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return walks.walk_lines(self.item, self.answered, width, height, self.glyphs) if self.item else ()


class ItemPage(Stack):
    """The text of an item, and below it walks of scores, or the gauge and the histograms of the Lab."""

    def __init__(self, typed: Callable[[str], None]) -> None:
        super().__init__()
        self.text = ItemText(typed)
        self.words, self.gauge, self.histograms = Paragraph(), SaturationGauge(), Histograms()
        self.walks = Walks()
        self.histograms.paged = False
        self.wanted: Parameters | None = None  # what the picture is to show
        self.shown: Parameters | None = None  # what it shows

    def compose(self) -> ComposeResult:
        yield self.text
        yield self.walks
        yield self.words
        yield self.gauge
        yield self.histograms

    def room(self, size: Size, least: int) -> int:
        """Return the lines that the whole text leaves in a page of this size, if they are at least so many, or 0."""
        gutter = self.text.gutter
        most = size.height - least - gutter.height
        text = self.text.lines_needed(max(size.width - gutter.width, 1), most)
        return size.height - gutter.height - text if text <= most else 0

    def heights(self, size: Size) -> Sequence[tuple[Widget, int]]:
        if self.walks.item and (room := self.room(size, _WALKS)):
            return (self.text, size.height - room), (self.walks, room)
        if self.wanted is not None and (
            room := self.room(size, 1 + _GAUGE + _HISTOGRAMS) or self.room(size, 1 + _GAUGE)
        ):
            gauge = (self.text, size.height - room), (self.words, 1), (self.gauge, _GAUGE)
            rest = room - 1 - _GAUGE
            return (*gauge, (self.histograms, rest)) if rest >= _HISTOGRAMS else gauge
        return ((self.text, size.height),)

    def show_item(self, at: int, attempt: Attempt, found: Found | None, outcomes: Mapping[str, Outcome]) -> None:
        """Show an item, and lay the page out again if it needs another height."""
        self.text.show(at, attempt, found, outcomes)
        item = ITEMS[at].id
        self.walks.show(item if item in CORRELATIONS else "", bool(attempt.stage))
        if any(part.outer_size.height != lines for part, lines in self.heights(self.size)):
            self.text.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again

    def want(self, parameters: Parameters | None) -> None:
        """Set what the picture is to show; without any, the text takes its place."""
        appears = (parameters is None) != (self.wanted is None)
        self.wanted = parameters
        if appears:
            self.text.refresh(layout=True)  # of a part: only that makes its parent arrange the parts again

    def show(self, answer: Report) -> None:
        """Show a measurement of the wanted parameters."""
        p, theory = answer.parameters, answer.theory
        self.shown = p
        contents = with_theory(answer.measurement, theory)
        self.gauge.contents = contents
        self.histograms.columns, self.histograms.curves = contents.columns, theory.curves
        self.words.show(message("The Lab at d_k {d_k}, {keys} keys", d_k=p.d_k, keys=p.n_keys))
