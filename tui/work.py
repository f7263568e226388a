"""What the compute thread is asked to do: the lab's measurement, scale rules, a file, a head, a map of heads.

Each is a generator of messages; everything that loads NumPy is imported when it runs, in that thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError
from ..core.lab.kept import curves_to_make
from ..core.lab.service import PARTIAL, REFUSALS, SILENCE, Explained, Said, telling
from ..core.landmarks import landmarks
from ..core.parameters import Parameters
from ..core.statistics.measurement import Estimate, Measurement
from .messages import (
    CaptureOpened,
    ClaimsListed,
    ClaimTested,
    CurvesReady,
    MapPart,
    MeasurementReady,
    MechanismsPart,
    Progress,
    RuleCurvesReady,
    RulesPart,
    SweepPart,
)
from .recompute import Work
from .second_process import SecondProcess, UnansweredError

if TYPE_CHECKING:
    from ..core.captures.reader import Capture
    from ..core.lab.mechanisms import Row as MechanismRow
    from ..core.lab.prediction import Theory
    from ..core.lab.rule_rows import Row as RuleRow
    from ..core.lab.sampling import Draws
    from ..core.lab.sweep import Point, Step
    from .views.sweep import SweptPoint

AHEAD = 0.1  # seconds that a measurement nobody has asked for yet may take
TOGETHER = 0.05  # points of a sweep that come faster are handed over together
STEPS = 120  # of the exact curve of a sweep


class Lab:
    """The lab's measurements; they share what was drawn for the one before, and what theory has prepared."""

    def __init__(self, second: SecondProcess | None = None) -> None:
        self._second = second
        self._draws: Draws | None = None
        self._prepared: set[int | None] = {None}  # numbers of keys whose curves have been made
        self._found: MeasurementReady | None = None  # the last one
        self._early: tuple[Parameters, Work] | None = None  # what was begun before anybody asked for it
        self._then: Parameters | None = None  # what to begin when the present measurement is complete

    @property
    def apart(self) -> bool:
        """Whether it is done by a process of its own."""
        return self._second is not None and self._second.there

    def measure(self, parameters: Parameters, then: Parameters | None = None) -> Work:
        """The measurement of these parameters; long ones show progress and their first draws on the way.

        What is said to come then is begun by the second process while this one sees to what has been measured.
        """
        self._then = then
        found = self._found_of(parameters)
        if found is not None:
            yield MeasurementReady("lab", found.measurement, found.theory)
        if found is None or not found.measurement.complete:
            yield from self._gone_on_with(parameters)

    def measure_next(self, parameters: Parameters, then: Parameters | None = None) -> Work:
        """What is likely to be asked for next. When it is, `measure` goes on from where this is."""
        self._then = then
        found = self._found_of(parameters)
        if found is not None and found.measurement.complete:  # and it is on its way to who asks for it again
            return
        early = self._early = parameters, self._gone_on_with(parameters)
        until = time.monotonic() + AHEAD
        try:
            for message in early[1]:
                ready = message if isinstance(message, MeasurementReady) else None
                yield ready and MeasurementReady("next", ready.measurement, ready.theory)
                if self._early is not early:
                    return
                if time.monotonic() > until:
                    if self.apart:
                        self._early = None  # so that the second process does not go on with it
                    return
        except REFUSALS:
            self._early = None  # who really asks for it is told

    def _found_of(self, parameters: Parameters) -> MeasurementReady | None:
        """What was found last, if it is of these and needs no more."""
        found = self._found
        return found if found and found.theory and found.measurement.subject == parameters else None

    def _gone_on_with(self, parameters: Parameters) -> Work:
        """The measurement of these, from where it is if it has been begun."""
        early, self._early = self._early, None
        return early[1] if early is not None and early[0] == parameters else self._measured(parameters)

    def _measured(self, parameters: Parameters) -> Work:
        curves, theory = curves_to_make(parameters), None
        unasked = self._second is not None and self._second.explains(parameters)
        known = curves in self._prepared and not unasked
        for said in self._said(parameters, explained=known):
            if isinstance(said, Explained):
                measurement, found = said
                self._prepared.add(curves)
            elif isinstance(said, Measurement):
                if theory is None and known:
                    theory = self._theory_of(parameters)
                measurement, found = said, theory and theory(said)
            else:
                yield None if said is None else Progress("lab", said)
                continue
            if measurement.complete:
                self._begin_then()
            self._found = MeasurementReady("lab", measurement, found)
            yield self._found

    def _begin_then(self) -> None:
        then, self._then = self._then, None
        if then is not None and self.apart:
            self._early = then, self._measured(then)
            try:
                next(self._early[1])
            except REFUSALS:
                self._early = None  # as in `measure_next`

    def _said(self, parameters: Parameters, explained: bool) -> Iterator[Said | Explained]:
        """What the second process says of it, explained if that is wanted, or else what this one finds."""
        if self._second is not None:
            try:
                yield from self._second.measure(parameters, explained)
                self._draws = None
                return
            except UnansweredError:
                pass
        from ..core.lab.sampling import Draws

        self._draws = self._draws or Draws()
        yield from telling(parameters, self._draws)

    def predict(self, measurement: Measurement[Parameters]) -> Work:
        """The theory of a measurement that came without: of the first one, or where curves have to be made."""
        question, found = measurement.subject, None
        for theory in self._second.theory(question) if self._second else ():
            found = theory
            yield None
        curves = curves_to_make(question)
        if found is not None:
            self._prepared.add(curves)
        else:
            found = self._theory_of(question)(measurement)
        yield MeasurementReady("theory", measurement, found)
        if curves not in self._prepared and curves is not None:
            self._prepared.add(curves)
            if self._second:
                from ..core.lab.curves import prepared

                self._second.adopt(prepared(curves))

    def _theory_of(self, question: Parameters) -> Callable[[Measurement[Parameters]], Theory]:
        """What makes the theory of its measurement in this process."""
        from ..core.lab.comparison import theory_of
        from ..core.lab.curves import adopt

        for curves in self._second.curves(question) if self._second else ():
            if curves is not None:
                adopt(curves)
        return theory_of(question)


