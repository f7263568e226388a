"""The Softmax pane: a few scores, edited in place, and every step of their softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ....core.attention.worked_example import (
    EXAMPLE_FIELD,
    Example,
    irrelevant,
    multiplier_of,
    relevant,
    start_scores,
    step_score,
)
from ....core.errors import InputError, ParameterError
from ....core.field import Field
from ....core.message import Message as Said
from ....core.message import joined, message
from ....core.parameters import FIELD, UNSCALED, Parameters, Value, setting_a
from ....core.questions.request import Failed, Progress, Request
from ....core.questions.softmax import SoftmaxSteps, WorkOut
from ...views.bars import Key
from ...views.fields.entry import LONGEST_NUMBER, Draft, edited
from ...views.lines import Line
from ...views.results.softmax import ScoreEntry
from ...widgets.typing import typing
from ..pane import Host
from ..stepping import SteppingPane, stepping_keys
from .widget import SoftmaxText

_SCORE = EXAMPLE_FIELD["scores"]

_SHIFTS = (
    ("right_parenthesis", "1", "+ 10", "softmax.shift_up"),
    ("left_parenthesis", "-1", "− 10", "softmax.shift_down"),
    ("right_curly_bracket", "1, 100", "+ 100", "softmax.shift_far_up"),
    ("left_curly_bracket", "-1, 100", "− 100", "softmax.shift_far_down"),
)
_STEPPED = (
    "against", "next_against", "scale", "next_scale", "format", "next_format",
)  # fmt: skip
_EDITING_KEYS = ("backspace", "home", "end", "ctrl+a", "ctrl+e", "ctrl+u", "ctrl+k", "ctrl+w")


class SoftmaxPane(SteppingPane):
    """Every step from scores to weights, unscaled beside scaled."""

    NAME = "Softmax"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "score"), ("↑↓", "±1"), ("0-9", "type"), ("H L", "d_k"), ("t", "temperature"), ("v", "steps"),
        ("?", "help"), ("q", "quit"), (">", "next tab"), ("( )", "shift"), ("[ ]", "fewer, more scores"),
        ("s", "scale"), ("a", "against"), ("f", "format"), ("R", "reset"), ("PgDn", "scroll"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l,tab", "move(1)", "next score", id="softmax.next"),
        Binding("left,h,shift+tab", "move(-1)", "previous score", id="softmax.previous"),
        Binding("up,k", "raise(1)", "score + 1", id="softmax.more"),
        Binding("down,j", "raise(-1)", "score − 1", id="softmax.less"),
        Binding("shift+up", "fine(1)", "score + 0.1", id="softmax.a_little_more"),
        Binding("shift+down", "fine(-1)", "score − 0.1", id="softmax.a_little_less"),
        *typing("0123456789.-+e", "type a score"),
        Binding("enter", "enter", "edit or accept the score", id="softmax.edit"),
        Binding("escape", "cancel", "cancel typing", id="softmax.cancel"),
        *(
            Binding(key, f"typed('{key}')", "edit the typed text")
            for key in _EDITING_KEYS
        ),
        Binding("right_square_bracket,insert", "add", "one more score", id="softmax.add"),
        Binding("left_square_bracket,delete", "remove", "one score fewer", id="softmax.remove"),
        Binding("t", "change('temperature', 1)", "temperature × 2", id="softmax.warmer"),
        Binding("T", "change('temperature', -1)", "temperature ÷ 2", id="softmax.colder"),
        *(
            Binding(key, f"change('shift', {step})", f"shift {words}", id=name)
            for key, step, words, name in _SHIFTS
        ),
        Binding("L,shift+right", "double(1)", "d_k to the next power of two", id="softmax.double"),
        Binding("H,shift+left", "double(-1)", "d_k to the previous power of two", id="softmax.halve"),
        *stepping_keys("softmax", _STEPPED),
        Binding("v", "view", "show every step, or the page", id="softmax.view"),
        Binding("slash", "choose('scale')", "choose the scale rule from a list", id="softmax.find"),
        Binding("R", "reset", "reset scores, temperature and shift", id="softmax.reset"),
        Binding("pagedown,space", "read(8)", "scroll down", id="softmax.read_on"),
        Binding("pageup", "read(-8)", "scroll up", id="softmax.read_back"),
    ]  # fmt: skip

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._d_k = self._usable()[0].d_k  # whose scores those to start with are
        self.example: Example = Example(start_scores(self._d_k))
        self.editing = self._largest()
        self.text = SoftmaxText()
        self.worked: SoftmaxSteps | None = None  # the results shown
        self._touched = _SCORE
        self._before: Example = self.example  # restored when typing is cancelled

    def compose(self) -> ComposeResult:
        yield self.text

    def statuses(self) -> Sequence[Line]:
        if self.progress is not None:
            return super().statuses()
        return [((self.glyphs.say("{count} scores", count=len(self.example.scores)), "text"),)]

    @property
    def topic(self) -> Field:
        return self._touched

    def follow(self) -> None:
        """Show the parameters; scores that nobody has changed stay multiples of √d_k."""
        before, self._d_k = self._d_k, self._usable()[0].d_k
        if self.example.scores == start_scores(before):
            self.example = replace(self.example, scores=start_scores(self._d_k))
        self._work_out()

    @property
    def question(self) -> WorkOut:
        worked = self.answered()
        return WorkOut(self.example, worked.parameters)

    def answered(self) -> SoftmaxSteps:
        if self.editing.objection:
            raise InputError("{reason}.", reason=self.editing.objection)
        if self.worked is None or not self.is_current:
            raise InputError("The results for these scores are still being computed.")
        return self.worked

    @property
    def is_stale(self) -> bool:
        return self.text.dimmed

    @property
    def is_current(self) -> bool:
        shown = self.worked
        return shown is not None and (shown.example, shown.parameters) == (self.example, self._usable()[0])

    def _largest(self) -> ScoreEntry:
        """Return the entry of the largest score, whose rise moves the most weight."""
        scores = self.example.scores
        return ScoreEntry(scores.index(max(scores)))

    # Selecting and editing a score

    def on_click(self, event: events.Click) -> None:
        at = self.text.score_at(event) if event.widget is self.text else None
        if at is not None:
            self.action_move(at - self.editing.at)

    def action_move(self, step: int) -> None:
        """Accept the typed text, and select another score."""
        self.leave_field()
        at = min(max(self.editing.at + step, 0), len(self.example.scores) - 1)
        self._touched = _SCORE
        self.editing = ScoreEntry(at)
        self._work_out()

    def action_raise(self, direction: Literal[-1, 1]) -> None:
        self._step(direction)

    def action_fine(self, direction: Literal[-1, 1]) -> None:
        self._step(direction, fine=True)

    def action_type(self, character: str) -> None:
        draft = self.editing.draft
        if draft is None and character == "e":  # no number starts with it; it exports, as in other panes
            raise SkipAction
        self._try(Draft.of(character) if draft is None else draft.typed(character))

    def action_typed(self, key: str) -> None:
        """Edit the typed text; Backspace starts with the text of the score."""
        draft = self.editing.draft
        if draft is None and key == "backspace":
            draft = Draft.of(_SCORE.format(self._score))
        changed = None if draft is None else edited(draft, key)
        if changed is not None:
            self._try(changed)

    def action_enter(self) -> None:
        """Start to edit the score, or accept the typed text if it is a score."""
        if self.editing.draft is None:
            self._try(Draft.of(_SCORE.format(self._score)))
        else:
            self.leave_field()

    def action_cancel(self) -> None:
        if self.editing.draft is not None:
            self.example = self._before
            self._finish()

    def action_add(self) -> None:
        self.leave_field()
        at = self.editing.at + 1
        self._change(lambda: self.example.with_one_more(at), at)

    def action_remove(self) -> None:
        self.leave_field()
        at = self.editing.at
        self._change(lambda: self.example.without(at), min(at, len(self.example.scores) - 2))

    def _step(self, direction: Literal[-1, 1], fine: bool = False) -> None:
        self.leave_field()
        self._touched = _SCORE
        self._take(self.example.with_score(self.editing.at, step_score(self._score, direction, fine)))

    @property
    def _score(self) -> float:
        return self.example.scores[self.editing.at]

    def _try(self, draft: Draft) -> None:
        """Apply the typed text after each keystroke; if it is not a score, show why."""
        at = self.editing.at
        if self.editing.draft is None:
            self._before = self.example
        self._touched = _SCORE
        if len(draft.text) > LONGEST_NUMBER:
            objection = message("{label}: must be at most {most} characters", label=_SCORE.label, most=LONGEST_NUMBER)
            self._refuse(ScoreEntry(at, self.editing.draft, objection))
            return
        try:
            self.example = self.example.with_score(at, float(_SCORE.parse(draft.text)))
        except ParameterError as error:
            self._refuse(ScoreEntry(at, draft, str(error)))
        else:
            self.editing = ScoreEntry(at, draft)
            self._work_out()

    def _refuse(self, editing: ScoreEntry) -> None:
        """Show why a text is not accepted, and dim the results for the score that stood before typing."""
        self.example, self.editing = self._before, editing
        self._work_out()

    @property
    def is_typing(self) -> bool:
        return self.editing.draft is not None

    @property
    def refusal(self) -> str | None:
        return self.editing.objection if self.is_typing else None

    def end_typing(self) -> None:
        if self.is_typing:
            self._finish()

    # Undo

    @property
    def undo_state(self) -> tuple[Example, int]:
        return self.example, self.editing.at

    def restore_state(self, state: tuple[Example, int]) -> None:
        self.example, at = state
        self.editing = ScoreEntry(at)

    # Changing all scores and parameters

    def action_change(self, name: str, direction: Literal[-1, 1], step: float | None = None) -> None:
        """Step the temperature or the shift."""
        self.leave_field()
        self._touched = EXAMPLE_FIELD[name]
        self._take(self.example.stepped(name, direction, step))

    def show_item(self, item: tuple[float, ...]) -> None:
        self.example = Example(item)
        self.editing = self._largest()
        self._take(self.example)

    def action_reset(self) -> None:
        self.example = Example(start_scores(self._usable()[0].d_k))
        self.editing = self._largest()
        self._take(self.example)

    def set_value(self, name: str, value: Value) -> None:
        self._touched = FIELD[name]
        super().set_value(name, value)

    def action_view(self) -> None:
        """Show every step, or the page."""
        self.text.steps = not self.text.steps

    def action_read(self, lines: int) -> None:
        self.text.scroll_by(lines)

    def _change(self, changed: Callable[[], Example], at: int) -> None:
        """Apply a change and select score `at`; if the change is invalid, show why."""
        self._touched = _SCORE
        try:
            self.example = changed()
        except ParameterError as error:
            self._show(ScoreEntry(self.editing.at, note=str(error)))
        else:
            self.editing = ScoreEntry(at)
            self._work_out()

    def _take(self, example: Example) -> None:
        self.example = example
        self._finish()

    def _finish(self) -> None:
        """End typing; an accepted score stays, a refused one has left what stood before."""
        self.editing = ScoreEntry(self.editing.at)
        self._work_out()

    def _usable(self) -> tuple[Parameters, str]:
        """Return the parameters for the example, and a remark on differences from the Lab."""
        parameters, remarks = self.parameters, list[str]()
        try:
            multiplier_of(parameters)
        except ParameterError as error:
            parameters = parameters.with_value("scale", "sqrt_d_k")
            remarks.append(message("{reason}; using 1/√d_k instead.", reason=_reason(error)))
        try:
            multiplier_of(setting_a(relevant(parameters)))
        except ParameterError as error:
            parameters = parameters.with_value("against", UNSCALED)
            remarks.append(message("A: {reason}; using × 1 instead.", reason=_reason(error)))
        if parameters.softcap or parameters.sink != "none":
            remarks.append(message("The Lab's soft-cap and sink are ignored here."))
        if names := irrelevant(self.parameters):
            labels = joined([FIELD[name].label for name in names], ", ")
            remarks.append(message("A's {names} is ignored here.", names=labels))
        return parameters, joined(remarks)

    def _work_out(self) -> None:
        """Request the example for the current parameters."""
        if self.is_current:
            self.host.engine.withdraw(WorkOut)
            self.show_progress(None)
            self.text.dim(bool(self.editing.objection))
        else:
            self.ask(WorkOut(self.example, self._usable()[0]))
        self._show(self.editing)

    def show_answer(self, request: Request, answer: object) -> None:
        if self.is_current:  # the answer is to an earlier request
            return
        match request, answer:
            case _, SoftmaxSteps():
                self.worked = replace(answer, remark=self._usable()[1])
                self.show_progress(None)
                self.text.dim(bool(self.editing.objection) or (self.is_stale and not self.is_current))
            case _, Progress(fraction):
                self.show_progress(fraction)
                self.text.dim(True)
            case _, Failed(reason):
                self.show_progress(None)
                self.text.dim(not self.is_current)
                self.editing = ScoreEntry(self.editing.at, note=reason)
            case _:
                pass
        self._show(self.editing)

    def _show(self, editing: ScoreEntry) -> None:
        self.editing = editing
        if self.worked is not None:
            self.text.show(self.worked, editing)
        self.host.show_status()


def _reason(error: ParameterError) -> str:
    """Return why a rule has no multiplier, without the advice to choose another one."""
    said = str(error)
    advice = "; choose another"
    if isinstance(said, Said) and said.template.endswith(advice):
        return message(said.template.removesuffix(advice), **said.values)
    return said.removesuffix(advice)
