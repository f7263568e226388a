"""What the Sweep pane knows of its curves, of A, B and other scale rules, and of its map, and what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

from ....core.against import fault_of_settings
from ....core.errors import InputError
from ....core.message import message
from ....core.parameters import Parameters, usual_of
from ....core.questions.lab import Report
from ....core.questions.request import Request
from ....core.questions.sweep import Points, SweepQuestion, SweptPoint
from ....core.statistics.catalogue import Statistic
from ...compute.measure import ExactCells, Place, Predict
from ...views.results.table import TableContents, with_theory
from ..pane import Pane
from .curve_view import MOST_OTHERS, Other, SweepCurve, contents_of, others
from .map_view import D_KS, N_KEYS, MapResults, SweepMap
from .requests import GRIDS, GridRange, MeasureOthers, at_any

if TYPE_CHECKING:
    from ....core.tables.lab import SweepResult


class CurvePart:
    """The sweeps of a pane over its grid, at the pane's parameters.

    Sweeps are kept while only the swept parameter, the scale rule, the grid or the statistic changes. All rules are
    measured together, by one request; exact curves are requested one after the other.
    """

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.grid = GRIDS[0]
        self.rules: tuple[str, ...] = ()  # whose curves are shown beside those of A and B
        self.shown: Sequence[SweepCurve] = [
            SweepCurve(at_any(self.grid.name, pane.parameters))
        ]  # the main sweep first
        self._known: dict[SweepQuestion, Sequence[SweepCurve]] = {}
        self._measuring: Sequence[SweepCurve] | None = None
        self._here: dict[Parameters, Report] = {}  # other rules at the cursor
        self._on_screen = False

    @property
    def over(self) -> str:
        """What is swept: d_k or n_keys."""
        return self.grid.name

    @property
    def at(self) -> int:
        """The place of the cursor."""
        return int(getattr(self.pane.parameters, self.over))

    @property
    def fault(self) -> str:
        """Why some scale rule has no multiplier at the cursor; empty if all have one."""
        reason = next(filter(None, (_fault(p, self.over, self.at) for p in self._questions)), "")
        return reason and message("{reason}.", reason=reason)

    @property
    def point(self) -> SweptPoint | None:
        """The measurement of A and B at the cursor, if the sweep has it."""
        return self.wanted[0].points.get(self.at)

    @property
    def is_known(self) -> bool:
        """Whether the sweep shown is for the pane's parameters, on any grid."""
        return self.swept.parameters == at_any(self.swept.over, self.pane.parameters)

    @property
    def is_complete(self) -> bool:
        """Whether everything is measured, and shown."""
        return self.shown is self.wanted and _complete(self.wanted)

    @property
    def swept(self) -> SweepCurve:
        """The main sweep shown."""
        return self.shown[0]

    @property
    def others(self) -> list[Other]:
        """The curves of other scale rules that are shown."""
        found: list[tuple[SweepCurve, TableContents | None]] = []
        for swept in self.shown[1:]:
            at = int(getattr(self.pane.parameters, swept.over))
            point, answer = swept.points.get(at), self._here.get(self._at_cursor(swept))
            measured = answer and with_theory(answer.measurement, answer.theory)
            found.append((swept, contents_of(point) if point is not None else measured))
        return others(found)

    @property
    def _questions(self) -> tuple[Parameters, ...]:
        """The parameters of each sweep: those of the pane, and with other scale rules."""
        p = at_any(self.over, self.pane.parameters)
        return (p, *(replace(p, scale=rule) for rule in self.rules if rule != p.scale))

    @property
    def wanted(self) -> Sequence[SweepCurve]:
        """The sweeps over the grid at the pane's parameters, the main one first."""
        key = self.question
        if key not in self._known:
            values = _values(self.grid, self._questions)
            alike = (curve for curve in self._every if (curve.values, curve.over) == (values, self.over))
            known = {curve.parameters: curve.exact for curve in alike}
            self._known[key] = [SweepCurve(p, values, known.get(p, {}), over=self.over) for p in self._questions]
        return self._known[key]

    @property
    def _every(self) -> Iterator[SweepCurve]:
        return chain.from_iterable(self._known.values())

    def _at_cursor(self, swept: SweepCurve) -> Parameters:
        return replace(self.pane.parameters, scale=swept.parameters.scale)

    def show_rules(self, rules: Sequence[str]) -> bool:
        """Choose the rules whose curves are shown beside those of A and B; return False if some do not fit.

        B's own rule has a curve already, and takes no place.
        """
        others = [rule for rule in rules if rule != self.pane.parameters.scale]
        self.rules = tuple(others[:MOST_OTHERS])
        return len(others) <= MOST_OTHERS

    # Requests and answers

    def follow(self) -> None:
        """Show what is known of the wanted sweeps, and request the rest."""
        self._on_screen = True
        wanted = self.wanted
        alike = _but_rule(wanted[0])
        self._known = {key: each for key, each in self._known.items() if _but_rule(each[0]) == alike}
        if wanted[0].exact or wanted[0].points:
            self.shown = wanted
        lacking = next((curve for curve in wanted if curve.values and curve.values[-1] not in curve.exact), None)
        if lacking is not None:
            self.pane.ask(lacking.prediction)
        self._measure_only(None if _complete(wanted) else wanted)
        self._read_others(wanted[1:])

    def _read_others(self, swept: Sequence[SweepCurve]) -> None:
        """Request the values of other rules at the cursor if no sweep has them."""
        lacking = [self._at_cursor(curve) for curve in swept if self.at not in curve.points]
        self._here = {p: self._here[p] for p in lacking if p in self._here}
        lacking = [p for p in lacking if p not in self._here]
        if lacking and self.at not in swept[0].values and not self.fault:
            self.pane.ask(MeasureOthers(tuple(lacking)))

    def _measure_only(self, wanted: Sequence[SweepCurve] | None) -> None:
        """Measure the points of some sweeps, and stop measuring others."""
        if wanted is self._measuring:
            return
        self._measuring = wanted
        self.pane.show_progress(None)
        if wanted is None:
            self.pane.host.engine.withdraw(SweepQuestion)
        else:
            self.pane.ask(replace(self.question, known=sum(len(curve.points) for curve in wanted)))

    def add(self, request: Request, answer: object) -> bool:
        """Add an answer, and request what is missing next; return whether it was one for the curves."""
        match request, answer:
            case Predict(), ExactCells(cells) if alike := [
                curve for curve in self._every if curve.predicted_by(request)
            ]:
                for curve in alike:
                    curve.exact = {
                        **curve.exact,
                        **{at[curve.over == "n_keys"]: found for at, found in cells.items()},
                    }
            case SweepQuestion(), Points(points, fraction) if request in self._known:
                found = {curve.parameters.scale: curve for curve in self._known[request]}
                for point in points:
                    p = point.point.parameters
                    swept = found[p.scale]
                    swept.points[int(getattr(p, swept.over))] = point
                if self._known[request] is self._measuring:
                    self.pane.show_progress(None if fraction == 1 else fraction)
            case MeasureOthers(), Report(parameters):
                self._here[parameters] = answer
                return True
            case _:
                return False
        if self._on_screen:
            self.follow()
        return True

    def wants(self, request: Request) -> bool:
        """Return whether a request is for the wanted sweeps."""
        return request == self.question or any(curve.predicted_by(request) for curve in self.wanted)

    def failed(self, request: Request) -> None:
        """Let the next key send a failed request again."""
        self.pane.show_progress(None)
        if isinstance(request, SweepQuestion):
            self._measuring = None

    def stop(self) -> None:
        """Stop the sweeps; keep their points."""
        self._on_screen = False
        self._measure_only(None)

    # Export and copying

    def figure(self, statistic: Statistic) -> str:
        """Return the figure of a statistic."""
        from ...views.results.figure import sweep_figure

        shown = replace(self.answered(), statistics=(statistic.name,))
        return sweep_figure(shown, self.pane.command(), self.pane.glyphs)

    def answered(self) -> SweepResult:
        """Return all points of all curves; raises InputError if some are missing."""
        wanted = self.wanted
        done, asked = sum(len(curve.points) for curve in wanted), sum(len(curve.values) for curve in wanted)
        if not asked or done < asked:
            raise InputError("{done} of {asked} points measured so far.", done=done, asked=asked)
        points = [(found.point, found.prediction) for curve in wanted for _, found in sorted(curve.points.items())]
        return self.question.swept(points)

    @property
    def question(self) -> SweepQuestion:
        """All points of all curves."""
        questions, p = self._questions, self.pane.parameters
        values = _values(self.grid, questions)
        text = self.grid.text if values == self.grid.values else ",".join(map(str, values))
        rules = ("scale", ",".join(question.scale for question in questions)) if len(questions) > 1 else None
        if self.over == "d_k":
            return SweepQuestion(at_any("d_k", p), text, rules)
        return SweepQuestion(at_any("d_k", at_any("n_keys", p)), str(p.d_k), rules, keys=text)


