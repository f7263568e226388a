"""The Heads pane: the cost of an attention layer, and the d_k that follows from its shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

from textual.binding import Binding, BindingType

from ....core.attention.cost import Cost, LayerShape, cost
from ....core.attention.presets import PRESETS, Preset
from ....core.errors import InputError, ParameterError
from ....core.field import next_of
from ....core.message import message
from ....core.questions.cost import CountCost
from ...views.bars import Key
from ...views.lines import Line
from ...widgets.typing import typing
from ..fields import FieldsPane
from ..lists import choose_one
from ..pane import Host
from .widget import CostText, ShapePanel

UndoState: TypeAlias = tuple[Preset | None, str, Mapping[str, object]]
_STARTS: tuple[Preset | None, ...] = (None, *PRESETS.values())  # None: the default layer, of no model


class HeadsPane(FieldsPane):
    """The shape at the left, its cost at the right."""

    NAME = "Heads"
    LEFT = (18, 30)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "field"), ("←→", "step"), ("0-9", "type"), ("p", "model"), ("Enter", "Lab"),
        ("?", "help"), ("q", "quit"), (">", "next tab"), ("PgUp PgDn", "scroll"), ("v", "view"),
    )  # fmt: skip
    KEYS_OF_CHOICE: ClassVar[tuple[Key, ...]] = tuple(
        ("Enter", "choose") if key == "Enter" else (key, does) for key, does in KEYS
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j,tab", "move(1)", "next field", id="heads.next"),
        Binding("up,k,shift+tab", "move(-1)", "previous field", id="heads.previous"),
        Binding("right,l", "step(1)", "step the field up", id="heads.step_up"),
        Binding("left,h", "step(-1)", "step the field down", id="heads.step_down"),
        Binding("shift+right,L", "fine(1)", "+1", id="heads.more"),
        Binding("shift+left,H", "fine(-1)", "-1", id="heads.less"),
        *typing("0123456789", "type into the field"),
        Binding("backspace", "erase", "erase a digit, or let the field follow others", id="heads.follow"),
        Binding("escape", "cancel", "cancel typing"),
        Binding("R", "reset", "reset the shape", id="heads.reset"),
        Binding("p,slash", "find", "choose the model", id="heads.find"),
        Binding("P", "preset", "next model", id="heads.next_model"),
        Binding("pagedown,space", "read(8)", "scroll down", id="heads.read_on"),
        Binding("pageup", "read(-8)", "scroll up", id="heads.read_back"),
        Binding("v", "view", "switch between shape and cost (narrow screens)", id="heads.view"),
        Binding("enter", "to_lab", "choose from a list, or open the Lab with the shape", id="heads.to_lab"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.preset: Preset | None = None
        self.shape = self.fields = self.left = self.in_front = ShapePanel(self.leave_field, self.changed)
        self.text = self.right = CostText()

    def statuses(self) -> Sequence[Line]:
        try:
            layer = self.shape.as_layer()
        except ParameterError:
            faults = message("impossible shape"), message("invalid")
            return [((self.glyphs.say(fault), "alert"),) for fault in faults]
        kind = self.glyphs.say(layer.kind)
        texts = [f"d_k {layer.width}{self.glyphs.say(' · ')}{kind}", f"d_k {layer.width}"]
        return [((text, "text"),) for text in texts]

    @property
    def keys(self) -> Sequence[Key]:
        return self.KEYS_OF_CHOICE if self.shape.field.kind == "choice" else self.KEYS

    @property
    def question(self) -> CountCost:
        try:
            return CountCost(self.shape.as_layer(), self.preset)
        except ParameterError as error:
            raise InputError("The shape is impossible: {error}.", error=error) from error

    def answered(self) -> Cost:
        return cost(self.question.layer)

    def action_fine(self, direction: Literal[-1, 1]) -> None:
        self.leave_field()
        self.shape.step(direction, fine=True)
        self.show()

    @property
    def undo_state(self) -> UndoState:
        return self.preset, self.shape.cursor, dict(self.shape.values)

    def restore_state(self, state: UndoState) -> None:
        self.preset, self.shape.cursor, values = state
        self.shape.values = dict(values)

    def action_reset(self) -> None:
        self.preset = None
        self.shape.take(LayerShape())
        self.show()

    def action_preset(self) -> None:
        self._start_from(next_of(_STARTS, self.preset))

    def action_find(self) -> None:
        """Choose the model from a list."""
        from ...views.fields.choices import model_choices

        choose_one(self.host, "model", model_choices(), self.preset.name if self.preset else "", self.show_model)

    def show_model(self, name: str) -> None:
        """Show the layer of the model with this name."""
        self._start_from(PRESETS[name])

    def _start_from(self, preset: Preset | None) -> None:
        self.leave_field()
        self.preset = preset
        self.shape.take(preset.layer if preset else LayerShape())
        self.show()

    def action_read(self, lines: int) -> None:
        self.bring(self.text)
        self.text.scroll_by(lines)

    def action_to_lab(self) -> None:
        """Accept the typed value, choose from the list of the field with the cursor, or open the Lab."""
        if self.accept():
            return
        try:
            start = self.parameters
            if self.preset is not None and not self.preset.changed(self.shape.as_layer()):
                start = start.with_value("model", self.preset.name)
            parameters = start.with_value("d_k", self.shape.as_layer().width)
        except ParameterError as error:
            self.shape.objection = message("The Lab cannot show this d_k. {error}", error=error)
        else:
            self.host.to_lab(parameters)

    def show(self) -> None:
        try:
            layer = self.shape.as_layer()
        except ParameterError as error:
            self.shape.objection = self.shape.refusal or str(error)
            self.text.dim(True)
        else:
            self.shape.objection = self.shape.refusal
            self.text.dim(bool(self.shape.refusal))
            self.text.show(cost(layer), self.preset)
        self.host.show_status()
        self.host.show_keys()
