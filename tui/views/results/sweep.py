"""A sweep as printed: a line for each point, with its statistics, their exact values and histograms of logits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from rich.cells import set_cell_size

from ....core.against import settings
from ....core.message import joined, message, sentence_case
from ....core.parameters import ROUNDED
from ....core.statistics.catalogue import FAR, MUCH_LOST, STATISTIC, Statistic
from ....core.tables.lab import SweepResult, place_titles, place_words
from ....core.theory.prediction import is_saturated
from ...language.cells import cells as cells_of
from ...language.cells import to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, fitted, line_width
from ..numbers import on_the_point, percent, short, spread
from ..plots.histograms import axis_span, sparkline
from .table import COLUMN_ROLES, is_far

if TYPE_CHECKING:
    pass

_GAP = 2  # cells between blocks
_LEAST, _WIDEST = 8, 30  # cells of a sparkline
_EXACT = "exact"  # the title of values of theory
_UNITS = {"number": "", "nats": "nats", "keys": "", "share": "%"}

Deviations = Sequence[Mapping[str, float | None]]  # of each column of a point from its theory, in standard errors


@dataclass(frozen=True)
class _Block:
    """The cells under one heading, all of one width."""

    titles: Sequence[Line]  # three lines
    rows: Sequence[Line]  # one for each point

    @property
    def width(self) -> int:
        return line_width(self.titles[-1])


def sweep_lines(sweep: SweepResult, deviations: Sequence[Deviations], width: int, glyphs: Glyphs) -> list[Line]:
    """Return the points as a table, or as several tables if the requested statistics do not fit in one.

    If no statistics were requested, as many are shown as leave room for histograms of logits. Without points, there
    are no lines.
    """
    if not sweep.points:
        return []
    place = _place(sweep, glyphs)
    chosen = [STATISTIC[name] for name in sweep.shown]
    plain, precise = ([_statistic(sweep, s, deviations, e, glyphs) for s in chosen] for e in (False, True))
    room = width - place.width
    if not sweep.statistics:
        tables = [plain[: max(_fitting(plain, room - 2 * (_LEAST + _GAP)), 1)]]
    elif _taken(precise) <= room:
        tables = [precise]
    else:
        tables = [*_packed(plain, room)]
    spare = (room - _taken(tables[-1])) // 2 - _GAP
    if spare >= _LEAST:
        tables[-1] = [*tables[-1], *_logits(sweep, min(spare, _WIDEST), glyphs)]
    lines: list[Line] = []
    for blocks in tables:
        lines += [()] if lines else []
        lines += _joined(sweep, [place, *blocks])
    return lines


def _taken(blocks: Sequence[_Block]) -> int:
    return sum(_GAP + block.width for block in blocks)


def _fitting(blocks: Sequence[_Block], room: int) -> int:
    """Return how many of the first blocks fit."""
    return next((count for count in range(len(blocks), 0, -1) if _taken(blocks[:count]) <= room), 0)


def _packed(blocks: Sequence[_Block], room: int) -> Iterator[Sequence[_Block]]:
    """Yield the blocks of each table; a block that is too wide has its own table."""
    while blocks:
        count = max(_fitting(blocks, room), 1)
        yield blocks[:count]
        blocks = blocks[count:]


def _joined(sweep: SweepResult, blocks: Sequence[_Block]) -> Iterator[Line]:
    """Yield titles and a line for each point, with a blank line before each new curve."""
    yield from (_beside(titles) for titles in zip(*(block.titles for block in blocks), strict=True))
    curve = len(sweep.d_ks) if len(sweep.d_ks) > 1 else len(sweep.n_keys)
    for number, cells in enumerate(zip(*(block.rows for block in blocks), strict=True)):
        if number and curve > 1 and number % curve == 0:
            yield ()
        yield _beside(cells)


def _beside(parts: Sequence[Line], gap: int = _GAP) -> Line:
    line: Line = parts[0]
    for part in parts[1:]:
        line = (*line, (" " * gap, "text"), *part)
    return line


def _place(sweep: SweepResult, glyphs: Glyphs) -> _Block:
    """Return the block that names the points."""
    titles = [glyphs.say(title) for title in place_titles(sweep)]
    cells = [[glyphs.say(word) for word in place_words(sweep, point)] for point, _ in sweep.points]
    widths = [max(map(cells_of, column)) for column in zip(titles, *cells, strict=True)]

    def line(words: Sequence[str], role: Role) -> Line:
        return (("  ".join(to_right(word, cells) for word, cells in zip(words, widths, strict=True)), role),)

    blank = line([""] * len(titles), "label")
    return _Block((blank, blank, line(titles, "heading")), [line(row, "label") for row in cells])


def _statistic(
    sweep: SweepResult, statistic: Statistic, deviations: Sequence[Deviations], errors: bool, glyphs: Glyphs
) -> _Block:
    """Return the block of a statistic, with both columns."""
    pair = [_column(sweep, statistic, index, deviations, errors, glyphs) for index in range(len(COLUMN_ROLES))]
    unit = _UNITS[statistic.unit]
    name = glyphs.say("{label}, {unit}" if unit else "{label}", label=statistic.short_label, unit=unit)
    titles = [_beside(lines) for lines in zip(*(block.titles for block in pair), strict=True)]
    titles[0] = ((to_left(name, line_width(titles[0])), "heading"),)
    rows = [_beside(cells) for cells in zip(*(block.rows for block in pair), strict=True)]
    return _Block(titles, rows)


def _column(
    sweep: SweepResult,
    statistic: Statistic,
    index: int,
    deviations: Sequence[Deviations],
    errors: bool,
    glyphs: Glyphs,
) -> _Block:
    """Return measured values, with standard errors if `errors`, and exact values, marked ! if they are far off."""
    role, factor = COLUMN_ROLES[index], 100 if statistic.unit == "share" else 1
    measured = [point.measurement.columns[index].measured[statistic.name] for point, _ in sweep.points]
    exact = [prediction.columns[index].values[statistic.name] for _, prediction in sweep.points]
    numbers = [estimate.value for estimate in measured] + exact
    decimals = 2 if factor == 100 else 3
    texts = on_the_point([None if number is None else factor * number for number in numbers], decimals, glyphs)
    known = any(number is not None for number in exact)
    rows: list[Line] = []
    title = glyphs.say(_EXACT)
    wide = cells_of(title)
    for at, estimate in enumerate(measured):
        line: Line = ((texts[at], role), (spread(estimate, factor, glyphs) if errors else "", "dim"))
        if known:
            sign = "!" if is_far(deviations[at][index].get(statistic.name)) else " "
            line = (*line, (sign, "alert"), (to_right(texts[len(measured) + at], wide), "theory"))
        rows.append(line)
    name = glyphs.say(sweep.names[index])
    rows = [fitted(row, max(line_width(row), cells_of(name))) for row in rows]
    width = line_width(rows[0])
    titles: list[Line] = [((" " * width, "text"),), ((to_left(name, width), role),)]
    return _Block([*titles, ((to_right(title if known else "", width), "theory"),)], rows)


def _logits(sweep: SweepResult, cells: int, glyphs: Glyphs) -> Iterator[_Block]:
    """Yield the histograms of both columns' logits, on one axis for all points."""
    columns = [point.measurement.columns for point, _ in sweep.points]
    span = axis_span([column.histograms["logits"] for group in columns for column in group], "logits", glyphs)
    axis = message("{low} to {high}", low=short(span.low, glyphs), high=short(span.high, glyphs))
    for index, role in enumerate(COLUMN_ROLES):
        titles: list[Line] = [
            ((to_left(glyphs.say("logits, {axis}", axis=axis) if index == 0 else "", cells), "heading"),),
            ((set_cell_size(glyphs.say(sweep.names[index]), cells), role),),
            ((" " * cells, "text"),),
        ]
        histograms = [group[index].histograms["logits"] for group in columns]
        yield _Block(
            titles, [((sparkline(histogram, span.low, span.high, cells, glyphs), role),) for histogram in histograms]
        )