class Sweep:
    """One question at many d_k. It can be left off and gone on with: its points are those of one run all the same."""

    def __init__(self, question: Parameters, d_ks: Sequence[int]) -> None:
        self.question, self.d_ks = question, d_ks
        self._steps: Iterator[Step] | None = None
        self._found: dict[int, SweptPoint] = {}  # not handed over yet

    def predict(self) -> Work:
        """The exact values at enough d_k for a smooth curve, and at all with a row of their own."""
        from ..core.lab.prediction import PredictedColumn
        from ..core.lab.theory import predict

        exact: dict[int, Sequence[PredictedColumn]] = {}
        for d_k in smooth(self.d_ks):
            exact[d_k] = predict(replace(self.question, d_k=d_k)).columns
            yield None
        yield CurvesReady("curves", self, exact)

    def measure(self) -> Work:
        """The points with their theory, as they come."""
        from ..core.lab.sweep import stream

        if self._steps is None:
            self._steps = stream(self.question, self.d_ks)
        told = time.monotonic()
        for step in self._steps:
            self._found |= {point.parameters.d_k: _swept(point) for point in step.points}
            if step.fraction == 1 or time.monotonic() - told > (TOGETHER if self._found else SILENCE):
                told = time.monotonic()
                found, self._found = self._found, {}
                yield SweepPart("sweep", self, found, step.fraction)
            else:
                yield None


def smooth(d_ks: Sequence[int]) -> list[int]:
    """From the first to the last of these by about the same factor, and the landmarks among them."""
    low, high = d_ks[0], d_ks[-1]
    even = {round(low * (high / low) ** (step / STEPS)) for step in range(STEPS + 1)}
    return sorted(even | {*landmarks(d_ks)})


