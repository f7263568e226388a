"""The parts of the Train pane: its settings with a cursor, and curves with what each rule recalled below them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from rich.cells import set_cell_size

from ....core.field import Field, next_of
from ....core.message import in_sense, message
from ....core.scales import scale_rule
from ....core.tables.runs import RESULT
from ....core.training.settings import LEARNED, RACE_FIELDS, RATES, Race, RaceResult, changed, fault_of
from ....core.training.snapshot import QUANTITIES, CurvePoint, Quantity, RaceSnapshot
from ...language.cells import cells, to_left, to_right
from ...views.fields.panel import field_list_lines
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted, wrapped
from ...views.plots.axes import Axis
from ...views.plots.plot import Plot, Point, Series, cell_at, draw
from ...widgets.bars import Headline
from ...widgets.field_list import FieldList
from ...widgets.lines import Content, LinesWidget

MOST_RULES = 6
_ROLES: tuple[tuple[Role, Role], ...] = (
    ("unscaled", "thin_unscaled"), ("scaled", "thin_scaled"), ("third", "thin_third"), ("fourth", "thin_fourth"),
    ("fifth", "thin_fifth"), ("text", "dim"),
)  # fmt: skip
_HIGHEST = 3.0  # nats: a loss above is drawn at the top
_NAMED = 70  # cells of a plot from which rules are named where their curves end
_NAME, _SHARE = 15, 10  # cells of a rule's name, and of its letter and share


def rule_name(rule: str) -> str:
    """Return a name of at most 15 characters."""
    return message("unscaled") if rule == "none" else scale_rule(rule).label


def letter(rule: int) -> str:
    """Return the letter of a rule's curve."""
    return "ABCDEF"[rule]


