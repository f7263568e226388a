"""The parts of the Capture pane beside the map: the list of heads, the attention matrix and one row of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events
from textual.binding import Binding, BindingType

from ....core.against import words as setting_words
from ....core.message import joined, message
from ....core.statistics.catalogue import STATISTIC
from ...views.lines import Line, fitted
from ...views.results.model_page import head_on_page, model_lines
from ...views.results.ranked import full_bar, ranked_lines
from ...widgets.lines import ChoosingLines, Content, LinesWidget
from .heads import HeadRanking, Heads
from .matrix import View, legend, matrix_lines, pair_at, panned, view, zoomed
from .row import key_at, named, nan_words, row_lines, shared, threshold_words

if TYPE_CHECKING:
    from ....core.captures.capture import Layer, Tokens
    from ....core.diagnosis.results import AttentionCells, AttentionRow
    from ....core.parameters import Value

_PAGE = 8
_NARROW_ROW = 40  # cells of a row of attention whose title says the format, instead of the token
MatrixPlace: TypeAlias = tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]


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


class AttentionMatrix(LinesWidget, can_focus=True):
    """Shows a part of a head's attention matrix, with a cursor on a query and a key."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1, 0)", "query above"),
        Binding("down,j", "move(1, 0)", "query below"),
        Binding("left,h", "move(0, -1)", "key before"),
        Binding("right,l", "move(0, 1)", "key after"),
        Binding("pageup", f"move({-_PAGE}, 0)", "page up"),
        Binding("pagedown", f"move({_PAGE}, 0)", "page down"),
        Binding("escape", "leave", "back"),
    ]
    HEADED = True
    DEFAULT_CLASSES = "region"

    def __init__(self, moved: Callable[[], object]) -> None:
        """Call `moved` when the cursor is elsewhere, or another part is shown."""
        super().__init__()
        self._moved = moved

    source: Content[Layer | None] = Content(None)
    head = 0
    text = 0
    cursor: Content[tuple[int, int]] = Content((0, 0))  # query, key
    queries: Content[tuple[int, int]] = Content((0, 1))  # shown: the first, and the first one after the last
    keys: Content[tuple[int, int]] = Content((0, 1))
    tokens: Tokens = (None, None)
    matrix: Content[AttentionCells | None] = Content(None)
    disputed: Content[bool] = Content(False)  # whether the evidence contradicts the file, which is drawn
    _shown: View | None = None  # what `matrix` was computed for

    @property
    def halves(self) -> bool:
        """Whether a line has two rows of cells, which takes colours that blend."""
        ansi = self.background_colors[1].ansi is not None
        grey = self.app.no_color  # pyright: ignore[reportUnknownMemberType]
        return not (self.glyphs.ascii or ansi or grey)

    @property
    def view(self) -> View:
        """The part that is to be shown, in this size."""
        width, height = self.room
        return view(self.queries, self.keys, width, height, self.halves, self.tokens[0] is not None)

    def open(self, layer: Layer, head: int, tokens: Tokens) -> None:
        """Show a head; the part and the cursor stay if they exist in it."""
        old = self.source
        if old is None or (old.queries, old.keys) != (layer.queries, layer.keys):
            self.queries, self.keys = (0, layer.queries), (0, layer.keys)
            self.cursor = (layer.queries - 1, 0)
        self.source, self.head, self.tokens = layer, head, tokens
        self.dim(True)

    @property
    def place(self) -> MatrixPlace:
        """The text, the cursor and the part shown, which undo restores."""
        return self.text, self.cursor, self.queries, self.keys

    def restore(self, place: MatrixPlace, layer: Layer | None) -> None:
        """Restore a place, of a head in this layer; its matrix is requested again."""
        self.source = layer
        self.text, self.cursor, self.queries, self.keys = place

    def show(self, matrix: AttentionCells) -> None:
        """Show a matrix, unless it is of another part or head."""
        shown = self.view
        ends = (matrix.queries[0], matrix.queries[-1]), (matrix.keys[0], matrix.keys[-1])
        size = len(matrix.queries) - 1, len(matrix.keys) - 1
        whose = self.source and (matrix.layer, matrix.head, matrix.text) == (
            self.source.position,
            self.head,
            self.text,
        )
        if whose and ends == (shown.queries, shown.keys) and size == (shown.down, shown.across):
            self.matrix, self._shown = matrix, shown
            self.dim(False)

    def heading(self, width: int) -> Line:
        layer = self.source
        if layer is None:
            return ((self.glyphs.say("attention"), "heading"),)
        size = f"{layer.queries} × {layer.keys}"
        place = f"{layer.index}/{self.head}"
        if layer.batch > 1:
            place = message("{place}, text {text}", place=place, text=self.text)
        forms: list[str] = [message("{place}: attention {size}", place=place, size=size), f"{place}: {size}", place]
        if (self.queries, self.keys) != ((0, layer.queries), (0, layer.keys)):
            shown = " × ".join(f"{first}–{end - 1}" for first, end in (self.queries, self.keys))
            forms = [
                message("{place}: {shown} of {size}", place=place, shown=shown, size=size),
                f"{place}: {shown}",
                place,
            ]
        return ((self.glyphs.fitting(forms, width), "heading"),)

    def note(self) -> Line:
        words: list[str] = [message("rough")] if self.matrix is not None and self.matrix.rough else []
        if self.disputed:
            words.append(message("not as computed"))
        said: Line = ((self.glyphs.say(joined(words)) + "  ", "dim"),) if words else ()
        return (*said, *legend(self.matrix, self.glyphs, self.halves))

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.source is None or height < 2:
            return ()
        shown, matrix = self._shown, self.matrix
        if shown is None or (shown.width, shown.height, shown.halves) != (width, height, self.halves):
            shown, matrix = self.view, None
        lines = matrix_lines(shown, matrix, self.cursor, self.tokens, self.glyphs)
        return lines[:height]

    def choose(self, query: int, key: int) -> None:
        """Move the cursor, at most to the edges, and the part shown with it."""
        if self.source is None:
            return
        query = min(max(query, 0), self.source.queries - 1)
        key = min(max(key, 0), self.source.keys - 1)
        self.cursor = (query, key)
        self.queries = panned(self.queries, query)
        self.keys = panned(self.keys, key)
        self._moved()

    def zoom(self, factor: float) -> None:
        """Show a part `factor` times as long, around the cursor."""
        if self.source is not None:
            self.queries = zoomed(self.queries, self.source.queries, self.cursor[0], factor)
            self.keys = zoomed(self.keys, self.source.keys, self.cursor[1], factor)
            self._moved()

    def action_move(self, down: int, right: int) -> None:
        self.choose(self.cursor[0] + down, self.cursor[1] + right)

    def on_resize(self) -> None:
        self._moved()

    def on_click(self, event: events.Click) -> None:
        place = self.place_of(event)
        found = pair_at(self._shown or self.view, self.matrix, place.x, place.y)
        if found is not None:
            self.choose(*found)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.action_move(direction, 0)


