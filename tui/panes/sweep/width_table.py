"""The table of a sweep: a row for each d_k that real models use, or number of keys, with histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events

from ....core.message import message
from ....core.parameters import FIELD, Parameters
from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.statistics.measurement import HistogramName, setting_names
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted, window
from ...views.numbers import VALUE, short
from ...views.plots.axes import nice_range
from ...views.plots.histograms import TITLES, axis_span, sparkline
from ...views.results.table import CELL, COLUMN_ROLES, THEORY, measured_text, theory_text
from ...widgets.lines import ChoosingLines, Content
from .curve_view import SweepCurve, contents_of
from .requests import landmarks_of, models_at

# The histogram that explains the statistics of a group.
HISTOGRAM: dict[str, HistogramName] = {"logits": "logits", "attention": "entropy", "Jacobian": "jacobian_norm"}
_NAME = 7  # cells of a row's d_k
_LEAST, _WIDEST = 8, 36  # cells of one sparkline
_TAILS = 3.3  # standard deviations on either side, within which a normal law has 99.9 % of its mass


@dataclass(frozen=True)
class _Shape:
    """The parts of a row that fit."""

    errors: bool
    theory: bool
    spark: int = 0  # cells of each sparkline, 0 for none
    models: int = 0  # cells for the models with this width


def _shape(width: int, theory: bool) -> _Shape:
    """Return the first shape that fits: exact values and sparklines, sparklines, ± only, values only."""
    for beside in (True, False) if theory else (False,):
        left = width - _NAME - 2 * (CELL + (THEORY if beside else 0))
        spark = min(left // 2 - 2, _WIDEST)
        if spark >= _LEAST:
            models = left - 2 * (spark + 2)
            return _Shape(True, beside, spark, models if models >= 2 * _LEAST else 0)
    return _Shape(width >= _NAME + 2 * CELL, False)


def landmark_lines(
    swept: SweepCurve, statistic: Statistic, cursor: int, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return a heading and a row for each landmark; if not all fit, those around the cursor."""
    places = landmarks_of(swept.over, swept.values)
    if not places or height < 2:
        return []
    shape = _shape(width, bool(swept.exact))
    span = _span(swept, places, HISTOGRAM[statistic.group], glyphs)
    rows = rows_in(places, cursor, height)
    lines = [_head(swept, statistic, shape, width, glyphs)]
    lines += [_row(at, swept, statistic, shape, span, at == cursor, width, glyphs) for at in rows]
    hidden = len(places) - len(rows)
    if hidden:
        note: Line = ((glyphs.say(" {hidden} more rows (PgDn, PgUp) ", hidden=hidden + 1), "dim"),)
        lines[-1] = lines[-1] if rows[-1] == cursor else fitted(note, width)  # in place of a row
    return lines


def rows_in(places: Sequence[int], cursor: int, height: int) -> Sequence[int]:
    """Return the places of the rows in a table of this height: all, or those around the cursor."""
    room = height - 1
    nearest = min(range(len(places)), key=lambda at: abs(places[at] - cursor), default=0)
    first = window(nearest, len(places), room)
    return places[first : first + room]


def _head(swept: SweepCurve, statistic: Statistic, shape: _Shape, width: int, glyphs: Glyphs) -> Line:
    line: list[Span] = [(f"{to_right(glyphs.say(FIELD[swept.over].label), _NAME - 1)} ", "heading")]
    names = setting_names(swept.parameters)
    for index, role in enumerate(COLUMN_ROLES):
        room = CELL if shape.errors else VALUE
        title = f"  {glyphs.marks[index]} {glyphs.say(names[index])}"
        if cells(title) >= room:
            title = f"  {glyphs.marks[index]} {'AB'[index]}"
        line.append((to_left(title, room), role))
        if shape.theory:
            line.append((to_left(f"   {glyphs.say('exact')}", THEORY), "theory"))
    if shape.spark:
        what = glyphs.say(TITLES[HISTOGRAM[statistic.group]])
        what = what if cells(what) <= shape.spark - 2 else ""
        for mark, role in zip(glyphs.marks, COLUMN_ROLES, strict=False):
            line.append((to_left(f"  {mark} {what}", shape.spark + 2), role))
    return fitted(tuple(line), width)


