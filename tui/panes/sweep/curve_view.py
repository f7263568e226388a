"""A sweep over d_k or keys on screen: the plot of a statistic, and its values at the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.cells import set_cell_size
from textual import events

from ....core.against import settings
from ....core.message import joined, message
from ....core.models import landmarks
from ....core.parameters import FIELD, ROUNDED, Parameters, choice_word
from ....core.questions.sweep import SweptPoint
from ....core.scales import scale_rule
from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.statistics.measurement import setting_names
from ....core.theory.prediction import crossings, is_saturated, status_given
from ...compute.measure import Predict
from ...language.cells import cells, joining, to_left
from ...views.glyphs import Glyphs
from ...views.lines import EDGES, Line, Role, Span, fitted, line_width
from ...views.numbers import VALUE
from ...views.plots.axes import Axis, axis_over
from ...views.plots.plot import Drawing, Mark, Plot, Point, Series, draw, with_cursor
from ...views.results.table import COLUMN_ROLES, TableContents, column_title, is_far, measured_text, theory_text
from ...widgets.lines import ChoosingLines, Content

if TYPE_CHECKING:
    from ....core.theory.prediction import PredictedColumn

# Statistics that are powers of d_k: their axis is logarithmic by default.
LOGARITHMIC = frozenset({"logit_variance", "logit_std", "logit_variance_within_row"})
_CURVE_STEPS = 120  # of an exact curve over d_k
_DEEPEST = 1e-9  # the lower end of a logarithmic axis relative to its upper end, at least

_THIN: tuple[Role, Role] = ("thin_unscaled", "thin_scaled")
_PLACE = 11  # cells of ` d_k 16384 `
_TITLE, _LEAST_TITLE = 24, 10  # of `scaled × 0.125 (1/√d_k) `, and of a title on a narrow screen


@dataclass(eq=False)
class SweepCurve:
    """The results so far over a grid of d_k or of keys."""

    parameters: Parameters  # their value of what is swept is ignored
    values: tuple[int, ...] = ()  # ascending
    exact: Mapping[int, Sequence[PredictedColumn]] = field(default_factory=dict[int, "Sequence[PredictedColumn]"])
    points: dict[int, SweptPoint] = field(default_factory=dict[int, "SweptPoint"])
    over: str = "d_k"  # or n_keys

    @property
    def complete(self) -> bool:
        """Whether every point has been measured."""
        return len(self.points) == len(self.values)

    @cached_property
    def prediction(self) -> Predict:
        """The request for the exact values.

        Values of d_k are in nearly constant ratios, besides landmarks. Numbers of keys are the grid: the exact values
        of each other one would take a second.
        """
        p, values = self.parameters, self.values
        if self.over == "n_keys":
            return Predict(p, (p.d_k,), values)
        low, high = values[0], values[-1]
        even = {round(low * (high / low) ** (step / _CURVE_STEPS)) for step in range(_CURVE_STEPS + 1)}
        return Predict(p, tuple(sorted(even | {*landmarks(values)})), (p.n_keys,))

    def predicted_by(self, request: object) -> bool:
        """Return whether a request is for the exact values."""
        return bool(self.values) and request == self.prediction


@dataclass(frozen=True, eq=False)
class Other:
    """The curve of B under another scale rule, and its values at the cursor, if they are known."""

    mark: str  # a letter
    role: Role
    thin: Role  # of its exact curve
    swept: SweepCurve
    here: TableContents | None = None


MOST_OTHERS = 6
_MARKS = "CDEFGH"  # after A and B
_HUES: tuple[tuple[Role, Role], ...] = (("third", "thin_third"), ("fourth", "thin_fourth"), ("fifth", "thin_fifth"))


def others(swept: Sequence[tuple[SweepCurve, TableContents | None]]) -> list[Other]:
    """Return curves of other scale rules with their marks: letters, as hues repeat."""
    return [Other(_MARKS[i], *_HUES[i % len(_HUES)], *each) for i, each in enumerate(swept)]


def contents_of(point: SweptPoint) -> TableContents:
    """Return a point as the contents of a table."""
    rounded = any(setting.precision in ROUNDED for setting in settings(point.prediction.parameters))
    return TableContents(point.point.measurement.columns, point.prediction.columns, point.deviations, rounded)


def sweep_plot(
    swept: SweepCurve, statistic: Statistic, logarithmic: bool, glyphs: Glyphs, beside: Sequence[Other] = ()
) -> Plot | None:
    """Return the plot of both columns and of other scale rules; None while there is nothing to draw."""
    if len(swept.values) < 2:
        return None
    series = [_series(swept, i, (role, _THIN[i]), glyphs.marks[i], statistic) for i, role in enumerate(COLUMN_ROLES)]
    series += [_series(other.swept, 1, (other.role, other.thin), other.mark, statistic) for other in beside]
    values = [y for curve in series for _, y in curve.exact]
    values += [p.y + sign * (p.stderr or 0) for curve in series for p in curve.points for sign in (-1, 1)]
    if not values:
        return None
    x, unit = Axis(swept.values[0], swept.values[-1], 2), " %" if statistic.unit == "share" else ""
    return Plot(x, _axis(values, logarithmic), series, unit, [*_marks(swept)])


def _series(swept: SweepCurve, index: int, roles: tuple[Role, Role], mark: str, statistic: Statistic) -> Series:
    """Return the points and the exact curve of a column."""
    points = [points_of(contents_of(found), at, statistic)[index] for at, found in sorted(swept.points.items())]
    known = [point for point in points if point is not None]
    return Series(*roles, mark, known, [*_curve(swept, index, statistic)])


def points_of(contents: TableContents, at: int, statistic: Statistic) -> list[Point | None]:
    """Return the measurement at one place, a point for each column; None if there is no value."""
    points: list[Point | None] = []
    for index, column in enumerate(contents.columns):
        value, stderr = column.measured[statistic.name]
        far = bool(contents.deviations) and is_far(contents.deviations[index].get(statistic.name))
        factor = _factor(statistic)
        point = None if value is None else Point(at, factor * value, stderr and factor * stderr, far)
        points.append(point)
    return points


def _curve(swept: SweepCurve, index: int, statistic: Statistic) -> Iterator[tuple[float, float]]:
    for at, columns in sorted(swept.exact.items()):
        value = columns[index].values[statistic.name]
        if value is not None:
            yield at, _factor(statistic) * value


def _factor(statistic: Statistic) -> int:
    return 100 if statistic.unit == "share" else 1


def _axis(values: Sequence[float], logarithmic: bool) -> Axis:
    """Return an axis over these values; a logarithmic one over those above 0."""
    least = max(values) * _DEEPEST
    positive = [value for value in values if value > least]
    return axis_over(positive, 10) if logarithmic and positive else axis_over(values)


def _marks(swept: SweepCurve) -> Iterator[Mark]:
    """Yield marks where softmax saturates and where it recovers within the grid."""
    names = setting_names(swept.parameters)
    seen: list[Sequence[tuple[float, str]]] = []
    for index, word in enumerate(names):
        changes = [*_changes(swept, index)]
        for at, change in changes if changes not in seen else ():
            words = (
                message("{word} softmax {change}", word=word, change=change)
                if word in ("unscaled", "scaled")
                else joined([word, change])
            )
            yield Mark(at, words, "dim")
        seen.append(changes)


def _changes(swept: SweepCurve, index: int) -> Iterator[tuple[float, str]]:
    """Yield where a column's softmax saturates or recovers within the grid.

    Over keys, and over d_k where only measured deviations are known, that is between two of the grid's values.
    """
    first, last = swept.values[0], swept.values[-1]
    columns = next(iter(swept.exact.values()), ())
    saturation = columns[index].saturation if columns else None
    if swept.over == "d_k" and saturation is not None:
        for start, end in saturation.saturated_at:
            for d_k, change in ((start, message("saturates")), (end + 1, message("recovers"))):
                if first < d_k <= last:
                    yield d_k, change
        return
    exact, points = sorted(swept.exact.items()), sorted(swept.points.items())
    flags = [(n, is_saturated(columns[index].saturation, {}, swept.parameters.d_k)) for n, columns in exact]
    if saturation is None:
        flags = [(at, is_saturated(None, point.point.measurement.columns[index].measured, 0)) for at, point in points]
    for at, saturates in crossings(flags):
        yield at, message("saturates") if saturates else message("recovers")


def title_line(statistic: Statistic, logarithmic: bool, glyphs: Glyphs, over: str = "d_k") -> Line:
    """Return the title: the statistic, what it is swept over, its unit and its axis."""
    axis = message(", log axis") if logarithmic else ""
    words = message(" over {label}{unit}{axis}", label=FIELD[over].label, unit=unit_words(statistic), axis=axis)
    label = glyphs.say(statistic.label)
    return (label, "heading"), (joining(label, glyphs.say(words)), "dim")


def unit_words(statistic: Statistic) -> str:
    """Return the unit of a statistic for its title, after a comma; empty if it has none."""
    match statistic.unit:
        case "nats":
            return message(", nats")
        case "keys":
            return message(", keys")
        case _:
            return ""


def facts_line(swept: SweepCurve, width: int, glyphs: Glyphs) -> Line:
    """Return the parameters of a sweep, as many as fit."""
    p = swept.parameters
    first = message("{n_keys} keys", n_keys=p.n_keys) if swept.over == "d_k" else message("d_k {d_k}", d_k=p.d_k)
    facts = [
        first,
        choice_word(p.components),
        message("{n_queries} queries", n_queries=p.n_queries),
        message("{batch} draws", batch=p.batch),
    ]
    if p.mask != "none":
        facts.insert(1, choice_word(p.mask))
    while facts:
        line: Line = ((glyphs.say(joined(facts, " · ")), "dim"),)
        if line_width(line) <= width:
            return line
        facts.pop()
    return ()


def reading_lines(
    p: Parameters,
    here: TableContents | None,
    statistic: Statistic,
    width: int,
    glyphs: Glyphs,
    over: str | None = "d_k",
    beside: Sequence[Other] = (),
) -> list[Line]:
    """Return for each curve its mark, its multiplier, and its value at the cursor, measured and exact.

    Before them stands the value of what is swept `over`; without it, as beside a headline, there are no errors.
    """
    names = setting_names(p)
    place = glyphs.say(" {label} {value}", label=FIELD[over].label, value=getattr(p, over)) if over else None
    readings = [_Reading(glyphs.marks[i], role, names[i], here, i) for i, role in enumerate(COLUMN_ROLES)]
    for other in beside:
        name = setting_names(other.swept.parameters)[1]
        readings.append(_Reading(other.mark, other.role, _rule_name(other, name), other.here, 1))
    return [
        _reading_line(reading, place if number == 0 or not place else "", statistic, width, glyphs)
        for number, reading in enumerate(readings)
    ]


def _rule_name(other: Other, name: str) -> str:
    """Return the name of a curve's rule; `scaled` would say nothing beside others."""
    p = other.swept.parameters
    return f"× {p.multiplier:.4g}" if p.scale == "custom" else scale_rule(p.scale).label if name == "scaled" else name


