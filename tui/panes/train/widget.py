"""The parts of the Train pane: its settings with a cursor, and the curves with the table below them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from textual import events
from textual.message import Message

from ....core.errors import ParameterError
from ....core.parameters import Field
from ....core.training.settings import RACE_FIELD, RACE_FIELDS, Race, changed, fault_of
from ....core.training.snapshot import QUANTITIES, Quantity, Snapshot
from ...views.fields.draft import LONGEST_NUMBER
from ...views.fields.entry import entered
from ...views.lines import Line, fitted, wrapped
from ...widgets.lines import LinesWidget
from .view import curve_lines, result_lines, setting_lines

START = Race(rules=("none", "sqrt_d_k", "d_k"), rate=2.0, seeds=8)
_LOW = 10  # lines of curves that the table leaves at least, if it can
_TWO = 30  # lines from which a second quantity is drawn


class RaceSettings(LinesWidget):
    """Shows and steps the settings of a race."""

    TITLE = "race"
    LEADS = True
    DEFAULT_CLASSES = "region"

    def __init__(self) -> None:
        super().__init__()
        self.race = START
        self.cursor = RACE_FIELDS[0].name
        self.text: str | None = None  # being typed into the field with the cursor
        self.refusal = ""  # why the text is not accepted
        self._before = START  # restored if typing is cancelled, or the text refused

    @property
    def field(self) -> Field:
        """The field with the cursor."""
        return RACE_FIELD[self.cursor]

    @property
    def objection(self) -> str:
        """Why the race cannot be run; empty if it can."""
        return self.refusal or fault_of(self.race)

    def move(self, step: int) -> None:
        """Move the cursor, at most to the first or last field."""
        self.finish()
        names = [field.name for field in RACE_FIELDS]
        self.cursor = names[min(max(names.index(self.cursor) + step, 0), len(names) - 1)]

    def step(self, direction: Literal[-1, 1]) -> None:
        """Step the field with the cursor as its declaration says."""
        self.finish()
        value: Any = getattr(self.race, self.cursor)
        self.race = changed(self.race, self.cursor, self.field.stepped(value, direction))

    def type(self, character: str) -> None:
        """Type a character into the field with the cursor; the first one replaces its value."""
        if self.field.kind != "choice":
            self._try((self.text or "") + character)

    def _try(self, text: str) -> None:
        """Apply the text typed so far; a refused one restores the value before typing."""
        if self.text is None:
            self._before = self.race
        self.text, self.refusal = text[:LONGEST_NUMBER], ""
        try:
            self.race = changed(self._before, self.cursor, entered(self.field, text))
        except ParameterError as error:
            self.race, self.refusal = self._before, str(error)

    def erase(self) -> None:
        """Erase a typed character."""
        if self.text is not None:
            self._try(self.text[:-1])

    def finish(self) -> None:
        """Stop typing; an accepted value stays."""
        self.text, self.refusal = None, ""

    def cancel(self) -> None:
        """Restore the value before typing."""
        if self.text is not None:
            self.race = self._before
            self.finish()

    class Stepped(Message):
        """The mouse changed a setting."""

    def on_click(self, event: events.Click) -> None:
        field = self._field_at(event)
        if field is not None:
            self.finish()
            self.cursor = field.name
            self.redraw()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._wheel(event, 1)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._wheel(event, -1)

    def _wheel(self, event: events.MouseEvent, direction: Literal[-1, 1]) -> None:
        field = self._field_at(event)
        if field is not None:
            self.finish()
            self.cursor = field.name
            self.step(direction)
            self.post_message(self.Stepped())

    def _field_at(self, event: events.MouseEvent) -> Field | None:
        y = self.place_of(event).y
        return RACE_FIELDS[y] if 0 <= y < len(RACE_FIELDS) else None

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return setting_lines(self.race, self.cursor, self.objection, self.text, width, height, self.glyphs)


class RaceCurves(LinesWidget):
    """Shows how the runs go: curves of a quantity, on a tall screen of two, and a table."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    shown: Snapshot | None = None
    quantity = QUANTITIES[0]
    other_axis: frozenset[str] = frozenset()  # quantities whose axis is not their default, which is linear
    waiting = ""

    def heading(self, width: int) -> Line:
        return self._title(self.quantity)

    def note(self) -> Line:
        if self.shown is None:
            return ()
        return ((f"step {self.shown.done} of {self.shown.race.steps}", "dim"),)

    def _title(self, quantity: Quantity) -> Line:
        axis = ", log" if self.is_logarithmic(quantity) else ""
        return ((self.glyphs.say(quantity.label + axis), "heading"),)

    def is_logarithmic(self, quantity: Quantity) -> bool:
        """Whether the axis of a quantity is logarithmic."""
        return (quantity.name == "gradient") != (quantity.name in self.other_axis)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        shown = self.shown
        if shown is None:
            lines = wrapped(self.glyphs.say(self.waiting), width)
            return [fitted(line, width) for line in (*lines, *[()] * (height - len(lines)))][:height]
        table = result_lines(shown, width, self.glyphs)
        rules = len(shown.race.rules)
        room = height - len(table) - 1
        if room < _LOW:
            table = table[: max(height - _LOW - 1, min(rules + 1, height // 2))]
            room = height - len(table) - 1
        other = QUANTITIES[(QUANTITIES.index(self.quantity) + 1) % len(QUANTITIES)]
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

    def _curves(self, quantity: Quantity, shown: Snapshot, width: int, height: int) -> list[Line]:
        lines = curve_lines(shown, quantity, self.is_logarithmic(quantity), width, height, self.glyphs)
        return [*lines, *[fitted((), width)] * (height - len(lines))]
