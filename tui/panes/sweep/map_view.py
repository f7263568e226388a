"""A map of one statistic over d_k and the number of keys, with the line on which softmax saturates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from textual import events

from ....core.against import fault_of_settings
from ....core.message import message
from ....core.parameters import FIELD, Parameters
from ....core.questions.sweep import SweepQuestion, SweptPoint
from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.statistics.measurement import setting_names
from ....core.theory.prediction import crossings, is_saturated
from ...compute.measure import Place
from ...language.cells import cells as cells_of
from ...language.cells import joining
from ...views.glyphs import Glyphs
from ...views.lines import Line, Span, fitted, merged, middle_cut
from ...views.numbers import short
from ...views.results.table import COLUMN_ROLES
from ...widgets.lines import ChoosingLines, Content
from .curve_view import Reading, reading_lines, unit_words

if TYPE_CHECKING:
    from ....core.statistics.measurement import Column
    from ....core.theory.prediction import PredictedColumn

D_KS = tuple(2**power for power in range(13))
N_KEYS = tuple(2**power for power in range(1, 14))
_DRAWS, _ROWS = 4, 32  # measured at most: a cell of a map needs no more
_LEARNED = 512  # the widest d_k measured for mechanisms with learned weights, which grow like d_k²

_MARGIN = 6  # cells of ` 8192 `
_HEAD, _FOOT = 1, 1  # lines over and under the cells of a panel: its title, and the labels of d_k
_BESIDE = 72  # cells from which both columns are shown
_GAP = 2  # cells between them
_BESIDE_NAME, _LEAST_NAME = 5, 12  # cells of a panel's title beside the name of its column, and for that at least
_NARROWEST, _WIDEST = int(FIELD["d_k"].low), int(FIELD["d_k"].high)

Edge: TypeAlias = tuple[float, bool]  # a d_k, and whether softmax is saturated above it, and not below


@dataclass(eq=False)
class MapResults:
    """The results so far over d_k and numbers of keys."""

    parameters: Parameters  # their d_k and keys are ignored
    exact: dict[Place, Sequence[PredictedColumn]] = field(default_factory=dict[Place, "Sequence[PredictedColumn]"])
    measured: dict[Place, SweptPoint] = field(default_factory=dict[Place, SweptPoint])
    complete: bool = False  # whether every place has been measured

    @cached_property
    def d_ks(self) -> tuple[int, ...]:
        """The values of d_k that are measured: those with multipliers."""
        p, most = self.parameters, _LEARNED if self.parameters.mechanism in ("additive", "bilinear") else D_KS[-1]
        return tuple(
            d_k
            for d_k in D_KS
            if d_k <= most and not any(fault_of_settings(replace(p, d_k=d_k, n_keys=n)) for n in N_KEYS)
        )

    @cached_property
    def sweep(self) -> SweepQuestion:
        """The question that measures every place."""
        p = self.parameters
        measured = replace(p, batch=min(p.batch, _DRAWS), n_queries=min(p.n_queries, _ROWS))
        d_k, n_keys = (",".join(map(str, values)) for values in (self.d_ks or D_KS, N_KEYS))
        return SweepQuestion(measured, d_k, keys=n_keys)

    @property
    def predicted(self) -> bool:
        """Whether every place has its exact values."""
        return len(self.exact) == len(D_KS) * len(N_KEYS)

    def value(self, place: Place, index: int, statistic: Statistic) -> float | None:
        """Return a column's exact value at a place, or else the measured one."""
        exact = self.exact.get(place)
        found = exact[index].values[statistic.name] if exact else None
        if found is None and place in self.measured:
            found = self._column(place, index).measured[statistic.name].value
        return found

    def has_theory(self, index: int, statistic: Statistic) -> bool:
        """Return whether a column's exact values of the statistic are known."""
        known = [columns[index].values[statistic.name] is not None for columns in self.exact.values() if columns]
        return bool(known) and 2 * sum(known) > len(known)  # a row of two keys may have none

    def needs_measuring(self, statistic: Statistic) -> bool:
        """Return whether some column of the statistic has no exact values."""
        return not all(self.has_theory(index, statistic) for index in range(len(COLUMN_ROLES)))

    def edges(self, n: int, index: int) -> tuple[Edge, ...]:
        """Return the d_k at which softmax over n keys saturates or recovers, σ being √(2 ln n) there.

        They are exact where the standard deviation is known at every d_k; else they lie between measured places.
        """
        saturation = next((self.exact[d_k, n][index].saturation for d_k in D_KS if self.exact.get((d_k, n))), None)
        if saturation is not None:
            return tuple(_edges(saturation.saturated_at))
        places = [(d_k, n) for d_k in D_KS if (d_k, n) in self.measured]
        flags = [(place[0], is_saturated(None, self._column(place, index).measured, place[0])) for place in places]
        first = next((saturated for _, saturated in flags if saturated is not None), False)
        return (*([(0.0, True)] if first else []), *crossings(flags))

    def _column(self, place: Place, index: int) -> Column:
        return self.measured[place].point.measurement.columns[index]