class _Reading(NamedTuple):
    """The values of a curve at the cursor, if they are known."""

    mark: str
    role: Role
    name: str
    here: TableContents | None
    column: int  # its index


def _reading_line(reading: _Reading, place: str | None, statistic: Statistic, width: int, glyphs: Glyphs) -> Line:
    mark, role, name, here, index = reading
    taken = 0 if place is None else _PLACE
    room = min(_TITLE, max(width - taken - 2 - VALUE, _LEAST_TITLE))  # the value matters more than a long title
    line: list[Span] = [] if place is None else [(set_cell_size(place, _PLACE), "accent")]
    line.append((f"{mark} ", role))
    if here is None:
        line.extend([(_named(name, room, glyphs), role), (f"     {glyphs.say('measuring')}", "dim")])
        return fitted(tuple(line), width)
    value, rest = measured_text(here, index, statistic, glyphs)
    title = column_title(here.columns[index], glyphs, room - 1)
    if name not in ("unscaled", "scaled") and glyphs.say(name) not in title:
        title = _named(name, room, glyphs)  # of which of several rules it is
    line.extend([(to_left(title, room), role), (value, role), (rest if place is not None else "  ", "dim")])
    if here.theory and place is not None:
        sign, exact = theory_text(here, index, statistic, glyphs)
        key = glyphs.say("{line} exact", line=glyphs.line[:1] or "⠒")  # as the curve is drawn
        line.extend([(key, "dim"), (sign, "alert"), (f"{exact} ", "theory")])
    room = width - line_width(tuple(line))
    return fitted((*line, *_state(here, index, room, glyphs)), width)