def sweep_sentences(sweep: SweepResult, deviations: Sequence[Deviations]) -> list[str]:
    """Return sentences on where softmax saturates, if d_k or keys alone are swept, and on what the table shows."""
    sentences: list[str] = []
    places = _saturated_keys(sweep) if sweep.n_keys else _saturated_widths(sweep)
    known: list[str] = []
    for number, (who, place) in enumerate(zip(sweep.names, places, strict=False)):
        if place is not None:
            values = {"who": who if known else sentence_case(who), "place": place}
            it = message("{who}, it {place}", **values) if number else message("{who}, softmax {place}", **values)
            known.append(it)
    if known:
        sentences.append(message("{sentence}.", sentence=joined(known, "; ")))
    if any(is_far(column.get(name)) for point in deviations for column in point for name in sweep.shown):
        sentences.append(message("! marks values more than {far:g} standard errors from the exact value.", far=FAR))
    shown = {
        name
        for _, prediction in sweep.points
        for column in prediction.columns
        for name in sweep.shown
        if column.values[name] is not None
    }
    sides = [setting for point, _ in sweep.points for setting in settings(point.parameters)]
    if shown and any(side.precision in ROUNDED for side in sides):
        sentences.append(message("Exact values are those of exact arithmetic, whatever the number format."))
    failed, lost = (_most(sweep, name) for name in ("nan_rows", "weight_lost"))
    if failed:
        sentences.append(
            message("Up to {share} of rows are NaN (logits overflow) and not counted.", share=percent(failed))
        )
    if lost > MUCH_LOST:
        sentences.append(message("Rounding loses up to {share} of the weight.", share=percent(lost)))
    return sentences


