"""The layer × head map of a statistic, readable without colours, with a cursor; below it, facts on the head."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from textual import events

from ....core.diagnosis.heads.reasons import head_word
from ....core.message import joined, message
from ....core.statistics.catalogue import Statistic
from ....core.statistics.status import SATURATED
from ...language.cells import cells
from ...views.glyphs import Glyphs
from ...views.help import MARKS
from ...views.lines import Line, Span, fitted, line_width
from ...views.numbers import short_in_unit
from ...views.plots.head_map import WIDEST, MapWindow, Place, map_window, shade
from ...views.results.ranked import capture_lines, statistic_lines
from ...widgets.lines import LinesWidget
from .heads import Heads

MARGIN = 4  # cells for the number of a layer
_TITLES = 2  # lines above the first layer


@dataclass(frozen=True)
class HeadMap:
    """Values by (position of the layer, head): None for an unreadable head, no entry until measured."""

    layers: Sequence[int]  # the number of each layer
    heads: Sequence[int]  # the number of heads of each layer
    values: Mapping[tuple[int, int], float | None]
    words: Mapping[tuple[int, int], str | None] = field(default_factory=dict[tuple[int, int], "str | None"])


def wanted_width(heads: int, wide: bool) -> int:
    """Return the width of a map with this many heads a layer, in wide cells or in narrow ones."""
    return MARGIN + (WIDEST if wide else 2) * heads + 1


def shown_part(head_map: HeadMap, cursor: Place, width: int, height: int) -> MapWindow:
    """Return the part of a map that its lines show in this size."""
    return map_window(head_map.heads, cursor, MARGIN, width, max(height - _TITLES - 1, 1))


def map_lines(
    head_map: HeadMap, statistic: Statistic, cursor: Place, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return a title, a line per layer and the legend; of a map that does not fit, the part around the cursor."""
    shown = shown_part(head_map, cursor, width, height)
    numbers = [value for value in head_map.values.values() if value is not None]
    # Noise is not told apart by shades.
    reach = (0.0, SATURATED) if statistic.name == "saturation" and numbers else ()
    low, high = min((*numbers, *reach), default=0.0), max((*numbers, *reach), default=0.0)
    least, largest = (short_in_unit(value, statistic.unit, glyphs) for value in (low, high))
    label = glyphs.say(statistic.label)
    label = label if cells(label) <= width else glyphs.say(statistic.short_label)

    def cell(place: Place) -> Span:
        """Return one head: a darker shade for a larger value, and a mark, which replaces a shade one cell wide.

        `!` marks an unreadable head, a point or a dash one that is not measured yet.
        """
        value, word = head_map.values.get(place), head_map.words.get(place) or "healthy"
        mark = MARKS.get(word, "")
        if value is None:
            text, role = ("!", "alert") if place in head_map.values else ("-" if glyphs.ascii else "·", "scaled")
        else:
            text = shade(0.0 if least == largest else (value - low) / (high - low), place == cursor, glyphs)
            text = mark + text if shown.cell < WIDEST and place != cursor else text + mark
            role = "alert" if word in ("wrong", "NaN") else "dim" if word == "uniform" else "scaled"
        return text[: shown.cell].ljust(shown.cell), "cursor" if place == cursor else role

    lines: list[Line] = [
        ((label, "heading"), (_shown(shown, width - cells(label), glyphs), "dim")),
        _ruler(shown, width),
        *shown.lines([f"{layer:>3} " for layer in head_map.layers], cell),
        _legend(least, largest, bool(numbers), glyphs),
    ]
    return [fitted(line, width) for line in lines[:height]]


def _shown(shown: MapWindow, room: int, glyphs: Glyphs) -> str:
    """Return the rest of the title; if the map does not fit, that it is a part, and the size of the whole."""
    layers, heads = len(shown.counts), max(shown.counts)
    parts = [message("{layers} layers", layers=layers)] * (layers > len(shown.layers))
    parts += [message("{heads} heads", heads=heads)] * (heads > len(shown.heads))
    words = glyphs.say(", part of {whole}", whole=joined(parts, " x ")) if parts else glyphs.say(", by head")
    if cells(words) <= room:
        return words
    return glyphs.say(", part") if parts else ""


def _ruler(shown: MapWindow, width: int) -> Line:
    """Return the head numbers over their columns; those without space are left out."""
    row = [" "] * width
    free = 0
    for number, head in enumerate(shown.heads):
        at, text = MARGIN + number * shown.cell, str(head)
        if (shown.cell >= 2 or head % 4 == 0) and at >= free and at + len(text) <= width:
            row[at : at + len(text)] = text
            free = at + len(text) + 1
    return (("".join(row), "dim"),)