def _edges(intervals: Sequence[tuple[int, int]]) -> Iterator[Edge]:
    """Yield the edges of intervals of d_k; the ends of the range of d_k are none, but saturated from the start is."""
    for first, last in intervals:
        yield (first - 0.5 if first > _NARROWEST else 0.0), True
        if last < _WIDEST:
            yield last + 0.5, False


@dataclass(frozen=True)
class MapLayout:
    """The cells of the panels of a map: each place is `cell` × `tall` characters."""

    panels: tuple[int, ...]  # the columns shown
    width: int  # of a panel
    cell: int
    tall: int
    rows: tuple[int, ...]  # numbers of keys, the largest first

    def place_at(self, x: int, y: int) -> Place | None:
        """Return the place at a cell of the map, counted from the title of the panels; None beside the panels."""
        across = x % (self.width + _GAP) - _MARGIN
        row = (y - _HEAD) // self.tall
        inside = 0 <= across < self.cell * len(D_KS) and y >= _HEAD and row < len(self.rows)
        return (D_KS[across // self.cell], self.rows[row]) if inside else None


def layout(width: int, height: int) -> MapLayout:
    """Return the layout of a map of this size; a low one shows fewer numbers of keys."""
    panels = (0, 1) if width >= _BESIDE else (1,)
    wide = (width - _GAP * (len(panels) - 1)) // len(panels)
    room = max(height - _HEAD - _FOOT, 1)
    stride = -(-len(N_KEYS) // room)
    rows = N_KEYS[::-1][::stride]
    return MapLayout(panels, wide, max((wide - _MARGIN) // len(D_KS), 1), max(room // len(rows), 1), rows)


def map_lines(
    mapped: MapResults,
    statistic: Statistic,
    logarithmic: bool,
    cursor: Place,
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """Return the panels side by side, and below them the legend."""
    at = layout(width, height - 2)
    levels = _Levels.of(mapped, statistic, logarithmic, glyphs)
    panels = [_panel(mapped, statistic, index, levels, cursor, at, glyphs) for index in at.panels]
    lines: list[Line] = []
    for parts in zip(*panels, strict=True):
        line: list[Span] = [*fitted(parts[0], at.width)]
        for part in parts[1:]:
            line.append((" " * _GAP, "text"))
            line += fitted(part, at.width)
        lines.append(fitted(tuple(line), width))
    lines += [fitted(line, width) for line in _legend(mapped, statistic, levels, glyphs)]
    return lines[:height]


@dataclass(frozen=True)
class _Levels:
    """The steps of shade between the smallest and the largest value."""

    low: float
    high: float
    logarithmic: bool
    shades: str

    @classmethod
    def of(cls, mapped: MapResults, statistic: Statistic, logarithmic: bool, glyphs: Glyphs) -> _Levels | None:
        """Return the levels of all values of both columns; None without values."""
        places = [(d_k, n) for d_k in D_KS for n in N_KEYS]
        found = [mapped.value(place, index, statistic) for place in places for index in range(len(COLUMN_ROLES))]
        known = [value for value in found if value is not None and math.isfinite(value)]
        known = [value for value in known if value > 0] if logarithmic else known
        return cls(min(known), max(known), logarithmic, glyphs.shades) if known else None

    def shade(self, value: float) -> str:
        """Return the shade of a value."""
        if self.logarithmic and value <= 0:
            return self.shades[0]
        scaled = math.log if self.logarithmic else float
        span = scaled(self.high) - scaled(self.low)
        share = (scaled(value) - scaled(self.low)) / span if span else 0.0
        return self.shades[min(max(int(share * len(self.shades)), 0), len(self.shades) - 1)]

    @property
    def starts(self) -> list[float]:
        """The smallest value of each shade."""
        steps = [number / len(self.shades) for number in range(len(self.shades))]
        if self.logarithmic:
            return [self.low * (self.high / self.low) ** step for step in steps]
        return [self.low + step * (self.high - self.low) for step in steps]


def _panel(
    mapped: MapResults,
    statistic: Statistic,
    index: int,
    levels: _Levels | None,
    cursor: Place,
    at: MapLayout,
    glyphs: Glyphs,
) -> list[Line]:
    role = COLUMN_ROLES[index]
    name = glyphs.say(setting_names(mapped.parameters)[index])
    source = glyphs.say(_source(mapped, statistic, index))
    name = middle_cut(name, max(at.width - cells_of(source) - _BESIDE_NAME, _LEAST_NAME), glyphs.say("…"))
    title: Line = ((f" {glyphs.marks[index]} {name}", role), (f"  {source}", "dim"))
    lines: list[Line] = [title]
    here = _nearest(cursor[0], D_KS), _nearest(cursor[1], at.rows)
    for n in at.rows:
        cells: list[Span] = []
        for d_k in D_KS:
            value = mapped.value((d_k, n), index, statistic)
            cell: Span = (_missing(glyphs), "dim")
            if value is not None and levels is not None:
                cell = (levels.shade(value), role)
            cells += [cell] * at.cell
        for column, sign in _line(mapped.edges(n, index), at.cell, glyphs):
            cells[column] = (sign, "heading")
        for line in range(at.tall):
            row = [*cells]
            if n == here[1] and line == at.tall // 2:
                column = D_KS.index(here[0]) * at.cell + at.cell // 2
                row[column] = ("+", "cursor")
            label = f"{n:>{_MARGIN - 1}} " if line == at.tall // 2 else " " * _MARGIN
            lines.append(((label, "accent" if n == here[1] and line == at.tall // 2 else "dim"), *merged(row)))
    return [*lines, _d_k_labels(at, here[0])]


def _source(mapped: MapResults, statistic: Statistic, index: int) -> str:
    """Return whether a panel is exact or measured, and how much of it is there."""
    if not mapped.predicted:
        return message("computing")
    if mapped.has_theory(index, statistic):
        return message("exact")
    p = mapped.sweep.parameters
    if not mapped.complete:
        return message("measured: {count} of {all} so far", count=len(mapped.measured), all=len(D_KS) * len(N_KEYS))
    return message("measured: {draws} draws of {rows} rows", draws=p.batch, rows=p.n_queries)


def _missing(glyphs: Glyphs) -> str:
    """Return the sign of a cell without a value."""
    return "-" if glyphs.ascii else "·"


def _line(edges: Sequence[Edge], cell: int, glyphs: Glyphs) -> Iterator[tuple[int, str]]:
    """Yield the columns of the saturation line and of the S on its saturated side that are inside the map."""
    end = cell * len(D_KS)
    for d_k, saturates in edges:
        if d_k == 0:  # saturated from the start
            yield 0, "S"
            continue
        column = math.floor((math.log2(d_k) + 0.5) * cell)
        if 0 <= column < end:
            yield column, glyphs.uprights[1]
            beside = column + (1 if saturates else -1)
            if 0 <= beside < end:
                yield beside, "S"


def _d_k_labels(at: MapLayout, here: int) -> Line:
    """Return the labels of d_k under the cells, the cursor's and as many others as fit."""
    text = [" "] * (_MARGIN + at.cell * len(D_KS) + 4)
    taken = 0
    for number, d_k in enumerate(D_KS):
        label = str(d_k)
        start = max(_MARGIN + number * at.cell + (at.cell - len(label)) // 2, 0)
        if start > taken or d_k == D_KS[0]:
            text[start : start + len(label)] = label
            taken = start + len(label)
    return (("".join(text).rstrip(), "dim"), (f"  d_k {here}", "accent"))


def _legend(mapped: MapResults, statistic: Statistic, levels: _Levels | None, glyphs: Glyphs) -> list[Line]:
    """Return what the shades and the line mean."""
    factor, unit = (100, " %") if statistic.unit == "share" else (1, "")
    shades: list[Span] = []
    shades.append((glyphs.say(" shades start at") if levels else " ", "dim"))
    for shade, start in zip(levels.shades, levels.starts, strict=True) if levels else ():
        shades.append((f" [{shade * 2}]", "text"))
        shades.append((f" {short(factor * start, glyphs)}{unit}", "dim"))
    cells = [((d_k, n), index) for d_k in D_KS for n in N_KEYS for index in range(len(COLUMN_ROLES))]
    if mapped.predicted and any(mapped.value(place, index, statistic) is None for place, index in cells):
        awaited = mapped.needs_measuring(statistic) and not mapped.complete
        missing = message("not measured yet") if awaited else message("undefined")
        shades.append((f"  {_missing(glyphs)} {glyphs.say(missing)}", "dim"))
    known = any(mapped.edges(n, index) for n in N_KEYS for index in range(len(COLUMN_ROLES)))
    words = message(
        " {line}S: σ of a row's logits reaches √(2 ln n); softmax is saturated on the side of S",
        line=glyphs.uprights[1],
    )
    none = message(" Softmax stays below saturation everywhere on this map")
    return [tuple(shades), ((glyphs.say(words if known else none), "dim"),)]


def _nearest(value: int, among: Sequence[int]) -> int:
    """Return the number nearest to a value on a logarithmic axis."""
    return min(among, key=lambda each: abs(math.log(each / value)))


_ABOVE = 2  # lines above the panels: the values at the cursor
_BELOW = 2  # lines of the legend


class SweepMap(ChoosingLines):
    """Shows a statistic over d_k and the number of keys; a click chooses a place."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    headed = False  # whether a headline above shows the values at the place
    mapped: Content[MapResults] = Content(MapResults(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    logarithmic: Content[bool] = Content(False)
    reading: Content[Reading] = Content((Parameters(), None))

    def heading(self, width: int) -> Line:
        unit = unit_words(self.statistic)
        scale = message(", log scale") if self.logarithmic else ""
        words = message(" over d_k (across) and keys (up){unit}{scale}", unit=unit, scale=scale)
        label = self.glyphs.say(self.statistic.label)
        return (label, "heading"), (joining(label, self.glyphs.say(words)), "dim")

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        glyphs = self.glyphs
        lines = [] if self.headed else reading_lines(*self.reading, self.statistic, width, glyphs)
        cursor = self.reading[0].d_k, self.reading[0].n_keys
        room = height - len(lines)
        if room < _BELOW + 3:
            return lines
        return [*lines, *map_lines(self.mapped, self.statistic, self.logarithmic, cursor, width, room, glyphs)]

    def on_click(self, event: events.Click) -> None:
        clicked = self.place_of(event)
        above = 0 if self.headed else _ABOVE
        at = layout(self.size.width, self.size.height - above - _BELOW)
        place = at.place_at(clicked.x, clicked.y - above)
        if place is not None:
            self._choose(place)