def _named(name: str, room: int, glyphs: Glyphs) -> str:
    return set_cell_size(glyphs.say(name), room - 1) + " "


def _state(here: TableContents, index: int, room: int, glyphs: Glyphs) -> list[Span]:
    """Return a column's status and where softmax is saturated, as far as they fit."""
    saturation = here.theory[index].saturation if here.theory else None
    word = status_given(saturation, here.columns[index].measured) or ""
    places = saturation.words()[:2] if saturation else ()
    if here.rounded:
        places = [message("{where} in exact arithmetic", where=place) for place in places]
    forms = [place if place.startswith(word) else joined([word, place], "; ") for place in places]
    fitting = (form for form in map(glyphs.say, (*forms, word)) if cells(form) <= room)
    return [(next(fitting, ""), "dim")]


Reading: TypeAlias = tuple[Parameters, TableContents | None]  # the result at the cursor
_LEAST = 6  # lines of the plot that values of other rules at the cursor leave


class SweepPlot(ChoosingLines):
    """Shows a statistic over d_k or keys; a click chooses a value of what is swept."""

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    swept: Content[SweepCurve] = Content(SweepCurve(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    others: Content[Sequence[Other]] = Content(())  # curves beside A and B
    cursor: Content[int] = Content(64)  # a value of what is swept
    headed = False  # whether a headline above shows the values of A and B at the cursor
    reading: Content[Reading] = Content((Parameters(), None))
    other_axis: Content[frozenset[str]] = Content(frozenset())  # statistics whose axis is not their default

    _drawing: Drawing | None = None
    _drawn: object = None  # what `_drawing` depends on

    @property
    def logarithmic(self) -> bool:
        """Whether the axis of the statistic is logarithmic."""
        return (self.statistic.name in LOGARITHMIC) != (self.statistic.name in self.other_axis)

    def heading(self, width: int) -> Line:
        return title_line(self.statistic, self.logarithmic, self.glyphs, self.swept.over)

    def note(self) -> Line:
        title, room = self.heading(0), self.outer_size.width - EDGES - 3
        return facts_line(self.swept, room - line_width(title), self.glyphs)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        (p, here), glyphs = self.reading, self.glyphs
        lines = reading_lines(p, here, self.statistic, width, glyphs, self.swept.over, self.others)
        lines = lines[2 if self.headed else 0 :][: self._above(height)]
        drawing = self._draw(width, height - len(lines))
        if drawing is None:
            return lines
        readings = [(here, index) for index in range(2)] + [(other.here, 1) for other in self.others]
        extra: list[tuple[Series, Point]] = []
        for series, (found, index) in zip(drawing.at.plot.series, readings, strict=True):
            point = points_of(found, self.cursor, self.statistic)[index] if found else None
            if point is not None and getattr(p, self.swept.over) == self.cursor:
                extra.append((series, point))
        return [*lines, *with_cursor(drawing, self.cursor, extra, glyphs)]

    def _above(self, height: int) -> int:
        """Return how many lines above the plot show values at the cursor: A's and B's, and those that fit."""
        least = 0 if self.headed else 2
        return max(min(least + len(self.others), height - _LEAST), least)

    def _draw(self, width: int, height: int) -> Drawing | None:
        """Return the plot without the cursor, so that moving the cursor does not draw it again."""
        every = [self.swept, *(other.swept for other in self.others)]
        data = [(swept, swept.exact, len(swept.points)) for swept in every]
        wanted = data, self.statistic, self.logarithmic, width, height
        if wanted != self._drawn:
            self._drawn, glyphs = wanted, self.glyphs
            shown = height > 0
            plot = sweep_plot(self.swept, self.statistic, self.logarithmic, glyphs, self.others) if shown else None
            self._drawing = draw(plot, width, height, glyphs) if plot else None
        return self._drawing

    async def on_click(self, event: events.Click) -> None:
        place = self.place_of(event)
        if place.y < 0:  # on the name of the statistic
            await self.app.run_action("find", self.parent)  # pyright: ignore[reportUnknownMemberType]
        elif self._drawing is not None and place.y >= self._above(self.size.height):
            self._choose(round(self._drawing.at.x_of(place.x)))
