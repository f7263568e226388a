"""A sweep over d_k on screen: the plot of a statistic, and its values at the cursor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ....core.parameters import Parameters, choice_word
from ....core.statistics.catalogue import Statistic
from ....core.statistics.column_names import setting_names
from ....core.theory.prediction import status_given
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted, line_width
from ...views.plots.axes import Axis, axis_over
from ...views.plots.plot import Mark, Plot, Point, Series
from ...views.results.table import COLUMN_ROLES, Contents, column_title, is_far, measured_text, theory_text

if TYPE_CHECKING:
    from ....core.theory.prediction import PredictedColumn
    from .requests import SweptPoint

# Statistics that are powers of d_k: their axis is logarithmic by default.
LOGARITHMIC = frozenset({"logit_variance", "logit_std", "logit_variance_within_row"})
_DEEPEST = 1e-9  # the lower end of a logarithmic axis relative to its upper end, at least

_THIN: tuple[Role, Role] = ("thin_unscaled", "thin_scaled")
_D_K = 11  # cells of ` d_k 16384 `
_TITLE = 24  # of `scaled × 0.125 (1/√d_k) `


@dataclass(eq=False)
class Swept:
    """The results so far over a grid of d_k."""

    parameters: Parameters  # their d_k is ignored
    d_ks: tuple[int, ...] = ()  # ascending
    exact: Mapping[int, Sequence[PredictedColumn]] = field(default_factory=dict[int, "Sequence[PredictedColumn]"])
    points: dict[int, SweptPoint] = field(default_factory=dict[int, "SweptPoint"])

    @property
    def complete(self) -> bool:
        """Whether every point has been measured."""
        return len(self.points) == len(self.d_ks)


def contents_of(point: SweptPoint) -> Contents:
    """Return a point as the contents of a table."""
    return Contents(point.point.measurement.columns, point.prediction.columns, point.deviations)


def sweep_plot(swept: Swept, statistic: Statistic, logarithmic: bool, glyphs: Glyphs) -> Plot | None:
    """Return the plot; None while there is nothing to draw."""
    if len(swept.d_ks) < 2:
        return None
    series: list[Series] = []
    for index, role in enumerate(COLUMN_ROLES):
        points = [points_of(contents_of(found), d_k, statistic)[index] for d_k, found in sorted(swept.points.items())]
        known = [point for point in points if point is not None]
        series.append(Series(role, _THIN[index], glyphs.marks[index], known, [*_curve(swept, index, statistic)]))
    values = [y for each in series for _, y in each.exact]
    values += [p.y + sign * (p.stderr or 0) for each in series for p in each.points for sign in (-1, 1)]
    if not values:
        return None
    x, unit = Axis(swept.d_ks[0], swept.d_ks[-1], 2), " %" if statistic.unit == "share" else ""
    return Plot(x, _axis(values, logarithmic), series, unit, [*_marks(swept)])


def points_of(contents: Contents, d_k: int, statistic: Statistic) -> list[Point | None]:
    """Return the measurement at one d_k, a point for each column; None if there is no value."""
    points: list[Point | None] = []
    for index, column in enumerate(contents.columns):
        value, stderr = column.measured[statistic.name]
        far = bool(contents.deviations) and is_far(contents.deviations[index].get(statistic.name))
        factor = _factor(statistic)
        point = None if value is None else Point(d_k, factor * value, stderr and factor * stderr, far)
        points.append(point)
    return points


def _curve(swept: Swept, index: int, statistic: Statistic) -> Iterator[tuple[float, float]]:
    for d_k, columns in sorted(swept.exact.items()):
        value = columns[index].values[statistic.name]
        if value is not None and swept.d_ks[0] <= d_k <= swept.d_ks[-1]:
            yield d_k, _factor(statistic) * value


def _factor(statistic: Statistic) -> int:
    return 100 if statistic.unit == "share" else 1


def _axis(values: Sequence[float], logarithmic: bool) -> Axis:
    """Return an axis over these values; a logarithmic one over those above 0."""
    least = max(values) * _DEEPEST
    positive = [value for value in values if value > least > 0]
    return axis_over(positive, 10) if logarithmic and positive else axis_over(values)


def _marks(swept: Swept) -> Iterator[Mark]:
    """Yield marks where softmax freezes and where it thaws within the grid."""
    columns = [*next(iter(swept.exact.values()), ())]
    for number, (column, word) in enumerate(zip(columns, setting_names(swept.parameters), strict=False)):
        again = number > 0 and column.freezing == columns[0].freezing
        for first, last in column.freezing.frozen_at if column.freezing and not again else ():
            for d_k, change in ((first, "freezes"), (last + 1, "thaws")):
                if swept.d_ks[0] < d_k <= swept.d_ks[-1]:
                    yield Mark(
                        d_k,
                        f"{word} softmax {change}" if word in ("unscaled", "scaled") else f"{word} {change}",
                        "dim",
                    )


def title_line(statistic: Statistic, logarithmic: bool, glyphs: Glyphs) -> Line:
    """Return the title: the statistic, its unit and its axis."""
    unit = {"nats": ", nats", "keys": ", keys"}.get(statistic.unit, "")
    axis = ", log axis" if logarithmic else ""
    return (glyphs.say(statistic.label), "heading"), (f" over d_k{unit}{axis}", "dim")


def facts_line(swept: Swept, width: int, glyphs: Glyphs) -> Line:
    """Return the parameters of a sweep, as many as fit."""
    p = swept.parameters
    facts = [f"{p.n_keys} keys", choice_word(p.components), f"{p.n_queries} queries", f"{p.batch} draws"]
    if p.mask != "none":
        facts.insert(1, p.mask)
    while facts:
        line: Line = ((glyphs.say(" · ".join(facts)), "dim"),)
        if line_width(line) <= width:
            return line
        facts.pop()
    return ()


def reading_lines(
    p: Parameters, here: Contents | None, statistic: Statistic, width: int, glyphs: Glyphs
) -> list[Line]:
    """Return for each column its mark, its multiplier, and its value at the cursor, measured and exact."""
    lines: list[Line] = []
    d_k, names = p.d_k, setting_names(p)
    for index, role in enumerate(COLUMN_ROLES):
        line: list[Span] = [(f" d_k {d_k}"[: _D_K * (index == 0)].ljust(_D_K), "accent")]
        line.append((glyphs.marks[index] + " ", role))
        if here is None:
            line.extend([(glyphs.say(names[index])[: _TITLE - 1].ljust(_TITLE), role), ("     measuring", "dim")])
        else:
            line += _reading(here, index, statistic, glyphs)
            room = width - line_width(tuple(line))
            line += _state(here, index, room, glyphs)
        lines.append(fitted(tuple(line), width))
    return lines


def _reading(here: Contents, index: int, statistic: Statistic, glyphs: Glyphs) -> list[Span]:
    role = COLUMN_ROLES[index]
    value, rest = measured_text(here.columns[index], statistic, glyphs)
    spans: list[Span] = [(column_title(here.columns[index], glyphs, _TITLE - 1).ljust(_TITLE), role)]
    spans.extend([(value, role), (rest, "dim")])
    if here.theory:
        sign, exact = theory_text(here, index, statistic, glyphs)
        spans.extend([("exact", "dim"), (sign, "alert"), (exact, "theory")])
    return spans


def _state(here: Contents, index: int, room: int, glyphs: Glyphs) -> list[Span]:
    """Return a column's status and where softmax is frozen, as far as they fit."""
    freezing = here.theory[index].freezing if here.theory else None
    word = status_given(freezing, here.columns[index].measured) or ""
    places = freezing.words() if freezing else ()
    forms = [place if place.startswith(word) else f"{word}; {place}" for place in places[:2]]
    fitting = (form for form in (*map(glyphs.say, forms), word) if len(form) <= room)
    return [(next(fitting, ""), "dim")]