def _most(sweep: SweepResult, name: str) -> float:
    """Return the largest value of a statistic, 0 without one."""
    columns = [column for point, _ in sweep.points for column in point.measurement.columns]
    return max((column.measured[name].value or 0 for column in columns), default=0)


def _saturated_widths(sweep: SweepResult) -> list[str | None]:
    """Return in words at which d_k each column is saturated, if only d_k is swept; None if not known."""
    columns = sweep.points[0][1].columns if sweep.points and not sweep.vary else ()
    places: list[str | None] = []
    for index, column in enumerate(columns):
        known = column.saturation
        if known is not None:
            words = known.words()[0]
            words = message("is {where}", where=words) if known.saturated_at else words
            rounded = settings(sweep.points[0][0].parameters)[index].precision in ROUNDED
            places.append(message("{where} in exact arithmetic", where=words) if rounded else words)
        else:
            places.append(_runs(sweep, index, "d_k"))
    return places


def _saturated_keys(sweep: SweepResult) -> list[str | None]:
    """Return at which numbers of keys softmax is saturated under each column, if only these are swept."""
    if sweep.vary or len(sweep.d_ks) > 1 or len(sweep.points) < 2:
        return []
    return [_runs(sweep, index, "keys") for index in range(len(COLUMN_ROLES))]


def _runs(sweep: SweepResult, index: int, over: Literal["d_k", "keys"]) -> str | None:
    """Return at which points a column's softmax `is saturated at 2–16 keys`; None if that is not known."""
    known: list[tuple[int, bool]] = []
    for point, exact in sweep.points if len(sweep.points) > 1 else ():
        p, measured = point.parameters, point.measurement.columns[index].measured
        saturated = is_saturated(exact.columns[index].saturation, measured, p.d_k)
        if saturated is not None:
            known.append((p.n_keys if over == "keys" else p.d_k, saturated))
    runs = [[place for place, _ in run] for saturated, run in groupby(known, key=lambda pair: pair[1]) if saturated]
    words = ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    if not known:
        return None
    if not runs:
        if over == "keys":
            return message("stays below saturation at all these numbers of keys")
        return message("stays below saturation at all these d_k")
    if len(runs) == 1 and len(runs[0]) == len(known):
        if over == "keys":
            return message("is saturated at all these numbers of keys")
        return message("is saturated at all these d_k")
    if over == "keys":
        return message("is saturated at {places} keys", places=words)
    return message("is saturated at {places} of these d_k", places=words)