class AttentionBars(ChoosingLines):
    """Shows one row of attention as bars, in the settings of A and B; a click chooses a key."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    row: Content[AttentionRow | None] = Content(None)
    disputed: Content[bool] = Content(False)  # whether the evidence contradicts the file, whose scale is that of B
    softcap: Content[float | None] = Content(None)  # of both columns
    key: Content[int] = Content(0)  # the marked one
    tokens: Tokens = (None, None)

    def show(self, row: AttentionRow, tokens: Tokens) -> None:
        """Show a row."""
        self.row, self.tokens = row, tokens
        self.dim(False)

    def heading(self, width: int) -> Line:
        if self.row is None:
            return ((self.glyphs.say("query"), "heading"),)
        which = named(self.tokens[0], self.row.position)
        if (computed := self._computed) and width < _NARROW_ROW:  # no room for it at the right
            which = joined([str(self.row.position), setting_words(computed)], ", ")
        return ((self.glyphs.say("query {named}", named=which), "heading"),)

    @property
    def _computed(self) -> Mapping[str, Value]:
        """The number format and arithmetic of all columns."""
        return {name: value for name, value in shared(self.row).items() if name != "softcap"} if self.row else {}

    def note(self) -> Line:
        if self.row is None:
            return ()
        computed = self._computed
        words = [setting_words(computed) if computed else message("{keys} keys", keys=self.row.visible)]
        words += [] if self.softcap is None else [message("capped at {softcap:g}", softcap=self.softcap)]
        return ((self.glyphs.say(joined(words, ", ")), "dim"),)

    def _foot(self) -> Line:
        """Return what stands below the row: its fault, or where it recovers."""
        if self.disputed:
            return ((self.glyphs.say("file: not as computed"), "alert"),)
        if self.row is None:
            return ()
        failed = nan_words(self.row, self.room.width, self.glyphs)
        return (
            ((failed, "alert"),) if failed else ((threshold_words(self.row, self.room.width, self.glyphs), "text"),)
        )

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.row is None:
            return ()
        below = [fitted(self._foot(), width)]
        return [*row_lines(self.row, self.key, self.tokens[1], width, height - len(below), self.glyphs), *below]

    def on_click(self, event: events.Click) -> None:
        if self.row is not None:
            width, height = self.room
            y = self.place_of(event).y
            found = key_at(self.row, self.key, self.tokens[1], width, height - 1, y, self.glyphs)
            if found is not None:
                self._choose(found)
