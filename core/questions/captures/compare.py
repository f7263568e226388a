"""The question of the first stage of attention at which two captures differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...captures.capture import capture_path
from ...captures.files import CaptureError
from ...message import message, plain
from ..question import option, path_word
from .captured import CaptureQuestion, HeadTask, chosen_heads, head_number

if TYPE_CHECKING:
    from ...captures.head import CaptureFile
    from ...diagnosis.comparing.results import Comparison, HeadPair, Plan
    from ...program.text import Dialect
    from ...tables.table import Table


@dataclass(frozen=True)
class CompareCaptures(CaptureQuestion["Comparison"]):
    """Compare two captures; without layer and head, every head of the reference."""

    COMMAND: ClassVar[str] = "compare"
    reference: Path = option("files", "", "REF", "the capture to compare with", read=capture_path, write=path_word)
    test: Path = option("files", "", "TEST", "the capture to compare", read=capture_path, write=path_word)
    layer: str | None = option("heads", "--layer", "I", "only this layer of the reference, by number or name")
    head: int | None = option(
        "heads", "--head", "H", "only this head of the reference; the first is 0", read=head_number
    )

    @cached_property
    def captures(self) -> Sequence[CaptureFile]:
        from ...captures.reader import open_capture

        return self.opened or [open_capture(path, *self.hints) for path in (self.reference, self.test)]

    @property
    def file_name(self) -> str:
        return f"{self.test.stem}-comparison"

    @property
    def notes(self) -> Iterator[str]:
        for capture in self.captures:
            for note in capture.notes:
                yield message("{file}: {note}", file=capture.path.name, note=note)

    @cached_property
    def plan(self) -> Plan:
        """Which heads are compared, and what is not; raise CaptureError if none is."""
        from ...diagnosis.comparing.compare import plan

        one, other = self.captures
        whole = plan(one, other)
        if self.layer is not None or self.head is not None:
            chosen = {(layer.position, number) for layer, number in chosen_heads(one, self.layer, self.head)}
            pairs = tuple(pair for pair in whole.pairs if (pair.layer.position, pair.head) in chosen)
            whole = replace(whole, pairs=pairs, missing=())
        if not whole.pairs:
            raise CaptureError(
                "{reference} and {test}: no head is in both", reference=plain(one.path), test=plain(other.path)
            )
        return whole

    def tasks(self) -> Iterator[HeadTask]:
        yield pair_task(self.captures, self.plan.pairs)

    def result(self, results: Sequence[Any]) -> Comparison:
        from ...diagnosis.comparing.results import compared

        return compared(results, self.plan.missing, self.plan.notes)

    def table(self, answer: Comparison) -> Table[Any]:
        from ...tables.diagnosis import compare_table

        one, other = self.captures
        return compare_table(one, other, answer)

    def code(self, answer: Comparison, dialect: Dialect) -> str:
        """Return the program of the head that the comparison speaks of first."""
        from ...program.library import opened, pair_code

        first = answer.ranked[0] if answer.first is None else max(answer.first[1], key=lambda head: head.change)
        line = replace(self, layer=str(first.layer.index), head=first.head).line()
        one, other = (opened(path, self.hints) for path in (self.reference, self.test))
        return pair_code(one, other, first, line)


def pair_task(captures: Sequence[CaptureFile], pairs: Sequence[HeadPair]) -> HeadTask:
    """Return the work that compares heads of two captures."""
    from ...work.heads import compare_pair

    return HeadTask(compare_pair, captures, [(pair, pair.layer) for pair in pairs])
