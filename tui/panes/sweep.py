"""The Sweep pane: a statistic over d_k, exact and measured, with the current d_k as a cursor on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.attention.scales import Setting, multiplier
from ...core.landmarks import MODEL_WIDTHS, next_width
from ...core.parameters import FIELD, ParameterError, Parameters
from ...core.statistics.catalogue import STATISTICS, Statistic
from .. import work
from ..messages import (
    CurvesReady,
    Failed,
    MeasurementReady,
    ParametersChanged,
    Progress,
    SweepPart,
    ToLab,
)
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.sweep import Swept
from ..views.table import Contents
from ..widgets.bars import Paragraph
from ..widgets.sweep import LandmarkTable, SweepPlot
from .pane import Pane

_WIDTHS = ",".join(map(str, MODEL_WIDTHS))


@dataclass(frozen=True)
class Grid:
    """One choice of d_k, written as the command line takes it."""

    words: str
    text: str


GRIDS = (
    Grid("to 4096", f"1:4096:log24,{_WIDTHS},1024,2048"),
    Grid("to 512", f"1:512:log20,{_WIDTHS.removesuffix(',576')}"),
    Grid("every one to 512", "1:512"),
    Grid("to 16384", f"1:16384:log28,{_WIDTHS},1024,2048,4096,8192"),
)
_SMOOTH = 120  # steps of an exact curve

View: TypeAlias = Literal["both", "plot", "table"]
VIEWS: tuple[View, ...] = ("both", "plot", "table")

_LOWEST = 8  # lines of the smallest plot with its readings
_LOW = 14  # of one that leaves a few lines to the table
_HIGH = 22  # of one that leaves the table all the lines that it wants
_FEWEST, _FEW = 4, 7  # lines of the table on a small screen


class SweepPane(Pane):
    """The plot, what its statistic means, and the table.

    What has been measured stays as long as only d_k, the statistic or the grid change: only what is missing is
    asked for. While the pane is hidden nothing is computed.
    """

    NAME = "Sweep"
    WORK = ("lab", "theory", "curves", "sweep")  # at the cursor first
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "d_k ±1"), ("↑↓", "×2 ÷2"), ("m", "statistic"), ("g", "grid"), ("Enter", "Lab"), ("?", "help"),
        ("q", "quit"), (">", "next pane"), ("s", "scale"), ("[ ]", "keys"), ("c", "law"), ("x", "mask"),
        ("r", "redraw"), ("a", "axis"), ("v", "view"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", show=False, id="sweep.more"),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False, id="sweep.less"),
        Binding("up,k", "step('d_k', 1)", "d_k to the next power of two", show=False, id="sweep.double"),
        Binding("down,j", "step('d_k', -1)", "d_k to the previous power of two", show=False, id="sweep.halve"),
        Binding("pageup", "width(1)", "next width of a real model", show=False, id="sweep.next_width"),
        Binding("pagedown", "width(-1)", "previous width of a real model", show=False, id="sweep.previous_width"),
        Binding("m", "statistic(1)", "next statistic", show=False, id="sweep.next_statistic"),
        Binding("M", "statistic(-1)", "previous statistic", show=False, id="sweep.previous_statistic"),
        Binding(
            "g", "grid(1)", "other d_k: to 4096, to 512, every one to 512, to 16384", show=False, id="sweep.next_grid"
        ),
        Binding("G", "grid(-1)", "the d_k before those", show=False, id="sweep.previous_grid"),
        Binding("a", "axis", "logarithmic or linear axis", show=False, id="sweep.axis"),
        Binding("v", "view", "plot and table, or one of them", show=False, id="sweep.view"),
        Binding("enter", "to_lab", "to the Lab, at the cursor", show=False, id="sweep.to_lab"),
        Binding("right_square_bracket", "step('n_keys', 1)", "keys × 2", show=False, id="sweep.more_keys"),
        Binding("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", show=False, id="sweep.fewer_keys"),
        Binding("s", "step('scale', 1)", "next scale rule", show=False, id="sweep.next_scale"),
        Binding("S", "step('scale', -1)", "previous scale rule", show=False, id="sweep.previous_scale"),
        Binding("c", "step('components', 1)", "next component law", show=False, id="sweep.next_law"),
        Binding("x", "step('mask', 1)", "next mask", show=False, id="sweep.next_mask"),
        Binding("r", "step('seed', 1)", "redraw with a new seed", show=False, id="sweep.redraw"),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(parameters, glyphs)
        self.plot = SweepPlot()
        self.words = Paragraph()
        self.table = LandmarkTable()
        self.grid = GRIDS[0]
        self.view: View = "both"
        self.swept = Swept(parameters)
        self._here = work.Lab()
        self._asked: tuple[Parameters, Grid] | None = None  # what is being swept, or has been
        self._objection = self._early = ""
        self._due = False  # whether it is going to be shown what has come

    def compose(self) -> ComposeResult:
        yield self.plot
        yield self.words
        yield self.table

    @property
    def topic(self) -> Statistic:
        return self.plot.statistic

    # What it is told

    def follow(self, parameters: Parameters) -> None:
        super().follow(parameters)
        self._ask()

    def shown(self) -> None:
        self._ask()

    def on_show(self) -> None:
        self._ask()

    def on_hide(self) -> None:
        """Out of sight nothing is computed; what has been measured is kept."""
        self._asked = None
        self._here = work.Lab()  # without what it has drawn
        self._sweep(())

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    # What it asks for, and what comes of that

    def _ask(self) -> None:
        """Ask for what these parameters lead to at the cursor, and for what is missing of the sweep."""
        self._read()
        question = _question(self.parameters)
        if (question, self.grid) == self._asked:
            return
        self._asked = question, self.grid
        grid = self._d_ks()
        if not grid:
            self._sweep(())
            return
        old = self.swept if self.swept.question == question else Swept(question)
        if old is self.swept:
            self.swept = replace(old, grid=grid)
        self.recompute.request("curves", partial(work.predict_curves, question, _smooth(grid)))
        self._sweep([d_k for d_k in grid if d_k not in old.points])
        self._show()

    def _sweep(self, d_ks: Sequence[int]) -> None:
        """Have these measured and nothing else."""
        self.recompute.request("sweep", partial(work.sweep, _question(self.parameters), d_ks))

    def _read(self) -> None:
        """Find what has been measured at the cursor, or have it measured."""
        p = self.parameters
        self._objection, self._early = _fault(p, p.d_k), ""
        if self._objection:
            pass
        elif _question(p) == self.swept.question and p.d_k in self.swept.points:
            self.plot.reading = p.d_k, self.swept.points[p.d_k]
        else:
            self.recompute.request("lab", partial(self._here.measure, p))
        self._show()

    def _begun(self, question: Parameters) -> bool:
        """Whether this is about what is asked for now; if it is the first to be known of that, all else goes."""
        if question != _question(self.parameters):
            return False
        if question != self.swept.question:
            self.swept = Swept(question, self._d_ks())
        return True

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        measured, theory = message.measurement, message.theory
        if not self._begun(_question(measured.subject)):
            return
        contents = Contents(measured.columns)
        if theory is not None:
            contents = Contents(measured.columns, theory.prediction.columns, theory.deviations)
        elif measured.complete:
            self.recompute.request("theory", partial(self._here.predict, measured))
        self.plot.reading = measured.subject.d_k, contents
        self._early = "" if measured.complete else f"After {measured.draws} of {measured.asked} draws."
        self._show()

    def on_curves_ready(self, message: CurvesReady) -> None:
        if self._begun(message.question):
            self.swept.exact = message.exact
            self._show()

    def on_sweep_part(self, message: SweepPart) -> None:
        if self._begun(message.question):
            self.swept.points.update(message.points)
            self.say_progress(None if message.fraction == 1 else message.fraction)
            if self.plot.reading[0] != self.parameters.d_k in message.points:
                self.plot.reading = self.parameters.d_k, message.points[self.parameters.d_k]
            if not self._due:  # parts that have come meanwhile are shown together
                self._due = True
                self.call_later(self._show)

    def on_progress(self, message: Progress) -> None:
        """It takes its time at the cursor."""
        if self.plot.reading[0] != self.parameters.d_k:
            self.plot.reading = self.parameters.d_k, None
            self._show()

    def on_failed(self, message: Failed) -> None:
        self._objection = f"{message.reason}."
        self.say_progress(None)
        self._show()

    def on_sweep_plot_pointed(self, event: SweepPlot.Pointed) -> None:
        event.stop()
        self._change(self.parameters.with_value("d_k", event.d_k))

    def _show(self) -> None:
        self._due = False
        self.plot.swept = self.table.swept = self.swept
        self.plot.cursor = self.table.cursor = self.parameters.d_k
        self.table.statistic = self.plot.statistic
        if self._objection:
            self.words.show(self.glyphs.say(self._objection), "alert")
        else:
            self.words.show(self.glyphs.say(self._meaning()))
        self.plot.redraw()
        self.table.redraw()

    def _meaning(self) -> str:
        """What the statistic is, after what the plot cannot show."""
        statistic, grid, d_k = self.plot.statistic, self.swept.grid, self.parameters.d_k
        remarks = [self._early] if self._early else []
        if grid and not grid[0] <= d_k <= grid[-1]:
            remarks.append(f"d_k {d_k} is outside these {grid[0]} to {grid[-1]}; g chooses others.")
        if self.swept.exact and not any(
            column.values[statistic.name] is not None for column in next(iter(self.swept.exact.values()))
        ):
            remarks.append("No exact value is known here.")
        return " ".join([*remarks, statistic.definition])

    def _arrange(self) -> None:
        """The plot first: the table has what is left once the plot is high enough to be read."""
        height = self.size.height
        words = min(2, max(height - _LOWEST, 0))
        rows, left = len(self.swept.landmarks) + 1, height - words
        table = min(rows, max(left - _HIGH, min(left - _LOW, _FEW)))
        if self.view != "both" or table < _FEWEST:
            table = 0
        self.words.styles.height = words
        self.table.styles.height = left if self.view == "table" else table
        self.table.display = self.view == "table" or table > 0
        self.plot.display = self.view != "table"

    # What people do

    def action_d_k(self, change: int) -> None:
        d_k = self.parameters.d_k + change
        if FIELD["d_k"].low <= d_k <= FIELD["d_k"].high:
            self._change(self.parameters.with_value("d_k", d_k))

    def action_width(self, direction: int) -> None:
        self._change(self.parameters.with_value("d_k", next_width(self.parameters.d_k, direction)))

    def action_step(self, name: str, direction: Literal[-1, 1]) -> None:
        value = FIELD[name].stepped(getattr(self.parameters, name), direction)
        self._change(self.parameters.with_value(name, value))

    def action_statistic(self, direction: int) -> None:
        at = STATISTICS.index(self.plot.statistic) + direction
        self.plot.statistic = STATISTICS[at % len(STATISTICS)]
        self._show()

    def action_grid(self, direction: int) -> None:
        self.grid = GRIDS[(GRIDS.index(self.grid) + direction) % len(GRIDS)]
        self._ask()
        self._arrange()

    def action_axis(self) -> None:
        self.plot.other_axis ^= {self.plot.statistic.name}
        self._show()

    def action_view(self) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self._arrange()

    def action_to_lab(self) -> None:
        self.post_message(ToLab(self.parameters))

    def _change(self, parameters: Parameters) -> None:
        """Go on with these. The next key may come before anybody has answered, and starts from here."""
        if parameters != self.parameters:
            self.parameters = parameters
            self._ask()
            self.post_message(ParametersChanged(parameters, self.NAME))

    def _d_ks(self) -> tuple[int, ...]:
        """The grid, without what has no multiplier under the rule."""
        from ...core.lab.grid import parse_grid  # loads NumPy

        return tuple(d_k for d_k in parse_grid(self.grid.text) if not _fault(self.parameters, d_k))


def _question(parameters: Parameters) -> Parameters:
    """What a sweep depends on: everything but d_k."""
    return replace(parameters, d_k=Parameters.d_k)


def _fault(parameters: Parameters, d_k: int) -> str:
    """Why the scale rule has no multiplier at this d_k; empty where it has one."""
    try:
        multiplier(parameters.scale, replace(Setting.of(parameters), d_k=d_k))
    except ParameterError as error:
        return f"{error}."
    return ""


def _smooth(grid: Sequence[int]) -> list[int]:
    """Enough of the grid's range for a smooth curve, and the landmarks."""
    low, high = grid[0], grid[-1]
    even = {round(low * (high / low) ** (step / _SMOOTH)) for step in range(_SMOOTH + 1)}
    return sorted(even | {d_k for d_k in grid if d_k in MODEL_WIDTHS or d_k.bit_count() == 1})