@lru_cache(maxsize=16)
def _values(grid: GridRange, questions: Sequence[Parameters]) -> tuple[int, ...]:
    """Return the values of the grid at which the rules of all questions have a multiplier."""
    return tuple(value for value in grid.values if not any(_fault(p, grid.name, value) for p in questions))


def _fault(parameters: Parameters, over: str, value: int) -> str:
    """Return why a scale rule of A or B has no multiplier at a place; empty if both have one."""
    return fault_of_settings(replace(parameters, **{over: value}))


def _complete(swept: Sequence[SweepCurve]) -> bool:
    """Return whether every point has been measured."""
    return all(curve.complete for curve in swept)


def _but_rule(swept: SweepCurve) -> Parameters:
    """Return the parameters of a sweep without its scale rule."""
    return replace(swept.parameters, scale=Parameters.scale)


class MapPart:
    """The map over d_k and keys of a pane, at the pane's parameters."""

    def __init__(self, pane: Pane, choose: Callable[[Place], object]) -> None:
        self.pane = pane
        self.widget = SweepMap(choose)
        self.mapped = MapResults(_at_any_place(pane.parameters))

    # Requests and answers

    def follow(self, statistic: Statistic) -> None:
        """Request what the map lacks: exact values, or measured ones where none are known."""
        parameters = _at_any_place(self.pane.parameters)
        if self.mapped.parameters != parameters:
            self.mapped = MapResults(parameters)
        if not self.mapped.predicted:
            self.pane.ask(self._prediction)
        elif not self.mapped.d_ks:
            self.mapped.complete = True
        elif not self.is_complete(statistic):
            self.pane.ask(self.mapped.sweep)

    @property
    def _prediction(self) -> Predict:
        return Predict(self.mapped.parameters, D_KS, N_KEYS)

    def is_complete(self, statistic: Statistic) -> bool:
        """Return whether the map has all its values of a statistic."""
        return self.mapped.predicted and (self.mapped.complete or not self.mapped.needs_measuring(statistic))

    def add(self, request: Request, answer: object, statistic: Statistic) -> None:
        """Add the cells of an answer; request measured ones once it is known that they are needed."""
        match request, answer:
            case Predict(), ExactCells(cells) if request == self._prediction:
                self.mapped.exact.update(cells)
                if self.widget.display and self.mapped.predicted:
                    self.follow(statistic)
            case SweepQuestion(), Points(points, fraction) if request == self.mapped.sweep:
                places = ((point.point.parameters, point) for point in points)
                self.mapped.measured.update({(p.d_k, p.n_keys): point for p, point in places})
                self.mapped.complete = fraction == 1
                self.pane.show_progress(None if self.mapped.complete else fraction)
            case _:
                pass

    def wants(self, request: Request) -> bool:
        """Return whether a request is for the cells of this map."""
        return request in (self._prediction, self.mapped.sweep)

    def leave(self) -> None:
        """Stop working on the map; keep its cells."""
        for kind in (Predict, SweepQuestion):
            self.pane.host.engine.withdraw(kind)
        self.pane.show_progress(None)

    # Export and copying

    def answered(self, statistic: Statistic) -> SweepResult:
        """Return the measurements of all places; request missing ones, and raise InputError."""
        d_ks, measured = self.mapped.d_ks, self.mapped.measured
        asked = len(d_ks) * len(N_KEYS)
        if not self.mapped.complete:
            self.pane.ask(self.mapped.sweep)
        if not asked or len(measured) < asked:
            raise InputError(
                "{count} of {asked} cells measured so far; the others are on their way.",
                count=len(measured),
                asked=asked,
            )
        found = (measured[d_k, n] for n in N_KEYS for d_k in d_ks)
        points = [(point.point, point.prediction) for point in found]
        return self.question(statistic).swept(points)

    def question(self, statistic: Statistic) -> SweepQuestion:
        """Return the sweep that measures every place of the map as the map does."""
        return replace(self.mapped.sweep, statistics=(statistic.name,))

    def stepped(self, across: int, up: int) -> Place:
        """Return d_k and the number of keys `across` columns to the right and `up` rows higher."""
        p = self.pane.parameters
        return _stepped(D_KS, p.d_k, across), _stepped(N_KEYS, p.n_keys, up)


def _at_any_place(parameters: Parameters) -> Parameters:
    """Return the parameters that a map depends on: all but d_k and the number of keys."""
    usual = usual_of(parameters)
    return replace(parameters, d_k=usual.d_k, n_keys=usual.n_keys)


def _stepped(values: Sequence[int], value: int, change: int) -> int:
    """Return the next of these values above or below one, or the last of them; the value itself without a change."""
    if not change:
        return value
    beyond = [x for x in values if (x - value) * change > 0]
    return min(beyond, key=lambda x: abs(x - value), default=values[-1] if change > 0 else values[0])