def _swept(point: Point) -> SweptPoint:
    from ..core.lab.comparison import deviations
    from ..core.lab.theory import predict
    from .views.sweep import SweptPoint

    prediction = predict(point.parameters)
    return SweptPoint(point, prediction, deviations(point.measurement, prediction))


class Rules:
    """Every scale rule on one question; a question shares what was drawn for the one before."""

    def __init__(self) -> None:
        self._draws: Draws | None = None

    def measure(self, parameters: Parameters) -> Work:
        """The rows as they come."""
        from ..core.lab.rules import stream
        from ..core.lab.sampling import Draws

        self._draws = self._draws or Draws()
        begun = told = time.monotonic()
        found: list[RuleRow] = []
        for step in stream(parameters, self._draws):
            found += step.rows
            now = time.monotonic()
            if step.fraction == 1 or (found and now - told > TOGETHER):
                told = now
                yield RulesPart("rules", parameters, found, step.fraction)
                found = []
            elif now - told > SILENCE and now - begun > PARTIAL:
                told = now
                yield Progress("rules", step.fraction)
            else:
                yield None


def rule_curves(parameters: Parameters) -> Work:
    """Entropy over d_k under every scale rule."""
    from ..core.lab.rule_curves import stream

    for step in stream(parameters):
        yield None if step.curves is None else RuleCurvesReady("curves", parameters, step.curves)


def compare_mechanisms(parameters: Parameters) -> Work:
    """Mechanisms over d_k, as their rows come."""
    from ..core.lab.mechanisms import stream

    told = time.monotonic()
    found: list[MechanismRow] = []
    for step in stream(parameters):
        found += [step.row] if step.row else []
        if step.fraction == 1 or time.monotonic() - told > SILENCE:
            told = time.monotonic()
            yield MechanismsPart("mechanisms", parameters, found, step.fraction)
            found = []
        else:
            yield None


def nothing() -> Work:
    """In place of work that is no longer asked for."""
    yield from ()


def open_file(path: Path | None, axes: str | None) -> Work:
    """Open a capture, or the sample that is shipped with the program."""
    from ..core.captures.reader import open_capture, sample_path

    yield CaptureOpened("file", open_capture(path or sample_path(), axes))


def measure_one(capture: Capture, layer: int, head: int, rule: str) -> Work:
    """The head at this position under a rule and under the file's own scale."""
    from ..core.captures.heads import file_rule, named_rule, stream_head

    chosen = capture.layers[layer]
    told = time.monotonic()
    for fraction, measurement in stream_head(capture, chosen, head, [named_rule(rule, chosen), file_rule(chosen)]):
        now = time.monotonic()
        if measurement is not None:
            yield MeasurementReady("head", measurement)
        elif now - told > SILENCE:
            told = now
            yield Progress("head", fraction)
        else:
            yield None


def measure_all(capture: Capture) -> Work:
    """Every statistic of every head at the file's scale, in parts; None for a head that cannot be read."""
    from ..core.captures.heads import file_rule, stream_head

    told = time.monotonic()
    part: list[tuple[tuple[int, int], Mapping[str, Estimate] | None]] = []
    for position, layer in enumerate(capture.layers):
        for head in range(layer.heads):
            try:
                for _, measurement in stream_head(capture, layer, head, [file_rule(layer)]):
                    if measurement is not None:
                        part.append(((position, head), measurement.columns[0].measured))
                    yield None
            except InputError:
                part.append(((position, head), None))  # the map marks it; selecting it says why
            if time.monotonic() - told > SILENCE:
                told = time.monotonic()
                yield MapPart("map", part)
                part = []
    yield MapPart("map", part)


def check_claims() -> Work:
    """Every claim put to the test, in the order in which results come."""
    from ..core.lab.claims import CLAIMS, check_all

    yield ClaimsListed("claims", CLAIMS)
    for outcome in check_all():
        yield ClaimTested("claims", outcome)
