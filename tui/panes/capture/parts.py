"""The lists of the Capture pane: its heads, the page of the verdict, and every rule replayed on the selected head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType

from ....core.message import message
from ....core.scales import SCALE_RULES
from ....core.statistics.catalogue import STATISTIC
from ....core.tables.heads import replay_grid, replay_remarks
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, fitted, middle_cut, wrapped
from ...views.numbers import lined_up, signed
from ...views.results.model_page import head_on_page, model_lines
from ...views.results.ranked import full_bar, ranked_lines
from ...widgets.lines import ChoosingLines, Content, LinesWidget
from .heads import HeadRanking, Heads

if TYPE_CHECKING:
    from ....core.diagnosis.results import Replay


_PAGE = 8


class HeadList(ChoosingLines, can_focus=True):
    """Shows all heads, sorted, with the reasons for their status; the cursor is that of the map."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "head above"),
        Binding("down,j", "move(1)", "head below"),
        Binding("pageup", f"move({-_PAGE})", "page up"),
        Binding("pagedown", f"move({_PAGE})", "page down"),
        Binding("escape", "leave", "back"),
    ]
    HEADED = True
    DEFAULT_CLASSES = "region"

    ranking: Content[HeadRanking] = Content(HeadRanking((), message("worst first"), STATISTIC["saturation"], None))

    def __init__(self, choose: Callable[[int], object]) -> None:
        """Call `choose` with the row of a head that is chosen."""
        super().__init__(choose)
        self._top, self._full = 0, 0.0
        self._chosen: str | None = None  # the place of the head with the cursor
        self._follow = False  # whether the list scrolls to the cursor, which it does once it has moved

    def show(self, ranking: HeadRanking) -> None:
        """Show this list of heads."""
        chosen = None if ranking.at is None else ranking.heads[ranking.at].place
        self._follow = self._follow or (self._chosen is not None and chosen != self._chosen)
        self._chosen, self.ranking = chosen, ranking
        self._full = full_bar(ranking.heads, ranking.statistic)

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say(self.ranking.title), "heading"),)

    def note(self) -> Line:
        heads = len(self.ranking.heads)
        return ((self.glyphs.say("{heads} heads", heads=heads), "dim"),) if heads else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        room = max(height - 1, 1)
        heads, _, statistic, at = self.ranking
        if at is not None and self._follow:
            self._top = min(max(self._top, at - room + 1), at)
        self._top = max(min(self._top, len(heads) - room), 0)
        if not heads:  # none has been measured yet
            return [fitted(((f" {self.glyphs.say('measuring')}", "dim"),), width)]
        chosen = None if at is None else at - self._top
        return ranked_lines(heads[self._top : self._top + room], statistic, width, self.glyphs, chosen, self._full)

    def action_move(self, step: int) -> None:
        if heads := self.ranking.heads:
            self._choose(min(max((self.ranking.at or 0) + step, 0), len(heads) - 1))

    async def on_click(self, event: events.Click) -> None:
        number = self.place_of(event).y - 1 + self._top
        if number == self._top - 1:  # on the heads of the columns
            await self.app.run_action("order(1)", self.parent)  # pyright: ignore[reportUnknownMemberType]
        if self._top <= number < len(self.ranking.heads):
            self._choose(number)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.action_move(direction)


class VerdictPage(LinesWidget):
    """Shows the page of a model; the keys of the pane select a head on it."""

    LEADS = True

    def __init__(self, heads: Heads, go: Callable[[int, int], object]) -> None:
        """Show these heads; call `go` with the layer and head to select."""
        super().__init__()
        self._known, self._go = heads, go

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return model_lines(self._known.page, width, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        at = self.place_of(event)
        if (place := head_on_page(self._known.page, *self.room, self.glyphs, at.x, at.y)) is not None:
            self._go(*place)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        layer, head = self._known.cursor
        self._go(layer + direction, head)


_RULES = 20  # cells of rules below which columns are left out
_SHORT: dict[str, str] = {
    "multiplier": "×",
    "one-hot %": message("1-hot %"),
    "saturation": message("satur"),
    "change": "Δ",
}


class ReplayList(LinesWidget, can_focus=True):
    """Shows what every scale rule would have done to the selected head."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "line up"),
        Binding("down,j", "scroll(1)", "line down"),
        Binding("pageup", f"scroll({-_PAGE})", "page up"),
        Binding("pagedown", f"scroll({_PAGE})", "page down"),
        Binding("escape", "leave", "back"),
    ]
    HEADED = True
    TITLE = message("every rule replayed on this head")
    DEFAULT_CLASSES = "region"

    table: Content[Replay | None] = Content(None)
    top = 0

    def show(self, table: Replay) -> None:
        """Show a head under every rule."""
        self.table = table
        self.dim(False)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.table is None:
            return ()
        lines = replay_lines(self.table, width, self.glyphs)
        self.top = min(max(self.top, 0), max(len(lines) - height, 0))
        shown = [lines[0], *lines[1 + self.top :]] if lines else []
        return [fitted(line, width) for line in shown[:height]]

    def action_scroll(self, lines: int) -> None:
        self.top += lines
        self.redraw()

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.action_scroll(direction)


def replay_lines(replay: Replay, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a header, a line for each rule, and what is said below.

    On narrow screens columns are left out; rules without room are counted.
    """
    titles, rows, _ = replay_grid([replay])
    header = [glyphs.say(_SHORT.get(cell, cell)) for cell in titles]
    columns = [lined_up([signed(glyphs.say(row[at]), glyphs) for row in rows]) for at in range(1, len(header))]
    wide = [max(map(cells, (title, *column))) for title, column in zip(header[1:], columns, strict=True)]
    shown, room = range(len(columns)), 0
    for left_out in ((), (2,), (2, 5), (2, 3, 5), (2, 3, 4, 5)):
        shown = [at for at in range(len(columns)) if at not in left_out]
        room = width - 1 - sum(wide[at] + 2 for at in shown)
        if room >= _RULES:
            break
    lines = [_line(header[0], [to_right(header[at + 1], wide[at]) for at in shown], room, "dim")]
    for number, row in enumerate(rows):
        figures = [to_right(columns[at][number], wide[at]) for at in shown]
        role: Role = "scaled" if number == 0 else "text"
        lines.append(_line(_rules(row[0].split(" = "), room, glyphs), figures, room, role))
    for text in replay_remarks([replay]):
        lines.append(())
        for line in wrapped(glyphs.say(text), width - 1):
            lines.append(((" ", "text"), *line))
    return lines


def _line(name: str, figures: Sequence[str], room: int, role: Role) -> Line:
    return ((" " + "  ".join([to_left(name, max(room, 0)), *figures]), role),)


def _rules(names: Sequence[str], room: int, glyphs: Glyphs) -> str:
    """Return rules with the same multiplier, as many as fit, and how many more there are."""
    labels = [glyphs.say(SCALE_RULES[name].label if name in SCALE_RULES else name) for name in names]

    def said(rules: str, count: int) -> str:
        more = len(labels) - count
        return glyphs.say("{rules}, {count} more", rules=rules, count=more) if more else rules

    forms = (said(" = ".join(labels[:count]), count) for count in range(len(labels), 0, -1))
    cut = middle_cut(labels[0], max(room - cells(said("", 1)), 0), glyphs.say("…"))
    return next((form for form in forms if cells(form) <= room), said(cut, 1))
