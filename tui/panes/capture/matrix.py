"""The attention matrix of a head: two rows of cells a line, tokens at the edges, a cursor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual import events
from textual.binding import Binding, BindingType

from ....core.message import joined, message
from ...views.glyphs import Glyphs
from ...views.lines import Blend, Line, Span, fitted, merged
from ...views.numbers import percent
from ...widgets.lines import Content, LinesWidget
from .row import label

if TYPE_CHECKING:
    from ....core.captures.capture import Layer, Tokens
    from ....core.diagnosis.results import AttentionCells

LEVELS = 8  # steps of intensity; shades of text have fewer
_LABELS = 9, 7, 5  # cells of a query's token; fewer if that leaves two for a key
_DEEPEST, _FLATTEST = 1000, 10  # from the largest share of the weight to the least that is shaded: most, and least
_WIDEST = 3  # cells of one key
_PAGE = 8
_LEAST = 4  # queries and keys shown, if there are as many


@dataclass(frozen=True)
class View:
    """Which part of a matrix is shown, and where: ranges of queries and keys, and the size in cells."""

    queries: tuple[int, int]  # the first, and the first one after the last
    keys: tuple[int, int]
    width: int
    height: int
    halves: bool  # whether a line has two rows of cells
    labels: int  # cells of the labels of queries

    @property
    def across(self) -> int:
        """The columns of cells."""
        return max(min((self.width - self.labels) // self.wide, self.keys[1] - self.keys[0]), 1)

    @property
    def down(self) -> int:
        """The rows of cells."""
        count, lines = self.queries[1] - self.queries[0], max(self.height - 1, 1)
        return max(min(count, lines if count <= lines or not self.halves else 2 * lines), 1)

    @property
    def tall(self) -> bool:
        """Whether a row of cells takes a line."""
        return not self.halves or self.down <= max(self.height - 1, 1)

    @property
    def wide(self) -> int:
        """The characters of a cell."""
        return min(max((self.width - self.labels) // max(self.keys[1] - self.keys[0], 1), 1), _WIDEST)


def view(
    queries: tuple[int, int], keys: tuple[int, int], width: int, height: int, halves: bool, tokens: bool
) -> View:
    """Return how a part of a matrix is shown in this size."""
    count = max(keys[1] - keys[0], 1)
    token = next((cells for cells in _LABELS if (width - cells - 2) // count > 1), _LABELS[0])
    labels = (min(token, width // 5) if tokens else len(str(queries[1]))) + 2  # with the mark and a blank
    return View(queries, keys, width, height, halves, labels if labels > 4 and width >= 3 * labels else 0)


def zoomed(range_: tuple[int, int], count: int, at: int, factor: float) -> tuple[int, int]:
    """Return a range `factor` times as long, at most all of `count`, with `at` at the same share of it."""
    first, end = range_
    length = min(max(round((end - first) * factor), min(_LEAST, count)), count)
    share = (at - first) / max(end - first, 1)
    start = min(max(round(at - share * length), at - length + 1, 0), at, count - length)
    return start, start + length


def panned(range_: tuple[int, int], at: int) -> tuple[int, int]:
    """Return the range, moved as little as possible to contain `at`."""
    first, end = range_
    if at < first:
        return at, at + end - first
    return (at + 1 - (end - first), at + 1) if at >= end else range_


def matrix_lines(
    shown: View, matrix: AttentionCells | None, cursor: tuple[int, int], tokens: Tokens, glyphs: Glyphs
) -> list[Line]:
    """Return a line of key tokens and the lines of cells; without a matrix, the cells are blank.

    The cursor is (query, key), and so are the tokens.
    """
    of_queries, of_keys = tokens
    below, beside = _parts(shown, matrix)
    cells: Sequence[Sequence[float | None]] = () if matrix is None else matrix.shares
    shades = ends_of(matrix)
    row = _index(below, cursor[0])
    column = _index(beside, cursor[1])
    lines = [_ruler(shown, beside, column, of_keys, glyphs)]
    step = 1 if shown.tall else 2
    for at in range(0, len(below) - 1, step):
        query = below[row] if at <= row < at + step else below[at]
        here = at <= row < at + step
        mark = glyphs.cursor if here else " "
        spans: list[Span] = []
        if shown.labels:
            named = of_queries is None or matrix is not None
            place = query if of_queries is None or matrix is None else matrix.positions[row if here else at]
            if here and matrix is not None and _is_consecutive(matrix):
                place += cursor[0] - below[row]
            text = label(of_queries, place, shown.labels - 2, glyphs) if named else " " * (shown.labels - 2)
            spans.append((mark + text + " ", "accent" if here else "label"))
        pair = range(at, min(at + step, len(cells)))
        for x in range(len(beside) - 1):
            chosen = row - at if x == column and here else None
            values = [cells[y][x] if x < len(cells[y]) else None for y in pair]
            spans.append(_cell(values, shades, shown, chosen, glyphs))
        lines.append(fitted(merged(spans), shown.width))
    return lines


def pair_at(shown: View, matrix: AttentionCells | None, x: int, y: int) -> tuple[int, int] | None:
    """Return the query and key of the cell at a place of these lines; the upper query of two."""
    below, beside = _parts(shown, matrix)
    row, column = (y - 1) * (1 if shown.tall else 2), (x - shown.labels) // shown.wide
    if x < shown.labels or y < 1 or row >= len(below) - 1 or column >= len(beside) - 1:
        return None
    return below[row], beside[column]


def legend(matrix: AttentionCells | None, glyphs: Glyphs, blends: bool) -> Line:
    """Return what the lightest and the darkest cell mean."""
    low, high = (f" {percent(share)} " for share in ends_of(matrix))
    if not blends:
        return ((f"{glyphs.shades[1]}{low} {glyphs.shades[-1]}{high.rstrip()}", "dim"),)
    return (("  ", Blend(1, 1)), (low, "dim"), ("  ", Blend(LEVELS, LEVELS)), (high.rstrip(), "dim"))


def ends_of(matrix: AttentionCells | None) -> tuple[float, float]:
    """Return the shares of the weight between which cells are shaded: the least, no less than 1/1000, and the most.

    They are at least a factor of ten apart, so that a uniform head looks uniform.
    """
    shares = [share for row in matrix.shares for share in row if share] if matrix is not None else []
    most = max(shares, default=1.0)
    return min(max(min(shares, default=0.0), most / _DEEPEST), most / _FLATTEST), most


def level(share: float, ends: tuple[float, float], levels: int = LEVELS) -> int:
    """Return the intensity of a share of the weight, 0 below the first of `ends`: its logarithm between them."""
    low, high = ends
    if share < low * (1 - 1e-9):
        return 0
    return 1 + min(int(levels * math.log(share / low) / math.log(high / low) + 1e-9), levels - 1)


def _is_consecutive(matrix: AttentionCells) -> bool:
    """Return whether the queries of a matrix are neighbours in the text."""
    return matrix.positions[-1] - matrix.positions[0] == matrix.queries[-2] - matrix.queries[0]


def _parts(shown: View, matrix: AttentionCells | None) -> tuple[Sequence[int], Sequence[int]]:
    if matrix is not None:
        return matrix.queries, matrix.keys
    return (_even(shown.queries, shown.down), _even(shown.keys, shown.across))


def _even(ends: tuple[int, int], count: int) -> list[int]:
    first, end = ends
    return [first + (end - first) * number // count for number in range(count + 1)]


def _index(edges: Sequence[int], at: int) -> int:
    """Return which part contains a place."""
    return next((number for number, (first, end) in enumerate(pairwise(edges)) if first <= at < end), -1)


def _cell(
    values: Sequence[float | None], ends: tuple[float, float], shown: View, chosen: int | None, glyphs: Glyphs
) -> Span:
    """Return one cell; `chosen` is the row of the pair that has the cursor."""
    if not shown.halves:
        value = values[0] if values else None
        text = " " if value is None else glyphs.shades[level(value, ends, len(glyphs.shades) - 1)]
        if chosen is not None:
            return (text if text.strip() else "+").ljust(shown.wide), "cursor"
        return text * shown.wide, "scaled"
    upper = values[0] if values else None
    lower = upper if shown.tall else values[1] if len(values) > 1 else None
    if chosen is not None:
        half = "█" if shown.tall else "▀▄"[chosen]
        return half * shown.wide, "accent"
    top, bottom = [-1 if weight is None else level(weight, ends) for weight in (upper, lower)]
    half = " " if top == bottom else "▀▄"[top < bottom]  # one style for both, which sends less
    return half * shown.wide, Blend(max(top, bottom), min(top, bottom))


def _ruler(shown: View, beside: Sequence[int], column: int, tokens: Sequence[str] | None, glyphs: Glyphs) -> Line:
    """Return the tokens of keys over their columns, that of the cursor first, others where there is room."""
    row: list[tuple[int, str]] = []
    taken = [False] * (shown.width + 1)
    width = 7 if tokens is not None else len(str(shown.keys[1]))
    order = [column, *range(len(beside) - 1)] if column >= 0 else range(len(beside) - 1)
    for each in order:
        at = shown.labels + each * shown.wide
        text = label(tokens, beside[each], width, glyphs).rstrip()
        at = max(min(at, shown.width - len(text)), shown.labels) if each == column else at
        if at + len(text) <= shown.width and not any(taken[max(at - 1, 0) : at + len(text) + 1]):
            row.append((at, text))
            taken[at : at + len(text)] = [True] * len(text)
    spans: list[Span] = []
    end, own = 0, row[0] if row and column >= 0 else None
    for at, text in sorted(row):
        spans.append((" " * (at - end), "text"))
        spans.append((text, "accent" if (at, text) == own else "dim"))
        end = at + len(text)
    return fitted(tuple(spans), shown.width)


MatrixPlace: TypeAlias = tuple[int, tuple[int, int], tuple[int, int], tuple[int, int]]


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
