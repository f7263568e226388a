"""The Heads pane: the shape of an attention layer, its cost, and the d_k that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Literal, TypeAlias

from textual.binding import Binding, BindingType

from ....core.attention.cost import SHAPE_FIELDS, Cost, LayerShape, cost
from ....core.attention.formats import FORMATS
from ....core.attention.presets import PRESETS, Preset
from ....core.errors import InputError, ParameterError
from ....core.field import Field, next_of
from ....core.message import message
from ....core.parameters import Value
from ....core.questions.cost import CountCost
from ....core.tables.cost import cost_blocks, variants
from ...language.cells import cells
from ...views.bars import Key
from ...views.fields.panel import field_list_lines
from ...views.glyphs import Glyphs
from ...views.grid import block_lines
from ...views.lines import Line, Role
from ...widgets.field_list import FieldList
from ...widgets.lines import Content, ScrolledLines
from ...widgets.typing import typing
from ..fields import FieldsPane
from ..lists import choose_one
from ..pane import Host

_USE = next(at for at, field in enumerate(SHAPE_FIELDS) if field.group == "use")
ROWS: Sequence[Field | None] = (*SHAPE_FIELDS[:_USE], None, *SHAPE_FIELDS[_USE:])  # None: a blank line


def shape_lines(
    values: dict[str, Value | None],
    followed: dict[str, Value],
    cursor: str,
    objection: str,
    width: int,
    height: int,
    glyphs: Glyphs,
    typed: str | None = None,
) -> list[Line]:
    """Return exactly `height` lines of `width`; a field whose value is None shows the one in `followed`, if any."""
    longest = max(cells(glyphs.say(each.word)) for each in FORMATS.values())
    rows: list[tuple[Field | None, str, Role]] = []
    for row in ROWS:
        if row is None:
            rows.append((None, "", "text"))
            continue
        value = values[row.name]
        shown = followed.get(row.name) if value is None else value
        text = "—" if shown is None else row.format(shown)
        field = row
        if row.name == "cache_format":
            text = FORMATS[str(shown)].word
            if cells(glyphs.say(row.label)) + 1 + longest > width:
                field = replace(row, label=row.symbol)
        rows.append((field, glyphs.say(text), "dim" if value is None else "text"))
    return field_list_lines(rows, cursor, typed, objection, width, height, glyphs)


FOLLOWING = {"kv_heads", "d_k", "d_v"}  # fields that follow from others if they are not set


class ShapePanel(FieldList):
    """Shows and steps the fields of a layer; while they are stepped, the shape may be impossible."""

    TITLE = message("layer")

    objection: Content[str] = Content("")

    def __init__(self, leave: Callable[[], object], changed: Callable[[bool], object]) -> None:
        super().__init__(ROWS, leave, changed)
        self.take(LayerShape())

    def take(self, layer: LayerShape) -> None:
        """Take all values from this layer."""
        self.finish()
        self.values: dict[str, Any] = {field.name: getattr(layer, field.name) for field in fields(layer)}

    @property
    def value(self) -> Any:
        return self.values[self.cursor]

    @value.setter
    def value(self, value: Any) -> None:
        self.values[self.cursor] = value

    def as_layer(self) -> LayerShape:
        """Return the layer with these values; raises ParameterError if they are not valid together."""
        return LayerShape(**self.values)

    @property
    def followed(self) -> dict[str, Value]:
        """The values of the fields in FOLLOWING if they are not set; without d_k if it would not be an integer."""
        d_model, heads = self.values["d_model"], self.values["heads"]
        values: dict[str, Value] = {"kv_heads": heads}
        if d_model % heads == 0:
            values["d_k"] = d_model // heads
        d_k = self.values["d_k"] or values.get("d_k")
        return values if d_k is None else values | {"d_v": d_k}

    def step(self, direction: Literal[-1, 1], fine: bool = False) -> None:
        """Step the field with the cursor as its declaration says; with `fine`, by one instead of doubling."""
        self.finish()
        field = self.field
        value: Any = self.values[field.name]
        if value is None:  # start at the value it follows, or at the integer below
            value = self.followed.get(field.name, max(self.values["d_model"] // self.values["heads"], 1))
        if fine and field.step == "double":
            value = int(min(max(value + direction, field.low), field.high))
        else:
            value = field.stepped(value, direction)
        self.values[field.name] = value

    def erase(self) -> None:
        """Erase a typed character; otherwise unset the field with the cursor, if it can follow from others."""
        if self.editing is None and self.cursor in FOLLOWING:
            self.value = None
        super().erase()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        text = self.editing.text if self.editing else None
        return shape_lines(self.values, self.followed, self.cursor, self.objection, width, height, self.glyphs, text)


class CostText(ScrolledLines):
    """Shows the cost of a layer."""

    TITLE = message("cost")
    DEFAULT_CLASSES = "region"

    cost: Cost | None = None
    preset: Preset | None = None

    def show(self, cost: Cost, preset: Preset | None) -> None:
        """Show this cost, of a layer that may have started from a preset; for another preset, scroll to the top."""
        if preset is not self.preset:
            self.top = 0
        self.cost, self.preset = cost, preset
        self.redraw()

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.cost is None:
            return ()
        blocks = [*cost_blocks(self.cost, self.preset), variants(self.cost, self.preset)]
        return block_lines(blocks, width, self.glyphs)


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
