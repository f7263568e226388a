"""The page of a run: its largest logit in large digits, and every head over the steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ....core.message import joined, message
from ....core.tables.runs import logit_words
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, merged, shortened, window, wrapped
from ..page import LOW, headline_lines, large, picture_columns, section_line, words_at
from .watching import chart, is_over, largest_of, place_of, spread, summary

if TYPE_CHECKING:
    from ....core.watching.snapshot import RunSnapshot

Place = tuple[int, int]  # position of the layer, head

LEAST = 12  # lines of the page from which it has digits
_WIDEST = 4  # columns of layers
_COLUMN = 44  # cells of one, at least
_NAME, _NUMBER, _VALUE, _GAP = 11, 5, 8, 2  # of a name, a number of a head, a logit, and between columns
_RANGE = 50  # of a limit to the value below which a head has the lightest shade
_HIGHEST = 6  # lines of a head
_CHART = 3  # lines of a head from which it is drawn as bars


class TimeMap(NamedTuple):
    """The lines of heads over the steps, and for each line the heads in it, from the left."""

    lines: list[Line]
    places: list[tuple[Place, ...]]
    width: int  # cells of a column
    bars: bool  # whether heads are drawn as bars, not as shades


class _Row(NamedTuple):
    """A line of the map, or the title of a layer, which has no values."""

    name: str
    place: Place
    values: Sequence[float] = ()
    now: float = math.nan


def page_lines(
    shown: RunSnapshot, chosen: Place, about: Callable[[int], list[Line]], width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return the page of a run in exactly `height` lines; `about` is what is said below for some lines."""
    lines, found, below = _page(shown, chosen, about, width, height, glyphs)
    blanks: list[Line] = [()] * (height - len(lines) - len(found.lines) - len(below))
    return [fitted(line, width) for line in [*lines, *found.lines, *blanks, *below][:height]]


def head_at_page(
    shown: RunSnapshot,
    chosen: Place,
    about: Callable[[int], list[Line]],
    size: tuple[int, int],
    at: tuple[int, int],
    glyphs: Glyphs,
) -> Place | None:
    """Return the head at a cell of the lines that `page_lines` returns for the same size, if there is one."""
    lines, found, _ = _page(shown, chosen, about, *size, glyphs)
    x, y = at[0] // found.width, at[1] - len(lines)
    inside = 0 <= y < len(found.places) and x < len(found.places[y])
    return found.places[y][x] if inside else None


def _page(
    shown: RunSnapshot, chosen: Place, about: Callable[[int], list[Line]], width: int, height: int, glyphs: Glyphs
) -> tuple[list[Line], TimeMap, list[Line]]:
    """Return the lines above the map, the map, and those below."""
    lines = _headline(shown, width, glyphs) if height >= LEAST else []
    least = about(1) if height >= LEAST else []
    found = head_map(shown, chosen, width, height - len(lines) - len(least) - 1, glyphs)
    title = message("largest |logit|")
    note = (
        message("time →   log axis") if found.bars else _legend(shown, width - cells(glyphs.say(title)) - 9, glyphs)
    )
    lines.append(section_line(title, note, width, glyphs))
    return lines, found, about(height - len(lines) - len(found.lines) - 1) or least


