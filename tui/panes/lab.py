"""The Lab: random queries and keys, unscaled beside scaled, recomputed on every key."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical

from ...core.landmarks import next_width
from ...core.parameters import FIELD, Parameters, Value
from ...core.statistics.measurement import Measurement
from ..messages import ParametersEdited
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.sentence import sentence
from ..widgets.bars import Paragraph
from ..widgets.histograms import Histograms
from ..widgets.parameter_panel import ParameterPanel
from ..widgets.statistics_table import StatisticsTable

KEYS: tuple[Key, ...] = (
    ("←→", "d_k ±1"), ("↑↓", "×2 ÷2"), ("0-9", "type it"), ("s", "scale"), ("[ ]", "keys"), ("c", "law"),
    ("x", "mask"), ("r", "redraw"), ("v", "view"), ("Tab", "fields"), (">", "next pane"),
    ("?", "help"), ("q", "quit"),
)  # fmt: skip

_FULL = 24  # lines of the whole table with its headings
_SHORT = 11  # of the rows that a small screen shows
_PAIRS = 8  # of two rows of histograms with the lowest bars


class Lab(Container, can_focus=True):
    """Parameters at the left; the table, what it means, and the histograms at the right."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", show=False),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False),
        Binding("up,k", "step('d_k', 1)", "d_k to the next power of two", show=False),
        Binding("down,j", "step('d_k', -1)", "d_k to the last power of two", show=False),
        Binding("pageup", "width(1)", "next width of a real model", show=False),
        Binding("pagedown", "width(-1)", "last width of a real model", show=False),
        Binding("right_square_bracket", "step('n_keys', 1)", "keys × 2", show=False),
        Binding("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", show=False),
        Binding("s", "step('scale', 1)", "next scale rule", show=False),
        Binding("S", "step('scale', -1)", "last scale rule", show=False),
        Binding("c", "step('components', 1)", "next component law", show=False),
        Binding("x", "step('mask', 1)", "next mask", show=False),
        Binding("r", "step('seed', 1)", "redraw with a new seed", show=False),
        Binding("v", "view", "table and histograms, or one of them", show=False),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(id="lab")
        self.parameters = parameters
        self.glyphs = glyphs
        self.measurement: Measurement[Parameters] | None = None
        self._view: Literal["both", "table", "histograms"] = "both"
        self._remark = ""

    def compose(self) -> ComposeResult:
        yield ParameterPanel()
        with Vertical():
            yield StatisticsTable()
            yield Paragraph()
            yield Histograms()

    def on_mount(self) -> None:
        self.panel = self.query_one(ParameterPanel)
        self.table = self.query_one(StatisticsTable)
        self.words = self.query_one(Paragraph)
        self.histograms = self.query_one(Histograms)
        self.panel.show(self.parameters)

    def show_parameters(self, parameters: Parameters) -> None:
        """These are asked for now; their measurement is on its way."""
        self.parameters = parameters
        self.panel.show(parameters)

    def show_measurement(self, measurement: Measurement[Parameters]) -> None:
        """Show a measurement; it is current when it is complete and of the parameters asked for."""
        self.measurement = measurement
        self._remark = ""
        if not measurement.complete:
            self._remark = f"After {measurement.draws} of {measurement.asked} draws: "
        self._show(dimmed=False)

    def show_stale(self, reason: str) -> None:
        """What is on screen is not what is asked for, and why."""
        self._remark = reason
        self._show(dimmed=True)

    def _show(self, dimmed: bool) -> None:
        for widget in (self.table, self.histograms):
            if widget.dimmed != dimmed:
                widget.dimmed = dimmed
                widget.refresh()
        if self.measurement is not None:
            self.table.show(self.measurement.columns)
            self.histograms.show(self.measurement.columns)
        self._say(dimmed)

    def _say(self, dimmed: bool) -> None:
        """The line under the table: an objection, the meaning of a row, or of the whole table."""
        statistic = self.table.statistic
        if dimmed:
            of = f" The numbers shown are for d_k {self.measurement.subject.d_k}." if self.measurement else ""
            self.words.show(self.glyphs.say(self._remark + of), "alert")
        elif statistic is not None:
            text = f"{statistic.label}: {statistic.formula}. {statistic.definition} Source: {statistic.source}."
            self.words.show(self.glyphs.say(text), "text")
        elif self.measurement is not None:
            self.words.show(self._remark + sentence(self.measurement.columns, self.glyphs), "text")

    def on_statistics_table_described(self, event: StatisticsTable.Described) -> None:
        event.stop()
        self._say(self.table.dimmed)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange(event.size.width, event.size.height)

    def _arrange(self, width: int, height: int) -> None:
        """Give each part its lines: the whole table if histograms still fit, else its telling rows."""
        words = 3 if width < 100 else 2
        table = _FULL if height >= _FULL + words + _PAIRS else _SHORT
        if self._view == "table":
            table = height - words
        elif self._view == "histograms":
            table = 0
        self.table.styles.height = min(table, height)
        self.words.styles.height = words
        self.table.display = table > 0
        self.histograms.display = self._view != "table"

    def on_key(self, event: events.Key) -> None:
        """Digits typed anywhere set d_k."""
        if event.character is not None and event.character in "0123456789":
            self.panel.type_into("d_k", event.character)
        elif self.panel.editing is not None and event.key in ("backspace", "enter", "escape"):
            {
                "backspace": self.panel.action_erase,
                "enter": self.panel.action_accept,
                "escape": self.panel.action_cancel,
            }[event.key]()
        else:
            return
        event.stop()

    def action_d_k(self, change: int) -> None:
        d_k = self.parameters.d_k + change
        if FIELD["d_k"].low <= d_k <= FIELD["d_k"].high:
            self._ask("d_k", d_k)

    def action_width(self, direction: int) -> None:
        self._ask("d_k", next_width(self.parameters.d_k, direction))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        field = FIELD[name]
        value = getattr(self.parameters, name)
        self._ask(name, field.low if name == "seed" and value == field.high else field.stepped(value, direction))

    def action_view(self) -> None:
        views: tuple[Literal["both", "table", "histograms"], ...] = ("both", "table", "histograms")
        self._view = views[(views.index(self._view) + 1) % len(views)]
        self._arrange(*self.size)

    def _ask(self, name: str, value: Value) -> None:
        self.panel.finish()
        self.post_message(ParametersEdited(self.parameters.with_value(name, value)))
