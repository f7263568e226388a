"""The Softmax pane: a handful of scores, edited in place, on their way through softmax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import events
from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.attention.handful import HANDFUL_FIELD, Handful, multiplier_of, relevant, scores_text, step_score
from ...core.attention.scales import SCALE_RULES
from ...core.errors import InputError
from ...core.landmarks import next_width
from ...core.parameters import FIELD, Field, ParameterError, Parameters, Value
from ..command import in_shell, parameter_options
from ..messages import ParametersChanged, StatusChanged
from ..views.bars import Key
from ..views.draft import Draft, edited
from ..views.glyphs import Glyphs
from ..views.lines import Line
from ..views.softmax import Editing, Worked
from ..widgets.parameter_panel import typing
from ..widgets.softmax import SoftmaxText
from .pane import Pane

if TYPE_CHECKING:
    from ...core.export.formats import Format

_SCORE = HANDFUL_FIELD["scores"]

_SHIFTS = (
    ("right_square", "1", "10 more", "softmax.shift_up"),
    ("left_square", "-1", "10 less", "softmax.shift_down"),
    ("right_curly", "1, 100", "100 more", "softmax.shift_far_up"),
    ("left_curly", "-1, 100", "100 less", "softmax.shift_far_down"),
)
_WITHIN = ("backspace", "delete", "home", "end", "ctrl+a", "ctrl+e", "ctrl+u", "ctrl+k", "ctrl+w")


class SoftmaxPane(Pane):
    """Every step from scores to weights, unscaled beside scaled."""

    NAME = "Softmax"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "score"), ("↑↓", "±1"), ("0-9", "type it"), ("t", "temperature"), ("[ ]", "shift"), ("?", "help"),
        ("q", "quit"), (">", "next pane"), ("a", "add"), ("x", "remove"), ("u d", "±0.1"), ("s", "scale"),
        ("w", "d_k"), ("f", "format"), ("R", "reset"), ("PgDn", "read on"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(1)", "next score", show=False, id="softmax.next"),
        Binding("left,h", "move(-1)", "previous score", show=False, id="softmax.previous"),
        Binding("up,k", "step(1)", "score + 1", show=False, id="softmax.more"),
        Binding("down,j", "step(-1)", "score − 1", show=False, id="softmax.less"),
        Binding("u,shift+up", "fine(1)", "score + 0.1", show=False, id="softmax.a_little_more"),
        Binding("d,shift+down", "fine(-1)", "score − 0.1", show=False, id="softmax.a_little_less"),
        *typing(".-+e", words="type the score"),
        Binding("enter", "enter", "edit the score, or done with it", show=False, id="softmax.edit"),
        Binding("escape", "cancel", "back to the score before typing", show=False, id="softmax.cancel"),
        *(
            Binding(key, f"typed('{key}')", "within what is being typed", show=False)
            for key in _WITHIN
        ),
        Binding("a", "add", "another score after this one", show=False, id="softmax.add"),
        Binding("x", "remove", "without this score", show=False, id="softmax.remove"),
        Binding("t", "change('temperature', 1)", "temperature × 2", show=False, id="softmax.warmer"),
        Binding("T", "change('temperature', -1)", "temperature ÷ 2", show=False, id="softmax.colder"),
        *(
            Binding(f"{key}_bracket", f"change('shift', {step})", f"{words} in every logit", show=False, id=name)
            for key, step, words, name in _SHIFTS
        ),
        Binding("s", "ask('scale', 1)", "next scale rule", show=False, id="softmax.next_scale"),
        Binding("S", "ask('scale', -1)", "previous scale rule", show=False, id="softmax.previous_scale"),
        Binding("w", "width(1)", "next width of a real model", show=False, id="softmax.next_width"),
        Binding("W", "width(-1)", "previous width of a real model", show=False, id="softmax.previous_width"),
        Binding("f", "ask('precision', 1)", "next number format", show=False, id="softmax.next_format"),
        Binding("R", "reset", "scores, temperature and shift as at first", show=False, id="softmax.reset"),
        Binding("pagedown,space", "read(8)", "read on", show=False, id="softmax.read_on"),
        Binding("pageup", "read(-8)", "read back", show=False, id="softmax.read_back"),
    ]  # fmt: skip

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(parameters, glyphs)
        self.handful = Handful()
        self.editing = Editing(0)
        self.text = SoftmaxText()
        self._touched = _SCORE
        self._before = self.handful  # what to go back to when typing is cancelled
        self._work_out()

    def compose(self) -> ComposeResult:
        yield self.text

    def statuses(self) -> Sequence[Line]:
        p = self.worked.parameters
        d_k, count = f"d_k {p.d_k}", f"{len(self.handful.scores)} scores"
        texts = [f"{count} · {d_k} · {SCALE_RULES[p.scale].label}", f"{count} · {d_k}", d_k]
        return [((self.glyphs.say(text), "text"),) for text in texts]

    @property
    def topic(self) -> Field:
        return self._touched

    def follow(self, parameters: Parameters) -> None:
        super().follow(parameters)
        self._work_out()

    def numbers(self, kind: Format) -> str:
        from ...core.export.softmax import softmax_csv, softmax_json, softmax_markdown

        self._require_sound()
        asked, sides = relevant(self.worked.parameters), self.worked.sides
        if kind == "markdown":
            return softmax_markdown(self.handful, asked, sides, self.glyphs.say)
        return (softmax_json if kind == "json" else softmax_csv)(self.handful, asked, sides)

    def command(self) -> str:
        self._require_sound()
        words, usual = ["attn-tui", "softmax"], Handful()
        if self.handful.scores != usual.scores:
            words.append(f"--scores={scores_text(self.handful.scores)}")
        for name in ("temperature", "shift"):
            value, field = getattr(self.handful, name), HANDFUL_FIELD[name]
            if value != getattr(usual, name):
                words += [field.option, field.format(value)]
        return in_shell([*words, *parameter_options(relevant(self.worked.parameters))])

    def _require_sound(self) -> None:
        if self.editing.objection:
            raise InputError(f"{self.editing.objection}.")

    # Which score, and what it is

    def on_click(self, event: events.Click) -> None:
        at = self.text.score_at(event.y) if event.widget is self.text else None
        if at is not None and self.editing.draft is None:
            self.action_move(at - self.editing.at)

    def action_move(self, step: int) -> None:
        if self.editing.draft is not None:
            self.action_typed("right" if step > 0 else "left")
        else:
            at = min(max(self.editing.at + step, 0), len(self.handful.scores) - 1)
            self._touched = _SCORE
            self._show(Editing(at))

    def action_step(self, direction: Literal[-1, 1]) -> None:
        self._step(direction)

    def action_fine(self, direction: Literal[-1, 1]) -> None:
        self._step(direction, fine=True)

    def action_type(self, character: str) -> None:
        draft = self.editing.draft
        if draft is None and character == "e":  # no number begins with it: it exports, as it does elsewhere
            raise SkipAction
        self._try(Draft.of(character) if draft is None else draft.typed(character))

    def action_typed(self, key: str) -> None:
        """Move or erase within what is being typed; Backspace begins with the score as it is."""
        draft = self.editing.draft
        if draft is None and key == "backspace":
            draft = Draft.of(_SCORE.format(self._score))
        changed = None if draft is None else edited(draft, key)
        if changed is not None:
            self._try(changed)

    def action_enter(self) -> None:
        """Begin to edit the score; or end that, unless what has been typed is not accepted."""
        if self.editing.draft is None:
            self._try(Draft.of(_SCORE.format(self._score)))
        elif not self.editing.objection:
            self._finish()

    def action_cancel(self) -> None:
        if self.editing.draft is not None:
            self.handful = self._before
            self._finish()

    def action_add(self) -> None:
        at = self.editing.at + 1
        self._change(lambda: self.handful.with_one_more(at), at)

    def action_remove(self) -> None:
        at = self.editing.at
        self._change(lambda: self.handful.without(at), min(at, len(self.handful.scores) - 2))

    def _step(self, direction: Literal[-1, 1], fine: bool = False) -> None:
        self._touched = _SCORE
        self._take(self.handful.with_score(self.editing.at, step_score(self._score, direction, fine)))

    @property
    def _score(self) -> float:
        return self.handful.scores[self.editing.at]

    def _try(self, draft: Draft) -> None:
        """Take what is being typed as far as it is a score: every keystroke counts. Otherwise say why not."""
        at = self.editing.at
        if self.editing.draft is None:
            self._before = self.handful
        self._touched = _SCORE
        try:
            self.handful = self.handful.with_score(at, float(_SCORE.parse(draft.text)))
        except ParameterError as error:
            self._show(Editing(at, draft, str(error)))
        else:
            self.editing = Editing(at, draft)
            self._work_out()

    # What is done to all of them

    def action_change(self, name: str, direction: Literal[-1, 1], step: float | None = None) -> None:
        """Step the temperature or the shift."""
        self._touched = HANDFUL_FIELD[name]
        self._take(self.handful.stepped(name, direction, step))

    def action_reset(self) -> None:
        self.editing = Editing(0)
        self._take(Handful())

    def action_ask(self, name: str, direction: Literal[-1, 1]) -> None:
        """Step a parameter that the Lab has too."""
        self._touched = FIELD[name]
        self._set_parameter(name, FIELD[name].stepped(getattr(self.parameters, name), direction))

    def action_width(self, direction: int) -> None:
        self._touched = FIELD["d_k"]
        self._set_parameter("d_k", next_width(self.parameters.d_k, direction))

    def action_read(self, lines: int) -> None:
        self.text.scroll_by(lines)

    def _set_parameter(self, name: str, value: Value) -> None:
        self.parameters = self.parameters.with_value(name, value)
        self._finish()
        self.post_message(ParametersChanged(self.parameters, self.NAME))

    def _change(self, changed: Callable[[], Handful], at: int) -> None:
        """Take what a change makes, with the cursor there; or say why it cannot be."""
        self._touched = _SCORE
        try:
            self.handful = changed()
        except ParameterError as error:
            self._show(Editing(self.editing.at, note=str(error)))
        else:
            self.editing = Editing(at)
            self._work_out()

    def _take(self, handful: Handful) -> None:
        self.handful = handful
        self._finish()

    def _finish(self) -> None:
        """No longer typing; the last accepted score stands."""
        self.editing = Editing(self.editing.at)
        self._work_out()

    def _work_out(self) -> None:
        """Compute everything: a few microseconds for a handful of scores."""
        from ...core.attention.steps import steps

        parameters, remarks = self.parameters, list[str]()
        try:
            multiplier = multiplier_of(parameters)
        except ParameterError as error:
            parameters = parameters.with_value("scale", "sqrt_d_k")
            multiplier = multiplier_of(parameters)
            remarks.append(f"{str(error).removesuffix('; choose another')}: 1/√d_k stands in.")
        if parameters.softcap or parameters.sink != "none":
            remarks.append("The Lab's soft-cap and sink are left out here.")
        sides = [steps(self.handful, c, parameters.precision) for c in (1.0, multiplier)]
        self.worked = Worked(self.handful, parameters, (sides[0], sides[1]), " ".join(remarks))
        self._show(self.editing)

    def _show(self, editing: Editing) -> None:
        self.editing = editing
        self.text.show(self.worked, editing)
        if self.is_running:
            self.post_message(StatusChanged())
