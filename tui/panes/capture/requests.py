"""The requests of the Capture pane: open a file, measure one of its heads, or all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ....core.errors import InputError
from ...compute.request import PROGRESS_INTERVAL, Cache, Priority, Progress, Request, Work

if TYPE_CHECKING:
    from ....core.captures.capture import Meaning
    from ....core.captures.reader import CaptureFile
    from ....core.statistics.measurement import Estimate


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
    """Measure a head under a rule and under the file's own scale. Answered by a Measurement and Progress."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    file: OpenCapture
    layer: int  # position in the file
    head: int
    rule: str

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule, named_rule, stream_head

        capture = self.file.opened(cache)
        layer = capture.layers[self.layer]
        told = time.monotonic()
        rules = [named_rule(self.rule, layer), file_rule(layer)]
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
class MeasureHeads(Request):
    """Measure every head at the file's own scale. Answered by HeadStatistics."""

    PRIORITY: ClassVar[Priority] = Priority.BACKGROUND
    file: OpenCapture

    def work(self, cache: Cache) -> Work:
        from ....core.captures.heads import file_rule, stream_head

        capture, told = self.file.opened(cache), time.monotonic()
        found: dict[tuple[int, int], Mapping[str, Estimate] | None] = {}
        for layer in capture.layers:
            for head in range(layer.heads):
                try:
                    for _, measurement in stream_head(capture, layer, head, [file_rule(layer)]):
                        if measurement is not None:
                            found[layer.position, head] = measurement.columns[0].measured
                        yield None
                except InputError:
                    found[layer.position, head] = None  # marked on the map; selecting it shows the reason
                if time.monotonic() - told > PROGRESS_INTERVAL:
                    told = time.monotonic()
                    yield HeadStatistics(found)
                    found = {}
        yield HeadStatistics(found)


@dataclass(frozen=True, eq=False)
class HeadStatistics:
    """Statistics of more heads, by (position of the layer, head); None for an unreadable head."""

    heads: Mapping[tuple[int, int], Mapping[str, Estimate] | None]
