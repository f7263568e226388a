"""The parts of the Train pane: its settings with a cursor, and the curves with the table below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.field import next_of
from ....core.message import message
from ....core.training.settings import RACE_FIELDS, RATES, Race, changed, fault_of
from ....core.training.snapshot import QUANTITIES, Quantity, RaceSnapshot
from ...views.lines import Line, fitted, wrapped
from ...widgets.field_list import FieldList
from ...widgets.lines import Content, LinesWidget
from .view import curve_lines, result_lines, setting_lines, share_lines

START = Race(rules=("none", "sqrt_d_k", "d_k"), rate=RATES["sgd"], seeds=8)
_LOW = 10  # lines of curves that the table leaves at least, if it can
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
        return setting_lines(self.race, self.cursor, self.objection, self.text, width, height, self.glyphs)


class RaceCurves(LinesWidget):
    """Shows how the runs go: curves of a quantity, on a tall screen of two, and what was learned."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    shown: Content[RaceSnapshot | None] = Content(None)
    quantity: Content[Quantity] = Content(QUANTITIES[0])
    other_axis: Content[frozenset[str]] = Content(frozenset())  # quantities whose axis is not as usual
    numbers: Content[bool] = Content(False)  # whether all results are shown, instead of what is recalled
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
        table = (result_lines if self.numbers else share_lines)(shown, width, self.glyphs)
        rules = len(shown.race.rules)
        room = height - len(table) - 1
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
        return [*curves, fitted((), width), *table]

    def _curves(self, quantity: Quantity, shown: RaceSnapshot, width: int, height: int) -> list[Line]:
        lines = curve_lines(shown, quantity, self.is_logarithmic(quantity), width, height, self.glyphs)
        return [*lines, *[fitted((), width)] * (height - len(lines))]
