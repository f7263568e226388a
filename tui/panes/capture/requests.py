"""The requests of the Capture pane: open a file, measure one of its heads, or all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from ....core.errors import InputError
from ....core.message import message
from ...compute.request import PROGRESS_INTERVAL, Cache, Priority, Progress, Request, Work

if TYPE_CHECKING:
    from ....core.captures.capture import Meaning
    from ....core.captures.reader import CaptureFile
    from ....core.diagnosis.comparing.results import HeadComparison
    from ....core.diagnosis.heads.reasons import Explained, Judged, Traits
    from ....core.export.formats import Format
    from ....core.statistics.measurement import Estimate

Place: TypeAlias = tuple[int, int]  # position of the layer, head


@dataclass(frozen=True)
class OpenCapture(Request):
    """Open a file of queries and keys; without a path, the sample. Answered by a Capture."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    path: Path | None = None
    axes: str | None = None
    mask_true: Meaning | None = None

    def work(self, cache: Cache) -> Work:
        cache.by_kind.pop(OpenCapture, None)
        yield self.opened(cache).described()

    def opened(self, cache: Cache) -> CaptureFile:
        """Return the file, opened unless it is open already."""
        from ....core.captures.reader import open_capture, sample_path

        open_files: dict[OpenCapture, CaptureFile] = cache.by_kind.setdefault(OpenCapture, {})
        if self not in open_files:
            open_files.clear()
            open_files[self] = open_capture(self.path or sample_path(), self.axes, self.mask_true)
        return open_files[self]


@dataclass(frozen=True)
class MeasureHead(Request):
    """Measure a head under the rules of A and B. Answered by a Measurement and Progress."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    layer: int  # position in the file
    head: int
    against: str  # A's rule; `file` is the file's own scale
    rule: str  # B's rule

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import named_rule, stream_head

        capture = self.file.opened(cache)
        layer = capture.layers[self.layer]
        told = time.monotonic()
        rules = [named_rule(rule, layer) for rule in (self.against, self.rule)]
        for fraction, measurement in stream_head(capture, layer, self.head, rules):
            now = time.monotonic()
            if measurement is not None:
                yield measurement
            elif now - told > PROGRESS_INTERVAL:
                told = now
                yield Progress(fraction)
            else:
                yield None


@dataclass(frozen=True)
class RoughHeads(Request):
    """Measure a few rows of every head, if heads are large. Answered by HeadStatistics."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture

    def work(self, cache: Cache) -> Work:
        from ....core.diagnosis.heads.rough import is_large, rough_statistics

        capture, told = self.file.opened(cache), 0.0
        found: dict[Place, Mapping[str, Estimate] | None] = {}
        for layer in capture.layers:
            for head in range(layer.heads) if is_large(layer) else ():
                try:
                    found[layer.position, head] = rough_statistics(capture, layer, head)
                except InputError:
                    found[layer.position, head] = None
                if time.monotonic() - told > PROGRESS_INTERVAL:
                    told = time.monotonic()
                    yield HeadStatistics(found, rough=True)
                    found = {}
                else:
                    yield None
        yield HeadStatistics(found, rough=True)


@dataclass(frozen=True)
class MeasureHeads(Request):
    """Measure every head at the file's own scale, judge its evidence and find reasons. Answered by HeadStatistics.

    Large heads are explained before they are measured, from a first look.
    """

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND
    file: OpenCapture

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule, stream_head
        from ....core.diagnosis.heads.ranking import explained, judge, layer_traits
        from ....core.diagnosis.heads.rough import is_large, rough_statistics
        from ....core.diagnosis.reading import file_configuration

        capture, told = self.file.opened(cache), time.monotonic()
        try:
            own = file_configuration(capture)
        except InputError:  # `attn-tui diagnose` reports it
            own = None
        found: dict[Place, Mapping[str, Estimate] | None] = {}
        reasons: dict[Place, Explained] = {}
        known: dict[int, tuple[dict[int, Traits | None], dict[int, Judged | None]]] = {}
        large = [layer for layer in capture.layers if is_large(layer)]
        small = [layer for layer in capture.layers if not is_large(layer)]
        for layer, exact in [
            *((each, True) for each in small),
            *((each, w) for w in (False, True) for each in large),
        ]:
            of_layer: dict[int, Mapping[str, Estimate] | None] = {}
            for head in range(layer.heads):
                try:
                    if exact:
                        for _, measurement in stream_head(capture, layer, head, [file_rule(layer)]):
                            if measurement is not None:
                                measured = measurement.columns[0].measured
                                of_layer[head] = found[layer.position, head] = measured
                            yield None
                    else:
                        of_layer[head] = rough_statistics(capture, layer, head)
                except InputError:
                    # Marked on the map; selecting it shows the reason.
                    of_layer[head] = found[layer.position, head] = None
                yield None
                if time.monotonic() - told > PROGRESS_INTERVAL:
                    told = time.monotonic()
                    yield HeadStatistics(found, explained=reasons)
                    found, reasons = {}, {}
            if layer.position not in known:
                traits: dict[int, Traits | None] = {}
                for head, each in layer_traits(capture, layer):
                    traits[head] = each
                    yield None
                verdicts: dict[int, Judged | None] = {}
                for head in range(layer.heads):
                    verdicts[head] = judge(capture, layer, head, own)
                    yield None
                known[layer.position] = traits, verdicts
            traits, verdicts = known[layer.position]
            for head, measured in of_layer.items():
                if measured is not None:
                    reasons[layer.position, head] = explained(measured, head, traits, verdicts[head])
        yield HeadStatistics(found, explained=reasons)


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Statistics of more heads, by (position of the layer, head); None for an unreadable head."""

    heads: Mapping[Place, Mapping[str, Estimate] | None]
    rough: bool = False  # whether they are of a few rows
    explained: Mapping[Place, Explained] = field(default_factory=dict[Place, "Explained"])  # of some measured heads


@dataclass(frozen=True)
class ShowMatrix(Request):
    """Compute a part of a head's attention matrix at the file's scale. Answered by Matrix, perhaps twice."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    file: OpenCapture
    layer: int  # position in the file
    head: int
    text: int
    queries: tuple[int, int]
    keys: tuple[int, int]
    down: int
    across: int

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule
        from ....core.diagnosis.heads.attention import attention_matrix

        capture = self.file.opened(cache)
        layer = capture.layers[self.layer]
        ends = self.queries, self.keys
        rule = file_rule(layer)
        yield from attention_matrix(capture, layer, self.head, rule, self.text, *ends, self.down, self.across)


