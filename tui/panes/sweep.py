"""The Sweep pane: a statistic over d_k, exact and measured, with the current d_k as a cursor on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.attention.scales import Setting, multiplier
from ...core.errors import InputError
from ...core.landmarks import MODEL_WIDTHS, landmarks
from ...core.parameters import ParameterError, Parameters
from ...core.statistics.catalogue import ALWAYS, Statistic
from .. import work
from ..messages import (
    CurvesReady,
    Failed,
    MeasurementReady,
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
from .following import FollowingPane

if TYPE_CHECKING:
    from ...core.export.formats import Format

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

View: TypeAlias = Literal["both", "plot", "table"]
VIEWS: tuple[View, ...] = ("both", "plot", "table")

_LOWEST = 8  # lines of the smallest plot with its readings
_LOW = 14  # of one that leaves a few lines to the table
_HIGH = 22  # of one that leaves the table all the lines that it wants
_FEWEST, _FEW = 4, 7  # lines of the table on a small screen
_SOON = 0.3  # seconds that the curves of another question may stay on screen as if they were this one's


class SweepPane(FollowingPane):
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
        self.swept = Swept(_question(parameters))  # what is shown
        self._here = work.Lab()
        self._question: Parameters | None = None  # what all sweeps are of
        self._sweeps: dict[Grid, tuple[work.Sweep, Swept]] = {}
        self._current: work.Sweep | None = None  # what is asked for
        self._at_work: work.Sweep | None = None  # what has not got all its points and is being measured
        self._read_of = parameters  # what the reading is of
        self._objection = self._early = ""

    def compose(self) -> ComposeResult:
        yield self.plot
        yield self.words
        yield self.table

    @property
    def topic(self) -> Statistic:
        return self.plot.statistic

    # What it is told

    def on_hide(self) -> None:
        """Out of sight nothing is computed; what has been measured is kept."""
        self._here = work.Lab()  # without what it has drawn
        self._run(None)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    # What it asks for, and what comes of that

    def _ask(self) -> None:
        """Ask for what these parameters lead to at the cursor, and for what is missing of the sweep."""
        question = _question(self.parameters)
        if question != self._question:
            self._question = question
            self._sweeps = {}
        if self.grid not in self._sweeps:
            d_ks = self._d_ks()
            self._sweeps[self.grid] = work.Sweep(question, d_ks), Swept(question, d_ks)
        sweep, swept = self._sweeps[self.grid]
        if sweep is not self._current:
            self._current = sweep
            self._arrange()
            if swept.exact:
                self.swept = swept
            elif swept.d_ks:
                self.recompute.request("curves", sweep.predict)
                self.set_timer(_SOON, self._doubt)
        self._run(None if swept.complete else sweep)
        self._read()

    def _run(self, sweep: work.Sweep | None) -> None:
        """Go on with this sweep and with no other."""
        if sweep is not self._at_work:
            self._at_work = sweep
            self.recompute.request("sweep", sweep.measure if sweep else work.nothing)
            self.say_progress(None)

    def _read(self) -> None:
        """Find what has been measured at the cursor, or have it measured."""
        p = self.parameters
        self._objection, self._early = _fault(p, p.d_k), ""
        known = self.swept.points.get(p.d_k) if self.swept.question == _question(p) else None
        if known is not None:
            self._show_reading(p, known.contents)
        elif not self._objection:
            self.recompute.request("lab", partial(self._here.measure, p))
        self._show()

    def on_measurement_ready(self, message: MeasurementReady) -> None:
        measured, theory = message.measurement, message.theory
        if _question(measured.subject) != self._question:
            return
        contents = Contents(measured.columns)
        if theory is not None:
            contents = Contents(measured.columns, theory.prediction.columns, theory.deviations)
        elif measured.complete:
            self.recompute.request("theory", partial(self._here.predict, measured))
        self._show_reading(measured.subject, contents)
        self._early = "" if measured.complete else f"After {measured.draws} of {measured.asked} draws."
        self._show()

    def on_curves_ready(self, message: CurvesReady) -> None:
        swept = self._part_of(message.sweep)
        swept.exact = message.exact
        self._show_soon()

    def on_sweep_part(self, message: SweepPart) -> None:
        swept = self._part_of(message.sweep)
        swept.points.update(message.points)
        if message.sweep is self._at_work:
            self.say_progress(None if message.fraction == 1 else message.fraction)
        here = message.points.get(self.parameters.d_k)
        if message.sweep is self._current and here is not None:
            self._show_reading(self.parameters, here.contents)
        self._show_soon()

    def _part_of(self, sweep: work.Sweep) -> Swept:
        """What is known of a sweep; from now on it is what is shown, if it is what is asked for."""
        found = next((swept for other, swept in self._sweeps.values() if other is sweep), Swept(sweep.question))
        if sweep is self._current:
            self.swept = found
        return found

    def on_progress(self, message: Progress) -> None:
        """It takes its time at the cursor."""
        if self._read_of != self.parameters:
            self._show_reading(self.parameters, None)
            self._show()

    def _show_reading(self, parameters: Parameters, contents: Contents | None) -> None:
        """Show this as what is at the cursor, or that it is being measured."""
        self._read_of = parameters
        self.plot.reading = parameters.d_k, contents

    def on_failed(self, message: Failed) -> None:
        self._objection = f"{message.reason}."
        self.say_progress(None)
        self._show()

    def on_sweep_plot_pointed(self, event: SweepPlot.Pointed) -> None:
        event.stop()
        self._change(self.parameters.with_value("d_k", event.d_k))

    def _show(self) -> None:
        self.plot.swept = self.table.swept = self.swept
        self.plot.cursor = self.table.cursor = self.parameters.d_k
        self.table.statistic = self.plot.statistic
        if self._objection:
            self.words.show(self.glyphs.say(self._objection), "alert")
        else:
            self.words.show(self.glyphs.say(self._meaning()))
        self.plot.redraw()
        self.table.redraw()

        if self.swept.question == self._question:
            self._dim(False)

    def _doubt(self) -> None:
        """What is on screen stands back unless it has become what is asked for."""
        self._dim(self.swept.question != self._question)

    def _dim(self, stale: bool) -> None:
        for widget in (self.plot, self.table):
            widget.stand_back(stale)

    def _meaning(self) -> str:
        """What the statistic is, after what the plot cannot show."""
        statistic, grid, d_k = self.plot.statistic, self.swept.d_ks, self.parameters.d_k
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
        rows, left = len(landmarks(self._current.d_ks if self._current else ())) + 1, height - words
        table = min(rows, max(left - _HIGH, min(left - _LOW, _FEW)))
        if self.view != "both" or table < _FEWEST:
            table = 0
        self.words.styles.height = words
        self.table.styles.height = left if self.view == "table" else table
        self.table.display = self.view == "table" or table > 0
        self.plot.display = self.view != "table"

    # What people do

    def action_statistic(self, direction: int) -> None:
        at = ALWAYS.index(self.plot.statistic) + direction
        self.plot.statistic = ALWAYS[at % len(ALWAYS)]
        self._show()

    def action_grid(self, direction: int) -> None:
        self.grid = GRIDS[(GRIDS.index(self.grid) + direction) % len(GRIDS)]
        self._ask()

    def action_axis(self) -> None:
        self.plot.other_axis ^= {self.plot.statistic.name}
        self._show()

    def action_view(self) -> None:
        self.view = VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        self._arrange()

    def action_to_lab(self) -> None:
        self.post_message(ToLab(self.parameters))

    def numbers(self, kind: Format) -> str:
        from ...core.export.sweep import Sweep, sweep_csv, sweep_json, sweep_markdown

        swept = self.swept
        if swept.question != _question(self.parameters) or not (swept.d_ks and swept.complete):
            raise InputError(f"{len(swept.points)} of {len(swept.d_ks) or 'all'} points are there so far.")
        points = [(found.point, found.prediction) for _, found in sorted(swept.points.items())]
        result = Sweep(swept.question, swept.d_ks, points, self._line(kind))
        if kind == "markdown":
            return sweep_markdown(result, self.glyphs.say)
        return (sweep_json if kind == "json" else sweep_csv)(result)

    def command(self) -> str:
        return self._line("table")

    def _line(self, kind: Format | Literal["table"]) -> str:
        """The command that prints this sweep in a format."""
        from ..command import sweep_line
        from ..requests import Output, Sweep

        d_ks = self._d_ks()
        grid = self.grid.text if d_ks == self._whole_grid() else ",".join(map(str, d_ks))
        return sweep_line(Sweep(_question(self.parameters), grid, output=Output(kind)), self.glyphs.ascii)

    def _whole_grid(self) -> tuple[int, ...]:
        from ...core.lab.grid import parse_grid  # loads NumPy

        return parse_grid(self.grid.text)

    def _d_ks(self) -> tuple[int, ...]:
        """The grid, without what has no multiplier under the rule."""
        return tuple(d_k for d_k in self._whole_grid() if not _fault(self.parameters, d_k))


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