def mark_lines(head_map: HeadMap, width: int, glyphs: Glyphs, shades: Line = ()) -> list[Line]:
    """Return what `shades` and marks on the map mean, in as many lines as that takes; empty if there are none."""
    there = {*head_map.words.values()}
    first: list[Span] = [span for span in shades if span[0].strip()]
    lines: list[list[Span]] = [[*first, ("  ", "text")]] if first else []
    for word, mark in MARKS.items():
        if word not in there:
            continue
        words = f" {glyphs.say(word)}  "
        if not lines or line_width(tuple(lines[-1])) + cells(mark + words.rstrip()) > width:
            lines.append([])
        lines[-1].append((mark, "scaled"))
        lines[-1].append((words, "dim"))
    return [fitted(tuple(line), width) for line in lines]


def _legend(least: str, most: str, known: bool, glyphs: Glyphs) -> Line:
    """Return the values of the lightest and the darkest shade; one value if they do not differ."""
    if not known:
        return ((glyphs.say("measuring"), "dim"),)
    if least == most:
        return ((glyphs.say("all {value}", value=least), "dim"),)
    darkest = glyphs.shades[-1]
    return (
        (glyphs.shades[1], "scaled"),
        (glyphs.say(" {least}  to  ", least=least), "dim"),
        (darkest, "scaled"),
        (f" {most}", "dim"),
    )


_LEAST_FACTS = 2  # lines of facts and the blank one before them that a low screen keeps from the legend
_LEAST_STATISTICS = 8  # lines below the facts from which statistics of the head are shown there
_FACTS = 7  # lines reserved for the facts


class HeadMapWidget(LinesWidget):
    """Shows one statistic of every head, and facts on the selected one."""

    TITLE = message("heads")
    LEADS = True
    DEFAULT_CLASSES = "region"

    def __init__(self, heads: Heads, moved: Callable[[], object]) -> None:
        """Show these heads; `moved` is called when another one was selected."""
        super().__init__()
        self.known, self._moved = heads, moved
        self._top = 0  # first line shown of the facts

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        known = self.known
        if known.capture is None:
            return ()
        head_map, cursor, verdicts = self._map, known.cursor, known.verdicts
        lines = [*map_lines(head_map, known.statistic, cursor, width, self._map_height(height), self.glyphs)]
        legend = mark_lines(head_map, width, self.glyphs, lines.pop())[: max(height - len(lines) - _LEAST_FACTS, 1)]
        lines += [*legend, fitted((), width)]
        because = known.reasons(cursor) if cursor in known.measured else ()
        facts = capture_lines(
            known.capture, known.layer, cursor[1], known.measured, cursor, width - 1, self.glyphs, because, verdicts
        )
        room = height - len(lines)
        measured = known.measured.get(cursor)
        if measured and room - len(facts) > _LEAST_STATISTICS:
            facts += [(), *statistic_lines(measured, width - 1, room - len(facts) - 1, self.glyphs)]
        self._top = min(self._top, max(len(facts) - room, 0))
        shown = facts[self._top : self._top + room]
        if len(shown) > 1 and self._top + room < len(facts):
            more = len(facts) - self._top - room + 1
            shown[-1] = ((self.glyphs.say("{count} more lines (PgDn)", count=more), "dim"),)
        return [*lines, *(fitted(line, width) for line in shown)]

    @property
    def _map(self) -> HeadMap:
        known = self.known
        layers = known.capture.layers if known.capture is not None else ()
        verdicts = known.verdicts
        words = {place: head_word(head, verdicts.get(place)) for place, head in known.measured.items() if head}
        values = {place: known.value(place) for place in known.measured}
        return HeadMap([layer.index for layer in layers], [layer.heads for layer in layers], values, words)

    def _map_height(self, height: int) -> int:
        """Return the lines of the map and its legend."""
        known = self.known
        layers = len(known.capture.layers) if known.capture is not None else 0
        return min(layers + 3, max(height - _FACTS, 6))

    def read(self, lines: int) -> None:
        """Scroll the facts down by `lines`; up if negative."""
        self._top = max(self._top + lines, 0)
        self.redraw()

    def go(self, layer: int, head: int) -> None:
        """Put the cursor on a head, or on the nearest one that exists."""
        before = self.known.cursor
        self.known.select(layer, head)
        if self.known.cursor != before:
            self.redraw()
            self._moved()

    async def on_click(self, event: events.Click) -> None:
        known = self.known
        if known.capture is None:
            return
        x, y = self.place_of(event)
        if y == 0:  # on the name of the statistic
            await self.app.run_action("options", self.parent)  # pyright: ignore[reportUnknownMemberType]
            return
        width, height = self.size
        head = shown_part(self._map, known.cursor, width, self._map_height(height)).place_at(x, y - _TITLES)
        if head is not None:
            self.go(*head)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        layer, head = self.known.cursor
        self.go(layer + direction, head)
