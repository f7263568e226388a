"""The Sweep pane: a statistic over d_k or keys, exact and measured, with a cursor on it; and its map over both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ....core.field import next_of
from ....core.message import joined, message
from ....core.parameters import FIELD
from ....core.questions.lab import Measure, Report
from ....core.questions.request import Failed, Progress, Request
from ....core.questions.sweep import SweepQuestion
from ....core.statistics.catalogue import ALWAYS, STATISTIC, Statistic
from ...compute.measure import Place
from ...views.bars import Key
from ...views.results.table import with_theory
from ...widgets.bars import Paragraph
from ..lists import choose_of, choose_rules, choose_statistic
from ..pane import Host
from ..stepping import TypingPane, stepping_keys
from .curve_view import MOST_OTHERS, SweepPlot, contents_of, reading_lines
from .parts import CurvePart, MapPart
from .requests import GRIDS, GridRange, at_any
from .width_table import WidthTable

if TYPE_CHECKING:
    from ....core.tables.lab import SweepResult

View: TypeAlias = Literal["plot", "table", "map"]
VIEWS: tuple[View, ...] = ("plot", "table", "map")  # in the order of v
_NEXT_VIEW: tuple[Key, ...] = (("v", "table"), ("v", "map"), ("v", "rules"))  # from each of them

_LOWEST = 8  # lines of the plot from which the definition is shown

_MOVES: dict[str, tuple[Key, ...]] = {
    "d_k": (("←→ ↑↓", "d_k"),),
    "n_keys": (("←→ ↑↓", "keys"),),
    "map": (("←→", "d_k ×2 ÷2"), ("↑↓", "keys ×2 ÷2")),
}
_SHOWN: tuple[Key, ...] = (("m", "statistic"),)
_CURVES: tuple[Key, ...] = (("i", "rules"),)
_REST: tuple[Key, ...] = (
    ("Enter", "Lab"), ("g", "range"), ("?", "help"), ("q", "quit"), (">", "next tab"), ("0-9", "type"),
    ("s", "scale"), ("a", "against"), ("[ ]", "keys"), ("c", "law"), ("x", "mask"), ("r", "redraw"), ("z", "axis"),
)  # fmt: skip


class SweepPane(TypingPane):
    """The plot, the definition of its statistic, and the table; or the map over d_k and keys.

    While the pane is hidden, nothing is computed.
    """

    NAME = "Sweep"
    KEYS: ClassVar[tuple[Key, ...]] = (*_MOVES["d_k"], *_SHOWN, _NEXT_VIEW[0], *_CURVES, *_REST)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(1)", "d_k or keys + 1; on the map, d_k × 2", id="sweep.more"),
        Binding("left,h", "move(-1)", "d_k or keys - 1; on the map, d_k ÷ 2", id="sweep.less"),
        Binding("up,k", "jump(1)", "d_k or keys to the next power of two", id="sweep.double"),
        Binding("down,j", "jump(-1)", "d_k or keys to the previous power of two", id="sweep.halve"),
        Binding("m,slash", "find", "choose the statistic", id="sweep.find"),
        Binding("M", "statistic", "next statistic", id="sweep.next_statistic"),
        Binding("g", "range", "choose the range of d_k or keys", id="sweep.range"),
        Binding("G", "grid", "next range of d_k or keys", id="sweep.next_grid"),
        Binding("i", "rules", "choose scale rules to show beside A and B", id="sweep.rules"),
        Binding("z", "axis", "switch between logarithmic and linear axis", id="sweep.axis"),
        Binding("v", "view", "plot, table, map of d_k × keys, rules", id="sweep.view"),
        *stepping_keys("sweep"),
        *TypingPane.TYPING,
        Binding("enter", "to_lab", "open the Lab with this d_k", id="sweep.to_lab"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.plot = SweepPlot(self._choose)
        self.words = Paragraph()
        self.table = WidthTable(self._choose)
        self.view: View = "plot"
        self.curves = CurvePart(self)
        self.map = MapPart(self, self._go)
        self._stale = False  # whether the sweep shown is for earlier parameters, and dimmed
        self._objection = ""  # why there is no result
        self._partial = ""  # how many draws the reading is from

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self.plot
        yield self.map.widget
        yield self.words
        yield self.table

    # Requests and answers

    def follow(self) -> None:
        """Request the measurement at the cursor and the missing parts of the curves, or of the map."""
        if self.view == "map":
            self.curves.stop()
            self._stale = False
            self.map.follow(self.plot.statistic)
        else:
            self.curves.follow()
            self._stale = self._stale and not self.curves.is_known
        self._read()
        self._arrange()
        self.host.show_keys()

    def _read(self) -> None:
        """Show the result at the cursor, or request it."""
        p = self.parameters
        self._objection, self._partial = self.curves.fault, ""
        point = self.curves.point if self.view != "map" else None
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
            case _, Failed():
                if self._is_wanted(request):
                    self._objection = message("{reason}.", reason=answer.reason)
                    self.curves.failed(request)
            case Measure(), Report():
                self._take(answer)
            case Measure(), Progress():
                if self.plot.reading[0] != self.parameters:
                    self.plot.reading = self.parameters, None
            case _ if self.curves.add(request, answer):
                point = self.curves.point if self.view != "map" else None
                if point is not None:
                    self.plot.reading = self.parameters, contents_of(point)
            case _:
                self.map.add(request, answer, self.plot.statistic)
        known = self.view == "map" or self.curves.is_known
        self._stale = not known or self.is_refused
        self._show()

    def _take(self, answer: Report) -> None:
        """Show the measurement at the cursor, or another one of the same sweep until that is known."""
        at_cursor, known = answer.parameters == self.parameters, self.plot.reading[0] == self.parameters
        over = self.curves.over
        if at_cursor or (not known and at_any(over, answer.parameters) == at_any(over, self.parameters)):
            measured = answer.measurement
            self.plot.reading = answer.parameters, with_theory(answer.measurement, answer.theory)
            self._partial = ""
            if not measured.complete:
                self._partial = message("After {draws} of {asked} draws.", draws=measured.draws, asked=measured.asked)

    def _is_wanted(self, request: Request) -> bool:
        """Return whether a request is for what the pane shows."""
        if isinstance(request, Measure):
            return request.parameters == self.parameters
        return self.map.wants(request) if self.view == "map" else self.curves.wants(request)

    def leave(self) -> None:
        """Stop the sweep; keep its points."""
        super().leave()
        self.curves.stop()
        self.map.leave()

    def on_resize(self) -> None:
        self._arrange()

    def _choose(self, value: int) -> None:
        self.set_value(self.curves.over, value)

    def _go(self, place: Place) -> None:
        """Set d_k and the number of keys."""
        self.leave_field()
        self.set_parameters(replace(self.parameters, d_k=place[0], n_keys=place[1]))

    # Contents

    @property
    def is_current(self) -> bool:
        at_cursor = self.plot.reading[0] == self.parameters
        if self.view == "map":
            return at_cursor and self.map.is_complete(self.plot.statistic)
        return self.curves.is_complete and at_cursor

    @property
    def is_stale(self) -> bool:
        return self._stale or bool(self._objection)

    @property
    def topic(self) -> Statistic:
        return self.plot.statistic

    def _show(self) -> None:
        self.plot.swept = self.table.swept = self.curves.swept
        self.plot.others = self.curves.others
        self.plot.cursor = self.table.cursor = int(getattr(self.parameters, self.curves.swept.over))
        self.table.statistic = self.plot.statistic
        shown = self.map.widget
        shown.mapped, shown.reading = self.map.mapped, self.plot.reading
        shown.statistic, shown.logarithmic = self.plot.statistic, self.plot.logarithmic
        readings = reading_lines(
            *self.plot.reading, self.plot.statistic, self.headline.room_for_words, self.glyphs, None
        )
        self.show_headline(readings)
        if self._objection:
            self.words.show(self.glyphs.say(self._objection), "alert")
        else:
            self.words.show(self.glyphs.say(self._meaning()))
        for widget in (self.plot, self.table, self.map.widget):
            widget.dim(self._stale)

    def _meaning(self) -> str:
        """Return the definition of the statistic, after remarks on what the plot cannot show."""
        statistic, swept = self.plot.statistic, self.curves.swept
        remarks = [self._partial] if self._partial else []
        if self.view == "map":
            return joined([*remarks, statistic.definition])
        at, values = self.plot.cursor, swept.values
        if values and not values[0] <= at <= values[-1]:
            place = joined([FIELD[swept.over].label, f"{at}"])
            remarks.append(
                message(
                    "{place} is outside the range {low} to {high}; g changes the range.",
                    place=place,
                    low=values[0],
                    high=values[-1],
                )
            )
        exact = [*swept.exact.values()][-1:]
        if exact and all(column.values[statistic.name] is None for column in exact[0]):
            remarks.append(message("No exact value is known."))
        return joined([*remarks, statistic.definition])

    def _arrange(self) -> None:
        """Divide the height between the headline, the view and the definition."""
        height = self.size.height - self.headline_height()
        self.plot.headed = self.map.widget.headed = self.headline.display
        self.words.styles.height = min(2, max(height - _LOWEST, 0))
        for widget, view in ((self.plot, "plot"), (self.table, "table"), (self.map.widget, "map")):
            widget.display = self.view == view
        self.host.show_keys()  # they name the next view

    def refuse(self, reason: str) -> None:
        self._objection, self._stale = reason, True
        self._show()

    @property
    def undo_state(self) -> tuple[GridRange, tuple[str, ...], Statistic, View, frozenset[str]]:
        return self.curves.grid, self.curves.rules, self.plot.statistic, self.view, self.plot.other_axis

    def restore_state(self, state: tuple[GridRange, tuple[str, ...], Statistic, View, frozenset[str]]) -> None:
        self.curves.grid, self.curves.rules, self.plot.statistic, self.view, self.plot.other_axis = state

    @property
    def keys(self) -> Sequence[Key]:
        moves = _MOVES["map" if self.view == "map" else self.curves.over]
        return (
            *moves,
            *_SHOWN,
            _NEXT_VIEW[VIEWS.index(self.view)],
            *(() if self.view == "map" else _CURVES),
            *_REST,
        )

    @property
    def typed_field(self) -> str:
        return "d_k" if self.view == "map" else self.curves.over

    # Actions

    def action_statistic(self) -> None:
        self.show_statistic(next_of(ALWAYS, self.plot.statistic).name)

    def action_find(self) -> None:
        """Choose the statistic from a list."""
        choose_statistic(self.host, ALWAYS, self.plot.statistic, self.show_statistic)

    def show_statistic(self, name: str) -> None:  # as the palette does
        self.plot.statistic = STATISTIC[name]
        if self.view == "map":
            self.follow()  # it may have no exact values
        self._show()

    def action_grid(self) -> None:
        """Show the next range."""
        self._show_grid(next_of(GRIDS, self.curves.grid))

    def action_range(self) -> None:
        """Choose the range from a list."""
        grids = [(grid, grid.title) for grid in GRIDS]
        choose_of(self.host, message("range"), grids, self.curves.grid, self._show_grid)

    def _show_grid(self, grid: GridRange) -> None:
        self.curves.grid = grid
        self.follow()

    def action_rules(self) -> None:
        """Choose the scale rules whose curves are shown beside A and B."""
        choose_rules(self.host, self.curves.rules, self._show_rules)

    def _show_rules(self, rules: Sequence[str]) -> None:
        if not self.curves.show_rules(rules):
            self.host.say(message("A plot shows at most {most} rules beside A and B.", most=MOST_OTHERS))
        if not self.plot.display:
            self._turn_to("plot")
        self.follow()

    def action_axis(self) -> None:
        self.plot.other_axis ^= {self.plot.statistic.name}
        self._show()

    @property
    def view_name(self) -> str:
        return "map" if self.view == "map" else "curves"

    def show_view(self, name: str) -> None:
        if name != self.view_name:
            self._turn_to("map" if name == "map" else "plot")

    def action_view(self) -> None:
        """Turn to the next view of the pane, or after the map, of the tab."""
        last = self.view == VIEWS[-1]
        if last:
            self.host.next_view()
        self._turn_to(next_of(VIEWS, self.view))

    def _turn_to(self, view: View) -> None:
        before, self.view = self.view, view
        if before == "map":
            self.map.leave()
        if "map" in (before, self.view):
            self.follow()
        self._arrange()
        self._show()
        self.host.show_keys()
        self.host.show_status()

    def action_move(self, change: Literal[-1, 1]) -> None:
        """Step what is swept by `change`; on the map, go to the next of its columns."""
        if self.view == "map":
            self._go(self.map.stepped(change, 0))
            return
        field = FIELD[self.curves.over]
        self.set_value(field.name, int(min(max(self.curves.at + change, field.low), field.high)))

    def action_jump(self, direction: Literal[-1, 1]) -> None:
        """Step what is swept to the next power of two; on the map, go to the next of its rows."""
        if self.view == "map":
            self._go(self.map.stepped(0, direction))
        else:
            self.set_value(self.curves.over, FIELD[self.curves.over].stepped(self.curves.at, direction))

    def action_to_lab(self) -> None:
        """Accept what is typed, or open the Lab."""
        if self.editing is not None:
            self.action_typed("accept")
            return
        self.host.to_lab(self.parameters)

    # Export and copying

    @property
    def question(self) -> SweepQuestion:
        return self.map.question(self.plot.statistic) if self.view == "map" else self.curves.question

    def figure(self) -> str | None:
        return None if self.view == "map" else self.curves.figure(self.plot.statistic)

    def answered(self) -> SweepResult:
        return self.map.answered(self.plot.statistic) if self.view == "map" else self.curves.answered()
