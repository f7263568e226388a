"""The actions of panes whose keys step the parameters, or type d_k."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType

from ...core.errors import ParameterError
from ...core.message import counted, message
from ...core.models import next_width
from ...core.parameters import FIELD, Parameters, Value
from ..views.bars import typing_status
from ..views.fields.entry import FieldEntry, typed
from ..views.lines import Line
from ..views.page import LOW
from ..widgets.bars import Headline
from ..widgets.typing import typing
from .lists import choose_value
from .pane import Host, Pane

HELD = 0.12  # seconds between repeats of a held key, at most: terminals send ten or more a second
HOLD = 3  # repeats from which a key is held, instead of pressed a few times
SLOW = 12  # steps of a held arrow before these are of a tenth
STOP = 512  # the d_k at which a held key stops once: by then softmax is saturated, and the story told
HEADED, BLANK = 18, 30  # lines of a pane from which it has a headline, and a blank line above it
_SHARED = (  # key, action, what it does, name; the same in every pane
    ("s", "choose('scale')", "choose the scale rule", "scale"),
    ("S", "step('scale', 1)", "next scale rule", "next_scale"),
    ("a", "choose('against')", "choose A, the left column", "against"),
    ("A", "step('against', 1)", "A: next scale rule", "next_against"),
    ("f", "choose('precision')", "choose the number format", "format"),
    ("F", "step('precision', 1)", "next number format", "next_format"),
    ("pageup", "width(1)", "d_k: next width of a real model", "next_width"),
    ("pagedown", "width(-1)", "d_k: previous width of a real model", "previous_width"),
    ("c", "choose('components')", "choose the law of the components", "law"),
    ("C", "step('components', 1)", "next component law", "next_law"),
    ("x", "choose('mask')", "choose the mask", "mask"),
    ("X", "step('mask', 1)", "next mask", "next_mask"),
    ("d", "choose('mechanism')", "choose the mechanism: dot product, additive, …", "mechanism"),
    ("D", "step('mechanism', 1)", "next mechanism", "next_mechanism"),
    ("right_square_bracket", "step('n_keys', 1)", "keys × 2", "more_keys"),
    ("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", "fewer_keys"),
    ("r", "step('seed', 1)", "redraw with a new seed", "redraw"),
    ("R", "reset", "reset all parameters", "reset"),
)


def stepping_keys(place: str, names: Sequence[str] = (), without: Sequence[str] = ()) -> list[BindingType]:
    """Return the bindings of a pane that step parameters: all, or those with these names."""
    return [
        Binding(key, action, words, id=f"{place}.{name}")
        for key, action, words, name in _SHARED
        if (not names or name in names) and name not in without
    ]


def by(change: int) -> Callable[[int], int]:
    """Return a step of d_k by `change`, staying within bounds."""
    return lambda d_k: int(min(max(d_k + change, FIELD["d_k"].low), FIELD["d_k"].high))


def by_a_tenth(change: int) -> Callable[[int], int]:
    """Return a step of d_k by a tenth in the direction of `change`, at least by `change`, staying within bounds."""
    return lambda d_k: by(change * max(d_k // 10, 1))(d_k)


class SteppingPane(Pane):
    """A pane whose keys step d_k and other parameters."""

    last_step: Callable[[int], int] = staticmethod(by(1))  # that the last key made, which a key may repeat
    stopped = False  # whether a held key has reached STOP; it goes on when it is pressed again
    _repeats = 0  # of the key that is held
    _last_key: tuple[object, float] = None, -math.inf  # what the last key did, and when it came

    def action_d_k(self, change: int) -> None:
        """Step d_k by `change`, staying within bounds; an arrow that is held soon steps by a tenth."""
        self._step_d_k(change, lambda: by(change) if self._repeats < SLOW else by_a_tenth(change))

    def action_double(self, direction: Literal[-1, 1]) -> None:
        """Step d_k to the next power of two."""
        self._step_d_k(("double", direction), lambda: lambda d_k: int(FIELD["d_k"].stepped(d_k, direction)))

    def action_width(self, direction: int) -> None:
        """Step d_k to the next width that a real model uses."""
        self._step_d_k(("width", direction), lambda: lambda d_k: next_width(d_k, direction))

    @property
    def awaits_picture(self) -> bool:
        """Whether what is on screen is not yet that of the last step: a held key waits for it."""
        return False

    def _step_d_k(self, key: object, step: Callable[[], Callable[[int], int]]) -> None:
        """Step d_k by what `step` returns. A held key waits for the picture of its last step, and stops at STOP."""
        self._count(key)
        if not self._repeats:
            self.stopped = False
        elif self.stopped or (self._repeats >= HOLD and self.awaits_picture):
            return
        self.last_step, before = step(), self.parameters.d_k
        after = self.last_step(before)
        if self._repeats and before < STOP <= after:
            self.stopped, after = True, STOP
        self.set_value("d_k", after)

    def _count(self, key: object) -> None:
        """Count how often the key that steps d_k has been repeated."""
        last, before = self._last_key
        now = time.monotonic()
        self._repeats = self._repeats + 1 if key == last and now - before < HELD else 0
        self._last_key = key, now

    @property
    def held(self) -> bool:
        """Whether the key that steps d_k is held."""
        return self._repeats > 0 and time.monotonic() - self._last_key[1] < HELD

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        """Step a parameter as its field declares."""
        self.set_value(name, self.parameters.stepped(name, direction))

    def action_choose(self, name: str) -> None:
        """Choose the value of a parameter from a list."""
        choose_value(self.host, name, lambda value: self.set_value(name, value))

    def action_reset(self) -> None:
        """Reset all parameters."""
        self.set_parameters(Parameters())

    def set_value(self, name: str, value: Value) -> None:
        """Replace the value of a parameter, or say why it is not accepted beside the others; accept what is typed."""
        if self.is_typing:
            self.leave_field()
        try:
            changed = self.parameters.with_value(name, value)
        except ParameterError as error:
            self.host.say(message("{reason}.", reason=error))
        else:
            self.set_parameters(changed)

    def set_parameters(self, parameters: Parameters) -> None:
        """Replace the parameters, and drop what is being typed."""
        if self.is_typing:
            self.end_typing()
        self.host.change(parameters)


class TypingPane(SteppingPane):
    """A pane without fields, in which digits type d_k or what else is at hand; headline or top bar show it."""

    TYPING: ClassVar[list[BindingType]] = [
        *typing("0123456789", "type d_k"),
        Binding("backspace", "typed('erase')", "erase a digit"),
        Binding("tab", "typed('accept')", "accept the typed value"),
        Binding("escape", "typed('cancel')", "cancel typing"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.headline = Headline()
        self.editing: FieldEntry[Parameters] | None = None

    def refuse(self, reason: str) -> None:
        """Dim what is shown, and show why the typed text is not accepted."""
        raise NotImplementedError

    @property
    def typed_field(self) -> str:
        """The name of the field that digits type into."""
        return "d_k"

    @property
    def entry(self) -> FieldEntry[Parameters] | None:
        return self.editing

    @property
    def is_refused(self) -> bool:
        """Whether the typed text is not accepted."""
        return bool(self.refusal)

    def end_typing(self) -> None:
        editing, self.editing = self.editing, None
        if editing is not None:
            if editing.objection:
                self.follow()
            self.show_headline(self.headline.words)
            self.host.show_status()

    def statuses(self) -> Sequence[Line]:
        """Return how many keys there are, if large digits show what moves."""
        if self.editing is not None and not self.headline.display:
            return typing_status(self.editing, self.glyphs)
        if self.progress is not None or not self.headline.display:
            return super().statuses()
        p = self.parameters
        keys = counted("{number} key", "{number} keys", p.n_keys)
        other = message("d_k {d_k}", d_k=p.d_k) if self.typed_field == "n_keys" else keys
        alone: Line = ((self.glyphs.say(other), "text"),)
        return [alone]

    def show_headline(self, words: Sequence[Line]) -> None:
        """Show what digits type into in large ones, with lines of words."""
        name, editing, headline = self.typed_field, self.editing, self.headline
        headline.label, headline.words = FIELD[name].label, words
        headline.number = f"{getattr(self.parameters, name)}" if editing is None else f"{editing.text}_"
        headline.role = "heading" if editing is None else "alert" if editing.objection else "accent"

    def headline_height(self) -> int:
        """Give the headline its lines, none in a low pane; return them."""
        lines = 0 if self.size.height < HEADED else LOW + (self.size.height >= BLANK)
        if self.headline.display != (lines > 0) or self.headline.styles.height != lines:
            self.headline.display, self.headline.styles.height = lines > 0, lines
            self.host.show_status()  # which says what the headline does not
        return lines

    def leave(self) -> None:
        self.end_typing()

    def action_type(self, character: str) -> None:
        """Type a digit of d_k."""
        self._type((self.editing.text if self.editing else "") + character)

    def action_typed(self, end: Literal["erase", "accept", "cancel"]) -> None:
        """Erase a digit, accept or cancel, if something is being typed."""
        if self.editing is None:
            return
        if end == "erase":
            self._type(self.editing.text[:-1])
        elif end == "cancel":
            self.set_parameters(self.editing.before)
        else:
            self.leave_field()

    def _type(self, text: str) -> None:
        """Apply the text typed so far, or show why it is not accepted."""
        refused = self.is_refused
        self.editing = typed(self.editing, self.parameters, FIELD[self.typed_field], text, Parameters.with_value)
        unchanged = self.editing.value == self.parameters
        self.host.change(self.editing.value)
        if self.editing.objection:
            self.refuse(message("{reason}.", reason=self.editing.objection))
        elif refused and unchanged:
            self.follow()
        self.host.show_status()
