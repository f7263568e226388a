"""The requests of the Capture pane: open a file, measure one of its heads, or all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ....core.captures.capture import NO_HINTS, Hints
from ....core.errors import InputError
from ....core.message import plain
from ....core.questions.captures.compare import CompareCaptures
from ....core.questions.request import PROGRESS_INTERVAL, Cache, Priority, Progress, Request, Work, batches
from ....core.work.part import results_of

if TYPE_CHECKING:
    from ....core.captures.capture import CaptureContents, Layer
    from ....core.captures.head import CaptureFile
    from ....core.captures.rules import Rule
    from ....core.diagnosis.comparing.results import HeadComparison, Plan
    from ....core.diagnosis.heads.reasons import HeadReasons
    from ....core.statistics.measurement import Estimate
    from ....core.work.heads import HeadSurvey, Source
    from .sides import Sides

Place: TypeAlias = tuple[int, int]  # position of the layer, head


@dataclass(frozen=True)
class OpenCapture(Request):
    """Open a file of queries and keys; without a path, the sample. Answered by CaptureContents."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    path: Path | None = None
    hints: Hints = NO_HINTS
    expect: str | None = None  # the multiplier that is intended; None: as the file says

    def work(self, cache: Cache) -> Work:
        cache.by_kind.pop(OpenCapture, None)
        yield self.opened(cache).described()

    def opened(self, cache: Cache) -> CaptureFile:
        """Return the file, opened unless it is open already."""
        from ....core.captures.capture import sample_path
        from ....core.captures.reader import open_capture
        from ....core.diagnosis.disagreement import with_disagreements

        open_files: dict[OpenCapture, CaptureFile] = cache.by_kind.setdefault(OpenCapture, {})
        if self not in open_files:
            open_files.clear()
            opened = open_capture(self.path or sample_path(), *self.hints)
            opened = opened if self.expect is None else replace(opened, expect=plain(self.expect))
            open_files[self] = with_disagreements(opened)
        return open_files[self]

    def source(self, capture: CaptureFile) -> Source:
        """Return how workers open the file."""
        from ....core.captures.capture import sample_path
        from ....core.work.heads import source_of

        return source_of(capture, self.path or sample_path(), self.hints)


@dataclass(frozen=True)
class MeasureHead(Request):
    """Measure a head in the settings of A and B. Answered by a Measurement and Progress."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    place: Place
    sides: Sides

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import stream_head

        capture, layer = _layer(self, cache)
        last_sent = time.monotonic()
        for fraction, measurement in stream_head(capture, layer, self.place[1], _rules(layer, self.sides)):
            now = time.monotonic()
            if measurement is not None:
                yield measurement
            elif now - last_sent > PROGRESS_INTERVAL:
                last_sent = now
                yield Progress(fraction)
            else:
                yield None


def _layer(request: MeasureHead | ShowMatrix | ShowRow | ReplayHead, cache: Cache) -> tuple[CaptureFile, Layer]:
    capture = request.file.opened(cache)
    return capture, capture.layers[request.place[0]]


def _rules(layer: Layer, sides: Sides) -> list[Rule]:
    """Return the rules of A and B for a layer."""
    from ....core.captures.rules import rule_of

    return [rule_of(side, layer) for side in (sides.a, sides.b)]


@dataclass(frozen=True)
class RoughHeads(Request):
    """Measure a few rows of every head, if heads are large. Answered by HeadStatistics."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture

    def work(self, cache: Cache) -> Work:
        from ....core.diagnosis.heads.rows import is_large, rough_statistics

        capture = self.file.opened(cache)

        def steps() -> Iterator[tuple[float, list[tuple[Place, Mapping[str, Estimate] | None]]]]:
            for layer in filter(is_large, capture.layers):
                for head in range(layer.heads):
                    found = None
                    with suppress(InputError):
                        found = rough_statistics(capture, layer, head)
                    yield 0.0, [((layer.position, head), found)]

        yield from batches(steps(), lambda found, _: HeadStatistics(dict(found), rough=True))