@dataclass(frozen=True)
class ShowRow(Request):
    """Compute a row of attention under the rules of A and B. Answered by AttentionRow."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    file: OpenCapture
    layer: int  # position in the file
    head: int
    against: str
    rule: str
    text: int
    query: int

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule, named_rule
        from ....core.diagnosis.heads.attention import attention_row

        capture = self.file.opened(cache)
        layer = capture.layers[self.layer]
        rules = [file_rule(layer)]
        with suppress(InputError):  # the statistics of the head say why a rule has no multiplier
            rules = [named_rule(rule, layer) for rule in (self.against, self.rule)]
        yield attention_row(capture, layer, self.head, rules, self.text, self.query)


@dataclass(frozen=True)
class CompareHeads(Request):
    """Compare every head with that of a baseline. Answered by ComparedHeads."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    baseline: Path

    def work(self, cache: Cache) -> Work:
        from ....core.captures.files import CaptureError
        from ....core.captures.reader import open_capture
        from ....core.diagnosis.comparing.compare import compare_heads, plan

        capture, told = self.file.opened(cache), time.monotonic()
        reference = open_capture(self.baseline, self.file.axes, self.file.mask_true)
        yield None
        whole = plan(reference, capture)
        found: list[HeadComparison] = []
        for pair in whole.pairs:
            with suppress(CaptureError):  # an unreadable head is marked on the map
                found.append(compare_heads(reference, capture, pair))
            if time.monotonic() - told > PROGRESS_INTERVAL:
                told = time.monotonic()
                yield ComparedHeads(self.baseline, tuple(found), whole.missing, False)
                found = []
            else:
                yield None
        yield ComparedHeads(self.baseline, tuple(found), whole.missing, True)


@dataclass(frozen=True, eq=False)
class ComparedHeads:
    """More heads, compared with those of a baseline."""

    baseline: Path
    heads: tuple[HeadComparison, ...]
    missing: tuple[str, ...]  # a sentence for what is in one file only
    complete: bool


@dataclass(frozen=True)
class ReplayHead(Request):
    """Replay every scale rule on some rows of a head. Answered by ReplayTable."""

    PRIORITY: ClassVar[Priority] = Priority.VISIBLE
    file: OpenCapture
    layer: int  # position in the file
    head: int

    def work(self, cache: Cache) -> Work:
        from ....core.diagnosis.replay import replay
        from ....core.export.diagnosing.replay import (
            replay_csv,
            replay_json,
            replay_markdown,
            replay_table,
            thawing_lines,
        )

        capture = self.file.opened(cache)
        found = [replay(capture, capture.layers[self.layer], self.head)]
        header, lines = replay_table(found)
        below = thawing_lines(found)
        if found[0].left_out:
            below.append(
                message(
                    "left out, because the file does not say what they need: {left_out}",
                    left_out=", ".join(found[0].left_out),
                )
            )
        texts: dict[Format, str] = {
            "json": replay_json(capture, found),
            "csv": replay_csv(found),
            "markdown": replay_markdown(found),
        }
        yield ReplayTable(self.layer, self.head, tuple(header), tuple(map(tuple, lines)), tuple(below), texts)


@dataclass(frozen=True)
class ReplayTable:
    """What every rule would have done to a head, as texts."""

    layer: int  # position in the file
    head: int
    header: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    below: tuple[str, ...]  # what is said under the table
    texts: Mapping[Format, str]  # for export