def setting_lines(
    race: Race, cursor: str, objection: str, typed: str | None, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return exactly `height` lines: a line for each field, and help on the field with the cursor."""
    fields: list[tuple[Field, str, Role]] = [
        (field, glyphs.say(field.format(getattr(race, field.name))), "text") for field in RACE_FIELDS
    ]
    return field_list_lines(fields, cursor, typed, objection, width, height, glyphs)


def share_lines(shown: RaceSnapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a title, and a bar for each rule: the share of labels recalled, when it was 90 %, and if that stayed."""
    title = message("right answers to new examples, and the step at which 90 % were right")
    lines: list[Line] = [((glyphs.fitting((title, message("right answers, and the step of 90 %")), width), "dim"),)]
    name = max(cells(glyphs.say(rule_name(rule))) for rule in shown.race.rules) + 1
    longest = message("step {step}, fell back", step=shown.race.steps)
    room = max(width - name - cells(glyphs.say(longest)) - _SHARE, 0)
    for number, result in enumerate(shown.results):
        share = 0.0 if math.isnan(result.recalled) else result.recalled
        bar = glyphs.bar(share, room).replace(" ", glyphs.shades[1])
        words, role = _outcome(result, shown.complete)
        words = f"{to_right(f'{100 * share:.0f} %', _SHARE - 4)}  {glyphs.say(words)}"
        lines.append((*_named(number, result.rule, glyphs, name), (bar, _ROLES[number][0]), (words, role)))
    return [fitted(line, width) for line in lines]


def _outcome(result: RaceResult, complete: bool) -> Span:
    """Return when a rule has learned, and in a complete race whether that stayed."""
    if result.steps_to_learn is None:
        return (in_sense("never", "learned"), "alert") if complete else ("", "text")
    step = f"{result.steps_to_learn:.0f}"
    if complete and result.recalled < LEARNED:
        return message("step {step}, fell back", step=step), "alert"
    return message("step {step}", step=step), "good" if complete else "text"


def result_lines(shown: RaceSnapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a table with a line for each rule, and what weights recall if they are used under another rule."""
    columns = [(cell, max(cells(glyphs.say(cell.label)), cell.room) + 2) for cell in RESULT[1:] if cell.label]
    ends = accumulate((wide for _, wide in columns), initial=2 + _NAME)
    columns = [column for column, end in zip(columns, [*ends][1:], strict=True) if end <= width]
    head = "".join(to_right(glyphs.say(cell.label), wide) for cell, wide in columns)
    lines: list[Line] = [((" " * (2 + _NAME), "text"), (head, "dim"))]
    for number, result in enumerate(shown.results):
        texts = "".join(to_right(glyphs.say(cell.text(result)), wide) for cell, wide in columns)
        lines.append((*_named(number, result.rule, glyphs), (texts, "text")))
    if len(shown.race.rules) > 1:
        wide = 9
        none = glyphs.say("—")  # until the race is complete
        titles = "".join(
            to_right(glyphs.say("with {rule}", rule=letter(number)), wide) for number in range(len(shown.race.rules))
        )
        head_of_used: Line = ((to_left(glyphs.say("recalled, used"), 2 + _NAME), "dim"), (titles, "dim"))
        lines.extend(((), head_of_used))
        for number, rule in enumerate(shown.race.rules):
            shares = shown.used[number] if shown.used is not None else ()
            texts = [f"{100 * share:.0f} %" for share in shares] or [none] * len(shown.race.rules)
            shown_texts = "".join(to_right(text, wide) for text in texts)
            lines.append((*_named(number, rule, glyphs), (shown_texts, "text")))
    return [fitted(line, width) for line in lines]


def _named(number: int, rule: str, glyphs: Glyphs, width: int = _NAME) -> tuple[Span, ...]:
    name = set_cell_size(glyphs.say(rule_name(rule)), width - 1) + " "
    return (f"{letter(number)} ", _ROLES[number][0]), (name, "label")


def curve_lines(
    shown: RaceSnapshot, quantity: Quantity, logarithmic: bool, width: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """Return the curves of all rules as exactly `height` lines, with the names of rules where curves end."""
    curves = shown.curves[quantity.name]
    x = Axis(1, max(shown.race.steps, 2))
    y = _axis(quantity, curves, logarithmic)
    series = [_series(number, points, y) for number, points in enumerate(curves)]
    names = [f" {letter(number)} {glyphs.say(rule_name(rule))}" for number, rule in enumerate(shown.race.rules)]
    room = min(max(map(cells, names)), _NAME + 2)
    if width < _NAMED or not all(curve.exact for curve in series):
        return [*draw(Plot(x, y, series), width, height, glyphs).lines][:height]
    drawing = draw(Plot(x, y, series), width - room, height, glyphs)
    lines = [*drawing.lines]
    free = list(range(drawing.at.rows))
    for curve, name in zip(series, names, strict=True):
        end = cell_at(drawing.at.down(curve.exact[-1][1]), drawing.at.rows) or 0
        row = min(free, key=lambda row: abs(row - end), default=None)
        if row is not None:
            free.remove(row)
            lines[row] = (*lines[row], (set_cell_size(name, room), curve.role))
    return [fitted(line, width) for line in lines]


def _axis(quantity: Quantity, curves: Sequence[Sequence[CurvePoint]], logarithmic: bool) -> Axis:
    values = [point.middle for points in curves for point in points if point.middle > 0]
    if quantity.name in ("recalled", "entropy") and not logarithmic:
        return Axis(0, 1)
    high = max(values, default=1.0)
    if quantity.name == "loss":
        high = min(max(high, 0.1), _HIGHEST)
    if logarithmic:
        low = min(values, default=high / 10)
        return Axis(max(min(low, high / 2), high * 1e-6), high, 10)
    return Axis(0, high)


def _series(number: int, points: Sequence[CurvePoint], y: Axis) -> Series:
    role, thin = _ROLES[number]
    inside = [(point.step, min(max(point.middle, y.low), y.high), point.stderr) for point in points]
    if y.base:
        inside = [point for point in inside if point[1] > 0]
    bars = [Point(step, value, stderr) for step, value, stderr in inside if stderr is not None]
    if not bars and inside:
        bars = [Point(*inside[-1][:2])]
    return Series(role, thin, letter(number), bars, [(step, value) for step, value, _ in inside])


START = Race(rules=("none", "sqrt_d_k", "d_k"), rate=RATES["sgd"], seeds=8)
_LOW = 8  # lines of curves that the table leaves at least, if it can
_TWO = 30  # lines from which a second quantity is drawn


class RaceSettings(FieldList):
    """Shows and steps the settings of a race."""

    TITLE = message("race")

    race: Content[Race] = Content(START)

    def __init__(self, leave: Callable[[], object], changed: Callable[[bool], object]) -> None:
        super().__init__(RACE_FIELDS, leave, changed)

    @property
    def value(self) -> Any:
        return getattr(self.race, self.cursor)

    @value.setter
    def value(self, value: Any) -> None:
        self.race = changed(self.race, self.cursor, value)

    @property
    def objection(self) -> str:
        """Why the race cannot be run; empty if it can."""
        return self.refusal or fault_of(self.race)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        text = self.editing.text if self.editing else None
        return setting_lines(self.race, self.cursor, self.objection, text, width, height, self.glyphs)


class RaceHeadline(Headline):
    """Shows d_k in large digits, and beside it how each rule did."""

    label: Content[str] = Content("d_k")
    shown: Content[RaceSnapshot | None] = Content(None)

    def lines_beside(self) -> Sequence[Line]:
        return share_lines(self.shown, self.room_for_words, self.glyphs) if self.shown else ()


class RaceCurves(LinesWidget):
    """Shows how the runs go: curves of a quantity, on a tall screen of two, and what was learned."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    shown: Content[RaceSnapshot | None] = Content(None)
    quantity: Content[Quantity] = Content(QUANTITIES[0])
    other_axis: Content[frozenset[str]] = Content(frozenset())  # quantities whose axis is not as usual
    numbers: Content[bool] = Content(False)  # whether all results are shown, instead of what is recalled
    headed = False  # whether a headline above shows what is recalled
    waiting: Content[str] = Content("")

    def heading(self, width: int) -> Line:
        return self._title(self.quantity)

    def note(self) -> Line:
        if self.shown is None:
            return ()
        return (
            (self.glyphs.say("step {done} of {steps}", done=self.shown.done, steps=self.shown.race.steps), "dim"),
        )

    def _title(self, quantity: Quantity) -> Line:
        label = self.glyphs.say(quantity.label)
        title = self.glyphs.say("{label}, log", label=label) if self.is_logarithmic(quantity) else label
        return ((title, "heading"),)

    def is_logarithmic(self, quantity: Quantity) -> bool:
        """Whether the axis of a quantity is logarithmic."""
        return (quantity.name == "gradient") != (quantity.name in self.other_axis)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        shown = self.shown
        if shown is None:
            lines = wrapped(self.glyphs.say(self.waiting), width)
            return [fitted(line, width) for line in (*lines, *[()] * (height - len(lines)))][:height]
        shares = [] if self.headed else share_lines(shown, width, self.glyphs)
        table = result_lines(shown, width, self.glyphs) if self.numbers else shares
        rules = len(shown.race.rules)
        room = height - len(table) - bool(table)
        if room < _LOW:
            table = table[: max(height - _LOW - 1, min(rules + 1, height // 2))]
            room = height - len(table) - 1
        other = next_of(QUANTITIES, self.quantity)
        if room < _TWO:
            curves = self._curves(self.quantity, shown, width, room)
        else:
            upper = room // 2
            curves = [
                *self._curves(self.quantity, shown, width, upper),
                fitted(self._title(other), width),
                *self._curves(other, shown, width, room - upper - 1),
            ]
        return [*curves, *[fitted((), width)] * bool(table), *table]

    def _curves(self, quantity: Quantity, shown: RaceSnapshot, width: int, height: int) -> list[Line]:
        lines = curve_lines(shown, quantity, self.is_logarithmic(quantity), width, height, self.glyphs)
        return [*lines, *[fitted((), width)] * (height - len(lines))]