@dataclass(frozen=True)
class MeasureHeads(Request):
    """Measure every head at the file's own scale, judge its evidence and find reasons. Answered by HeadStatistics.

    Large heads are explained before they are measured, from a first look.
    """

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND
    file: OpenCapture

    def work(self, cache: Cache) -> Work:
        from ....core.diagnosis.heads.ranking import HeadFacts, explained
        from ....core.diagnosis.heads.rows import is_large
        from ....core.diagnosis.reading import file_configuration
        from ....core.work.heads import parts, survey

        capture = self.file.opened(cache)
        try:
            own = file_configuration(capture)
        except InputError:  # `attn-tui diagnose` reports it
            own = None
        heads = [((layer.position, head), layer) for layer in capture.layers for head in range(layer.heads)]
        small = [place for place in heads if not is_large(place[1])]
        large = [place for place in heads if is_large(place[1])]
        sources = [self.file.source(capture)]
        plan = [
            part
            for items, exact, explain in ((small, True, True), (large, False, True), (large, True, False))
            for part in parts(survey, sources, items, (own, exact, explain))
        ]
        known: dict[int, dict[int, HeadFacts]] = {}  # by layer and head
        latest: dict[Place, Mapping[str, Estimate]] = {}
        running = cache.workers.begin(plan)

        def steps() -> Iterator[tuple[float, list[HeadStatistics]]]:
            result: HeadSurvey
            for done in running.steps():
                fraction = done.seconds / running.total
                yield fraction, []
                for result in results_of(done):
                    layer, head = result.place
                    if result.exact or result.measured is None:  # marked on the map; selecting it shows the reason
                        yield fraction, [HeadStatistics({result.place: result.measured})]
                    if result.measured is not None:
                        latest[result.place] = result.measured
                    of_layer = known.setdefault(layer, {})
                    if result.known is not None:
                        of_layer[head] = result.known
                    if len(of_layer) == capture.layers[layer].heads:  # reasons compare the heads of a layer
                        for place in [place for place in latest if place[0] == layer]:
                            reasons = explained(latest.pop(place), place[1], of_layer)
                            yield fraction, [HeadStatistics({}, explained={place: reasons})]

        yield from batches(steps(), lambda found, _: _together(found), running)
        yield Progress(1.0)


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Statistics of more heads, by (position of the layer, head); None for an unreadable head."""

    heads: Mapping[Place, Mapping[str, Estimate] | None]
    rough: bool = False  # whether they are of a few rows
    explained: Mapping[Place, HeadReasons] = field(
        default_factory=dict[Place, "HeadReasons"]
    )  # of some measured heads


def _together(parts: Sequence[HeadStatistics]) -> HeadStatistics:
    heads = {place: measured for part in parts for place, measured in part.heads.items()}
    return HeadStatistics(heads, explained={place: why for part in parts for place, why in part.explained.items()})


@dataclass(frozen=True)
class ShowMatrix(Request):
    """Compute a part of a head's attention matrix at the file's scale. Answered by AttentionCells, perhaps twice."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    file: OpenCapture
    place: Place
    text: int
    queries: tuple[int, int]
    keys: tuple[int, int]
    down: int
    across: int

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule
        from ....core.diagnosis.heads.attention import attention_matrix

        capture, layer = _layer(self, cache)
        shown = self.text, self.queries, self.keys, self.down, self.across
        yield from attention_matrix(capture, layer, self.place[1], file_rule(layer), *shown)


@dataclass(frozen=True)
class ShowRow(Request):
    """Compute a row of attention in the settings of A and B. Answered by AttentionRow."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    file: OpenCapture
    place: Place
    sides: Sides
    text: int
    query: int
    judged: bool = False  # whether A is the scale as it is, and B as it should be

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule
        from ....core.diagnosis.heads.attention import attention_row

        capture, layer = _layer(self, cache)
        rules = [file_rule(layer)]
        with suppress(InputError):  # the statistics of the head say why a rule has no multiplier
            rules = _rules(layer, self.sides)
        row = attention_row(capture, layer, self.place[1], rules, self.text, self.query)
        if self.judged:
            named = zip(row.columns, ("is", "should be"), strict=True)
            row = replace(row, columns=tuple(replace(column, rule=name) for column, name in named))
        yield row


@dataclass(frozen=True)
class CompareHeads(Request):
    """Compare every head with that of a baseline. Answered by ComparedHeads."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    baseline: Path

    def work(self, cache: Cache) -> Work:
        from ....core.captures.reader import open_capture

        capture = self.file.opened(cache)
        reference = open_capture(self.baseline, *self.file.hints)
        yield None
        question = CompareCaptures(
            *self.file.hints, reference=self.baseline, test=capture.path, opened=(reference, capture)
        )
        running = cache.workers.begin(question.parts())

        def steps() -> Iterator[tuple[float, list[HeadComparison]]]:
            for done in running.steps():  # an error is marked on the map
                yield (
                    done.seconds / running.total,
                    [result for result in done.results if not isinstance(result, InputError)],
                )

        yield from batches(
            steps(), lambda found, _: ComparedHeads(reference.described(), tuple(found), question.plan), running
        )
        yield Progress(1.0)


@dataclass(frozen=True, eq=False)
class ComparedHeads:
    """More heads, compared with those of a baseline."""

    reference: CaptureContents
    heads: tuple[HeadComparison, ...]
    plan: Plan


@dataclass(frozen=True)
class ReplayHead(Request):
    """Replay every scale rule on some rows of a head. Answered by a Replay."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    place: Place

    def work(self, cache: Cache) -> Work:
        from ....core.diagnosis.replay import replay

        capture, layer = _layer(self, cache)
        yield replay(capture, layer, self.place[1])
