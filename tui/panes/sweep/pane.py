"""The Sweep pane: a statistic over d_k, exact and measured, with the current d_k as a cursor on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ....core.against import settings
from ....core.errors import InputError, ParameterError
from ....core.grid import parse_grid
from ....core.model_choice import usual_of
from ....core.model_widths import landmarks
from ....core.parameters import Parameters
from ....core.scales import multiplier
from ....core.statistics.catalogue import ALWAYS, STATISTIC, Statistic
from ...compute.measure import Answer, Measure
from ...compute.request import Failed, Progress, Request
from ...views.bars import Key
from ...views.reproduce import SweepQuestion, sweep_line
from ...views.results.table import with_theory
from ...widgets.bars import Paragraph
from ..pane import Host
from ..stepping import PAGES, TypingPane, choose_statistic, stepping_keys
from .grids import GRIDS, Grid
from .map_part import MapPart
from .map_requests import Place
from .map_widget import PlaceChosen
from .requests import Curves, MeasureOver, Points, PredictOver
from .view import Swept, contents_of
from .widget import Chosen, SweepPlot, WidthTable

if TYPE_CHECKING:
    from ....core.export.formats import Format

View: TypeAlias = Literal["both", "plot", "table", "map"]
VIEWS: tuple[View, ...] = ("both", "plot", "table", "map")

_LOWEST = 8  # lines of the plot from which the definition is shown
_LOW = 14  # lines of the plot from which the table gets up to _FEW
_HIGH = 20  # lines of the plot from which the table gets all it needs
_FEWEST, _FEW = 4, 7  # lines of the table on a small screen


class SweepPane(TypingPane):
    """The plot, the definition of its statistic, and the table; or the map over d_k and keys.

    Measured points are kept while only d_k, the statistic or the grid change. While the pane is hidden, nothing is
    computed.
    """

    NAME = "Sweep"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→", "d_k ±1"), ("↑↓", "×2 ÷2"), ("m", "statistic"), ("/", "list"), ("g", "range"), ("Enter", "Lab"),
        ("?", "help"), ("q", "quit"), (">", "next pane"), ("0-9", "type d_k"), ("s", "scale"), ("a", "A"),
        ("[ ]", "keys"),
        ("c", "law"), ("x", "mask"), ("r", "redraw"), ("z", "axis"), ("v", "view"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "d_k(1)", "d_k + 1", show=False, id="sweep.more"),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False, id="sweep.less"),
        Binding("up,k", "double(1)", "d_k to the next power of two", show=False, id="sweep.double"),
        Binding("down,j", "double(-1)", "d_k to the previous power of two", show=False, id="sweep.halve"),
        Binding("m", "statistic(1)", "next statistic", show=False, id="sweep.next_statistic"),
        Binding("M", "statistic(-1)", "previous statistic", show=False, id="sweep.previous_statistic"),
        Binding("slash", "find", "choose the statistic from a list", show=False, id="sweep.find"),
        Binding("g", "grid(1)", "next range of d_k", show=False, id="sweep.next_grid"),
        Binding("G", "grid(-1)", "previous range of d_k", show=False, id="sweep.previous_grid"),
        Binding("z", "axis", "switch between logarithmic and linear axis", show=False, id="sweep.axis"),
        Binding(
            "v", "view", "switch between plot and table, plot, table, map of d_k × keys", show=False, id="sweep.view"
        ),
        *stepping_keys("sweep", also=PAGES),
        *TypingPane.TYPING,
        Binding("enter", "to_lab", "open the Lab with this d_k", show=False, id="sweep.to_lab"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.plot = SweepPlot()
        self.words = Paragraph()
        self.table = WidthTable()
        self.grid = GRIDS[0]
        self.view: View = "both"
        self.swept = Swept(_at_any_d_k(host.parameters))  # the sweep shown
        self._sweeps: dict[Grid, Swept] = {}  # for the current parameters, by grid
        self.map = MapPart(self)
        self._measuring: Swept | None = None  # the sweep being measured
        self._stale = False  # whether the sweep shown is for earlier parameters, and dimmed
        self._objection = ""  # why there is no result
        self._partial = ""  # how many draws the reading is from

    def compose(self) -> ComposeResult:
        yield self.plot
        yield self.map.widget
        yield self.words
        yield self.table

    # Requests and answers

    def follow(self) -> None:
        """Request the measurement at the cursor and the missing parts of the sweep, or of the map."""
        if self.view == "map":
            self._measure_only(None)
            self._stale = False
            self.map.follow(self.plot.statistic)
            self._read()
            self._arrange()
            return
        parameters = _at_any_d_k(self.parameters)
        if any(swept.parameters != parameters for swept in self._sweeps.values()):
            self._sweeps.clear()
        if self.grid not in self._sweeps:
            self._sweeps[self.grid] = Swept(parameters, self._d_ks())
        wanted = self._sweeps[self.grid]
        if wanted.exact or wanted.points:
            self.swept, self._stale = wanted, False
        if not wanted.exact and wanted.d_ks:
            self.ask(PredictOver(parameters, wanted.d_ks))
        self._measure_only(None if wanted.complete else wanted)
        self._read()
        self._arrange()

    def _measure_only(self, wanted: Swept | None) -> None:
        """Measure the points of a sweep, and stop measuring another one."""
        if wanted is self._measuring:
            return
        self._measuring = wanted
        self.show_progress(None)
        if wanted is None:
            self.host.engine.withdraw(MeasureOver)
        else:
            self.ask(MeasureOver(wanted.parameters, wanted.d_ks, len(wanted.points)))

    def _read(self) -> None:
        """Show the result at the cursor, or request it."""
        p = self.parameters
        self._objection, self._partial = _fault(p, p.d_k), ""
        swept = self._sweeps.get(self.grid)
        point = swept.points.get(p.d_k) if swept is not None and self.view != "map" else None
        answer = self.host.engine.cached(p)
        if point is not None:
            self.plot.reading = p, contents_of(point)
        elif answer is not None:
            self.plot.reading = p, with_theory(answer.measurement, answer.theory)
        elif self._objection:
            self.plot.reading = p, None
        else:
            self.ask(Measure(p))
        self._show()

    def show_answer(self, request: Request, answer: object) -> None:
        match request, answer:
            case _, Answer():
                at_cursor, known = answer.parameters == self.parameters, self.plot.reading[0] == self.parameters
                if at_cursor or (not known and _at_any_d_k(answer.parameters) == _at_any_d_k(self.parameters)):
                    measured = answer.measurement
                    self.plot.reading = answer.parameters, with_theory(answer.measurement, answer.theory)
                    self._partial = "" if measured.complete else f"After {measured.draws} of {measured.asked} draws."
            case PredictOver(), Curves():
                self._find(request.parameters, request.d_ks).exact = answer.exact
            case MeasureOver(), Points():
                self._add(request, answer)
            case _, Progress():
                if self.plot.reading[0] != self.parameters:
                    self.plot.reading = self.parameters, None
            case _, Failed() if self._is_wanted(request):
                self._objection = f"{answer.reason}."
                self.show_progress(None)
                if isinstance(request, MeasureOver):
                    self._measuring = None  # so that the next key requests it again
            case _:
                self.map.add(request, answer, self.plot.statistic)
        known = self.swept.parameters == _at_any_d_k(self.parameters) or self.view == "map"
        self._stale = not known or self.is_refused
        self._show()

    def _is_wanted(self, request: Request) -> bool:
        """Return whether a request is for the current parameters and grid."""
        wanted = self._sweeps.get(self.grid) or self.swept
        match request:
            case Measure(parameters):
                return parameters == self.parameters
            case MeasureOver(parameters, d_ks) | PredictOver(parameters, d_ks):
                return (parameters, d_ks) == (wanted.parameters, wanted.d_ks)
            case _:
                return self.view == "map" and self.map.wants(request)

    def _add(self, request: MeasureOver, new: Points) -> None:
        swept = self._find(request.parameters, request.d_ks)
        swept.points.update(new.points)
        if swept is self._measuring:
            self.show_progress(None if new.fraction == 1 else new.fraction)
        here = new.points.get(self.parameters.d_k)
        if here is not None and swept is self._sweeps.get(self.grid):
            self.plot.reading = self.parameters, contents_of(here)

    def _find(self, parameters: Parameters, d_ks: tuple[int, ...]) -> Swept:
        """Return the sweep with these parameters and d_k; if it is the current one, show it from now on."""
        for grid, swept in self._sweeps.items():
            if (swept.parameters, swept.d_ks) == (parameters, d_ks):
                if grid is self.grid:
                    self.swept = swept
                return swept
        return Swept(parameters, d_ks)

    def leave(self) -> None:
        """Stop the sweep; keep its points."""
        super().leave()
        self._measure_only(None)
        self.map.leave()

    def on_resize(self) -> None:
        self._arrange()

    def on_chosen(self, event: Chosen) -> None:
        event.stop()
        self.set_value("d_k", event.d_k)

    def on_place_chosen(self, event: PlaceChosen) -> None:
        event.stop()
        self._go(event.place)

    def _go(self, place: Place) -> None:
        """Set d_k and the number of keys."""
        self.set_parameters(replace(self.parameters, d_k=place[0], n_keys=place[1]))

    # Contents

    @property
    def is_current(self) -> bool:
        at_cursor = self.plot.reading[0] == self.parameters
        if self.view == "map":
            return at_cursor and self.map.is_complete(self.plot.statistic)
        return self.swept is self._sweeps.get(self.grid) and self.swept.complete and at_cursor

    @property
    def is_stale(self) -> bool:
        return self._stale or bool(self._objection)

    @property
    def topic(self) -> Statistic:
        return self.plot.statistic

    def _show(self) -> None:
        self.plot.swept = self.table.swept = self.swept
        self.plot.cursor = self.table.cursor = self.parameters.d_k
        self.table.statistic = self.plot.statistic
        self.map.widget.show(self.map.mapped, self.plot.statistic, self.plot.logarithmic, self.plot.reading)
        if self._objection:
            self.words.show(self.glyphs.say(self._objection), "alert")
        else:
            self.words.show(self.glyphs.say(self._meaning()))
        for widget in (self.plot, self.table, self.map.widget):
            widget.redraw()
            widget.dim(self._stale)

    def _meaning(self) -> str:
        """Return the definition of the statistic, after remarks on what the plot cannot show."""
        statistic, grid, d_k = self.plot.statistic, self.swept.d_ks, self.parameters.d_k
        remarks = [self._partial] if self._partial else []
        if self.view == "map":
            return " ".join([*remarks, statistic.definition])
        if grid and not grid[0] <= d_k <= grid[-1]:
            remarks.append(f"d_k {d_k} is outside the range {grid[0]} to {grid[-1]}; g changes the range.")
        if self.swept.exact and not any(
            column.values[statistic.name] is not None for column in next(iter(self.swept.exact.values()))
        ):
            remarks.append("No exact value is known.")
        return " ".join([*remarks, statistic.definition])

    def _arrange(self) -> None:
        """Divide the height: the table gets what the plot does not need."""
        height = self.size.height
        words = min(2, max(height - _LOWEST, 0))
        rows, left = len(landmarks(self._sweeps[self.grid].d_ks if self._sweeps else ())) + 1, height - words
        rows += self.table.gutter.height
        table = min(rows, max(left - _HIGH, min(left - _LOW, _FEW)))
        if self.view != "both" or table < _FEWEST:  # also in a low pane
            table = 0
        self.words.styles.height = words
        self.table.styles.height = left if self.view == "table" else table
        self.table.display = self.view == "table" or table > 0
        self.plot.display = self.view in ("both", "plot")
        self.map.widget.display = self.view == "map"

    def refuse(self, reason: str) -> None:
        self._objection, self._stale = reason, True
        self._show()

    @property
    def kept(self) -> tuple[Grid, Statistic, View, frozenset[str]]:
        return self.grid, self.plot.statistic, self.view, self.plot.other_axis

    def put_back(self, kept: tuple[Grid, Statistic, View, frozenset[str]]) -> None:
        self.grid, self.plot.statistic, self.view, self.plot.other_axis = kept

    # Actions

    def action_statistic(self, direction: int) -> None:
        at = ALWAYS.index(self.plot.statistic) + direction
        self.show_statistic(ALWAYS[at % len(ALWAYS)].name)

    def action_find(self) -> None:
        choose_statistic(self.host, self.plot.statistic.name, self.show_statistic)

    def show_statistic(self, name: str) -> None:  # as the palette does
        self.plot.statistic = STATISTIC[name]
        if self.view == "map":
            self.follow()  # it may have no exact values
        self._show()

    def action_grid(self, direction: int) -> None:
        self.grid = GRIDS[(GRIDS.index(self.grid) + direction) % len(GRIDS)]
        self.follow()

    def action_axis(self) -> None:
        self.plot.other_axis ^= {self.plot.statistic.name}
        self._show()

    def action_view(self) -> None:
        before, self.view = self.view, VIEWS[(VIEWS.index(self.view) + 1) % len(VIEWS)]
        if before == "map":
            self.map.leave()
        if "map" in (before, self.view):
            self.follow()
        self._arrange()
        self._show()

    def action_d_k(self, change: int) -> None:
        """Step d_k by `change`; on the map, to the next of its columns."""
        if self.view == "map":
            self._go(self.map.stepped(change, 0))
        else:
            super().action_d_k(change)

    def action_double(self, direction: Literal[-1, 1]) -> None:
        """Step d_k to the next power of two; on the map, the keys to the next of its rows."""
        if self.view == "map":
            self._go(self.map.stepped(0, direction))
        else:
            super().action_double(direction)

    def action_to_lab(self) -> None:
        """Accept the typed d_k, or open the Lab."""
        if self.editing is not None:
            self.action_typed("accept")
            return
        self.host.to_lab(self.parameters)

    # Export and copying

    def numbers(self, kind: Format) -> str:
        from ....core.export.sweep import SweepResult, sweep_csv, sweep_json, sweep_markdown

        if self.view == "map":
            raise InputError("A map has no export; y copies the command that measures its places.")
        swept = self._sweeps[self.grid]
        if not (swept.d_ks and swept.complete):
            raise InputError(f"{len(swept.points)} of {len(swept.d_ks)} points measured so far.")
        points = [(found.point, found.prediction) for _, found in sorted(swept.points.items())]
        result = SweepResult(swept.parameters, swept.d_ks, points, self._line(kind))
        if kind == "markdown":
            return sweep_markdown(result, self.glyphs.say)
        return (sweep_json if kind == "json" else sweep_csv)(result)

    def command(self) -> str:
        return self._line("table")

    def _line(self, kind: Format | Literal["table"]) -> str:
        """Return the command that prints this sweep in a format, or what the map shows."""
        if self.view == "map":
            return self.map.command(self.plot.statistic)
        d_ks = self._d_ks()
        grid = self.grid.text if d_ks == self._whole_grid() else ",".join(map(str, d_ks))
        return sweep_line(SweepQuestion(_at_any_d_k(self.parameters), grid), kind, self.glyphs.ascii)

    def _whole_grid(self) -> tuple[int, ...]:
        return parse_grid(self.grid.text)

    def _d_ks(self) -> tuple[int, ...]:
        """Return the d_k of the grid at which the rule has a multiplier."""
        return tuple(d_k for d_k in self._whole_grid() if not _fault(self.parameters, d_k))


def _at_any_d_k(parameters: Parameters) -> Parameters:
    """Return the parameters that a sweep depends on: all but d_k."""
    return replace(parameters, d_k=usual_of(parameters).d_k)


def _fault(parameters: Parameters, d_k: int) -> str:
    """Return why a scale rule has no multiplier at this d_k; empty if both have one."""
    try:
        for each in settings(parameters):
            multiplier(each.scale, replace(each.setting, d_k=d_k))
    except ParameterError as error:
        return f"{error}."
    return ""