def axis_words(swept: SweepCurve, statistic: Statistic, width: int, glyphs: Glyphs) -> str:
    """Return the axis of the histograms, such as `row entropy from 0 to 4.85`; empty in a table without them."""
    places = landmarks_of(swept.over, swept.values)
    if not places or not _shape(width, bool(swept.exact)).spark:
        return ""
    name = HISTOGRAM[statistic.group]
    low, high = (short(value, glyphs) for value in _span(swept, places, name, glyphs))
    return message("{quantity} from {low} to {high}", quantity=TITLES[name], low=low, high=high)


def _row(
    at: int,
    swept: SweepCurve,
    statistic: Statistic,
    shape: _Shape,
    span: tuple[float, float],
    marked: bool,
    width: int,
    glyphs: Glyphs,
) -> Line:
    name: Role = "accent" if marked else "label"
    line: list[Span] = [((glyphs.cursor if marked else " ") + f"{at:>5} ", name)]
    if at not in swept.points:
        return fitted((*line, (glyphs.say("    …"), "dim")), width)
    contents = contents_of(swept.points[at])
    for index, role in enumerate(COLUMN_ROLES):
        value, rest = measured_text(contents, index, statistic, glyphs)
        line.extend([(value, role), (rest if shape.errors else "", "dim")])
        if shape.theory:
            sign, exact = theory_text(contents, index, statistic, glyphs)
            line.extend([(sign, "alert"), (exact, "theory")])
    for column, role in zip(contents.columns, COLUMN_ROLES, strict=True):
        if shape.spark:
            histogram = column.histograms[HISTOGRAM[statistic.group]]
            line.append(("  " + sparkline(histogram, *span, shape.spark, glyphs), role))
    if shape.models and (models := models_at(swept.over, at)):
        line.append((glyphs.say(f"  {models}"), "dim"))
    return fitted(tuple(line), width)


def _span(swept: SweepCurve, places: Sequence[int], name: HistogramName, glyphs: Glyphs) -> tuple[float, float]:
    """Return one axis for all sparklines; that of logits follows from theory before they are measured."""
    known = [contents_of(swept.points[at]) for at in places if at in swept.points]
    histograms = [column.histograms[name] for contents in known for column in contents.columns]
    if name == "logits":
        laws = [column.values for at in places for column in swept.exact.get(at, ())]
        reach: list[float] = []
        for law in laws:
            mean, std = law["logit_mean"], law["logit_std"]
            if mean is not None and std:
                reach += [mean - _TAILS * std, mean + _TAILS * std]
        if reach:
            return nice_range(min(reach), max(reach))
    if not histograms:
        return 0.0, 1.0
    axis = axis_span(histograms, name, glyphs)
    return axis.low, axis.high


class WidthTable(ChoosingLines):
    """Shows a row for each landmark, which a click chooses."""

    DEFAULT_CLASSES = "region"

    swept: Content[SweepCurve] = Content(SweepCurve(Parameters()))
    statistic: Content[Statistic] = Content(STATISTIC["entropy"])
    cursor: Content[int] = Content(64)

    def heading(self, width: int) -> Line:
        words = message("widths of real models") if self.swept.over == "d_k" else message("numbers of keys")
        return ((self.glyphs.say(words), "heading"),)

    def note(self) -> Line:
        words = axis_words(self.swept, self.statistic, self.room.width, self.glyphs)
        return ((self.glyphs.say(words), "dim"),) if words else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return landmark_lines(self.swept, self.statistic, self.cursor, width, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        rows = rows_in(landmarks_of(self.swept.over, self.swept.values), self.cursor, self.size.height)
        y = self.place_of(event).y
        if 0 < y <= len(rows):
            self._choose(rows[y - 1])