def _headline(shown: RunSnapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the verdict, and the largest logit of the step with what is said of the run."""
    known = [head for head in shown.ranked if not math.isnan(head.value)]
    worst = max(known, key=lambda head: head.value, default=None)
    verdict, role = _verdict(shown)
    place: Span = (f"   {glyphs.say(_where(shown, worst.layer, worst.head))}", "text") if worst else ("", "text")
    newest = shown.step == max(shown.steps)
    when = message("at step {step}" if newest else "at step {step}   End: newest", step=shown.step)
    step: Span = (f"   {glyphs.say(when)}", "dim")
    label: Line = ((" ", "text"), (f" {glyphs.say(verdict)} ", role), place, step)
    number = "—" if worst is None or math.isinf(worst.value) else f"{worst.value:.3g}"
    at = picture_columns(width).name
    beside = max(words_at(width), at + len(large(number, False, glyphs)[0]) + 2)
    said = summary(shown)
    if not shown.scaled:  # a limit means little for them
        scale = glyphs.say(shown.says_scale)
        said = joined([message("{scale}.", scale=scale[:1].upper() + scale[1:]), said])
    words = wrapped(glyphs.say(said), width - beside - 1)
    words = shortened(words, width - beside - 1, LOW, glyphs.say("…"))
    digits: Role = "alert" if shown.over else "heading"
    return [label, *headline_lines(message("now"), number, words, width, glyphs, at, digits, beside=beside)]


def _verdict(shown: RunSnapshot) -> tuple[str, Role]:
    """Return the label of the page."""
    if shown.over:
        return message("OVER THE LIMIT"), "wrong"
    return (message("CAME BACK"), "wrong") if shown.came_back else (message("BELOW THE LIMIT"), "right")


def _where(shown: RunSnapshot, layer: int, head: int) -> str:
    return message("layer {layer} head {head}", layer=shown.layers[layer], head=head)


def _legend(shown: RunSnapshot, room: int, glyphs: Glyphs) -> str:
    """Return from where on a head has which shade, as much as fits."""
    shades = glyphs.shades[1:-1]
    starts = [0.0, *(shown.limit / _RANGE * _RANGE ** (level / len(shades)) for level in range(1, len(shades)))]
    words = "  ".join(f"{shade} {start:.2g}" for shade, start in zip(shades, starts, strict=True))
    over = message("{shade} over {limit:g}", shade=glyphs.shades[-1], limit=shown.limit)
    return glyphs.fitting([message("time →   {shades}  {over}", shades=words, over=over), over], room)


def head_map(shown: RunSnapshot, chosen: Place, width: int, height: int, glyphs: Glyphs) -> TimeMap:
    """Return a line for each head over the steps, and their axis, in at most `height` lines.

    Layers stand beside each other if that shows every head. If not, the chosen layer is shown by head and others by
    the largest of theirs, as many as fit around it. Heads that leave room are drawn as bars several lines high.
    """
    titled = max(shown.heads) > 1
    for columns in range(1, min(max(width // _COLUMN, 1), _WIDEST) + 1):
        starts = range(0, len(shown.layers), columns)
        bands = [_band(shown, range(first, min(first + columns, len(shown.layers))), titled) for first in starts]
        rows = [row for band in bands for row in band]
        if len(rows) < height:
            break
    else:
        columns, titled = 1, False
        rows = [(row,) for row in _folded(shown, chosen)]
        first = window([row[0].place for row in rows].index(chosen), len(rows), height - 1)
        rows = rows[first : first + height - 1]
    heads = sum(bool(row[0].values) for row in rows)
    tall = min((height - 1 - (len(rows) - heads)) // max(heads, 1), _HIGHEST)
    tall = tall if tall >= _CHART else 1
    column = width // columns
    name = _NUMBER if titled else _NAME
    cells = max(column - name - _VALUE - _GAP, 1)
    lines: list[Line] = []
    places: list[tuple[Place, ...]] = []
    for row in rows:
        parts = [_row_lines(one, shown, chosen, (name, cells, tall), glyphs) for one in row]
        for number in range(tall if row[0].values else 1):
            lines.append(tuple(span for part in parts for span in fitted(part[number], column)))
            places.append(tuple(one.place for one in row))
    first, last = f"{shown.steps[0]} ", f" {shown.step}"
    rule = glyphs.rule * (cells - len(first) - len(last))
    axis = fitted(((" " * name, "text"), (first + rule + last, "dim")), column)
    return TimeMap([*lines, axis * columns], places, column, tall > 1)


def _band(shown: RunSnapshot, layers: Sequence[int], titled: bool) -> list[tuple[_Row, ...]]:
    """Return the lines of layers that stand beside each other."""
    title = tuple(_Row(message("layer {layer}", layer=shown.layers[layer]), (layer, 0)) for layer in layers)
    most = max(shown.heads[layer] for layer in layers)
    rows = [tuple(_head(shown, layer, head, f"{head}" if titled else "") for layer in layers) for head in range(most)]
    return [title, *rows] if titled else rows


def _folded(shown: RunSnapshot, chosen: Place) -> list[_Row]:
    """Return the heads of the chosen layer, and of other layers the largest."""
    rows: list[_Row] = []
    for layer, heads in enumerate(shown.heads):
        of = [_head(shown, layer, head) for head in range(heads)]
        if layer == chosen[0]:
            rows += of
            continue
        known = [shown.trends[head.place] for head in of if head.place in shown.trends]
        values = [largest_of(together) for together in zip(*known, strict=True)]
        worst = max(of, key=lambda head: -math.inf if math.isnan(head.now) else head.now)
        name = message("layer {layer}", layer=shown.layers[layer])
        rows.append(_Row(name, worst.place, values or (math.nan,), worst.now))
    return rows


def _head(shown: RunSnapshot, layer: int, head: int, name: str = "") -> _Row:
    """Return the line of a head; blank if the layer has fewer."""
    if head >= shown.heads[layer]:
        return _Row("", (layer, shown.heads[layer] - 1), (math.nan,))
    values = shown.trends.get((layer, head), (math.nan,))
    now = values[-1] if values else math.nan
    return _Row(name or place_of(shown, layer, head), (layer, head), values, now)


def _row_lines(
    row: _Row, shown: RunSnapshot, chosen: Place, size: tuple[int, int, int], glyphs: Glyphs
) -> list[Line]:
    """Return the lines of a head: its name, its logits over the steps, and the last of them.

    `size` has the cells of its name and of the steps, and the number of lines.
    """
    room, cells, each = size
    if not row.values:
        return [((f"  {glyphs.say(row.name)}", "title"),)]
    here = row.place == chosen and row.name != ""
    name, number = (glyphs.say(text) if row.name else "" for text in (row.name, logit_words(row.now)))
    mark: Line = ((glyphs.cursor if here else " ", "accent"), (to_left(f" {name}", room - 1), "label"))
    value: Span = (to_right(number, _VALUE), "alert" if is_over(row.now, shown.limit) else "dim")
    values = spread(row.values, cells)
    if each == 1:
        return [(*mark, *merged(_shade(one, shown.limit, glyphs) for one in values), value)]
    pictures = chart(values, (cells, each), (shown.limit / _RANGE, 2 * shown.limit), shown.limit, glyphs)
    blank: Line = ((" " * room, "text"),)
    return [*((*blank, *line) for line in pictures[:-1]), (*mark, *pictures[-1], value)]


def _shade(value: float, limit: float, glyphs: Glyphs) -> Span:
    """Return a cell: darker for a larger logit, on a logarithmic scale up to the limit, and full over it."""
    if math.isnan(value):
        return " ", "unscaled"
    if is_over(value, limit):
        return glyphs.shades[-1], "alert"
    levels = len(glyphs.shades) - 2
    part = math.log(max(value * _RANGE / limit, 1.0)) / math.log(_RANGE)
    return glyphs.shades[1 + min(int(part * levels), levels - 1)], "unscaled"
