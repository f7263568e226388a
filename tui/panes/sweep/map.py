"""The map of the Sweep pane: its cells, its widget, and the requests for the cells that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....core.errors import InputError
from ....core.parameters import Parameters, usual_of
from ....core.statistics.catalogue import Statistic
from ...compute.request import Request
from ..pane import Pane
from .map_requests import D_KS, N_KEYS, ExactCells, MeasuredCells, MeasureMap, Place, PredictMap
from .map_view import Mapped
from .map_widget import SweepMap
from .question import Sweep

if TYPE_CHECKING:
    from ....core.tables.lab import SweepResult


class MapPart:
    """The map over d_k and keys of a pane, at the pane's parameters."""

    def __init__(self, pane: Pane) -> None:
        self.pane = pane
        self.widget = SweepMap()
        self.mapped = Mapped(_at_any_place(pane.parameters))

    # Requests and answers

    def follow(self, statistic: Statistic) -> None:
        """Request what the map lacks: exact values, or measured ones where none are known."""
        parameters = _at_any_place(self.pane.parameters)
        if self.mapped.parameters != parameters:
            self.mapped = Mapped(parameters)
        if not self.mapped.predicted:
            self.pane.ask(PredictMap(parameters))
        elif not self.is_complete(statistic):
            self.pane.ask(MeasureMap(parameters))

    def is_complete(self, statistic: Statistic) -> bool:
        """Return whether the map has all its values of a statistic."""
        return self.mapped.predicted and (self.mapped.complete or not self.mapped.needs_measuring(statistic))

    def add(self, request: Request, answer: object, statistic: Statistic) -> None:
        """Add the cells of an answer; request measured ones once it is known that they are needed."""
        match request, answer:
            case PredictMap(parameters), ExactCells(cells) if parameters == self.mapped.parameters:
                self.mapped.exact.update(cells)
                if self.widget.display and self.mapped.predicted:
                    self.follow(statistic)
            case MeasureMap(parameters), MeasuredCells(cells, fraction) if parameters == self.mapped.parameters:
                self.mapped.measured.update(cells)
                self.mapped.complete = fraction == 1
                self.pane.show_progress(None if self.mapped.complete else fraction)
            case _:
                pass

    def wants(self, request: Request) -> bool:
        """Return whether a request is for the cells of this map."""
        return request in (PredictMap(self.mapped.parameters), MeasureMap(self.mapped.parameters))

    def leave(self) -> None:
        """Stop working on the map; keep its cells."""
        for kind in (PredictMap, MeasureMap):
            self.pane.host.engine.withdraw(kind)
        self.pane.show_progress(None)

    # Export and copying

    def answered(self, statistic: Statistic) -> SweepResult:
        """Return the measurements of all places; request missing ones, and raise InputError."""
        request, measured = MeasureMap(self.mapped.parameters), self.mapped.measured
        d_ks = request.d_ks
        asked = len(d_ks) * len(N_KEYS)
        if not self.mapped.complete:
            self.pane.ask(request)
        if not asked or len(measured) < asked:
            raise InputError(
                "{count} of {asked} cells measured so far; the others are on their way.",
                count=len(measured),
                asked=asked,
            )
        points = [measured[d_k, n] for n in N_KEYS for d_k in d_ks]
        return self.question(statistic).result(points, self.pane.command())

    def question(self, statistic: Statistic) -> Sweep:
        """Return the sweep that measures every place of the map as the map does."""
        request = MeasureMap(self.mapped.parameters)
        d_k, n_keys = (",".join(map(str, each)) for each in (request.d_ks or D_KS, N_KEYS))
        return Sweep(request.measured, d_k, statistics=(statistic.name,), keys=n_keys)

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
    beyond = [each for each in values if (each - value) * change > 0]
    return min(beyond, key=lambda each: abs(each - value), default=values[-1] if change > 0 else values[0])
