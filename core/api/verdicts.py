"""Verdicts on captured heads, as results of the library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..captures.head import CaptureFile
from ..diagnosis.comparing.results import Comparison
from ..diagnosis.results import Verdict
from ..tables.diagnosis import FileCheck, HeadVerdict, check_table, compare_table, diagnosis_table
from ..tables.table import Table
from .result import Result, short_lines

_NOTES = 3  # in a repr


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """The verdicts on the heads of a capture, over which it iterates: `each.place`, `each.verdict.cause`, …"""

    file: CaptureFile
    heads: Sequence[HeadVerdict]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only head, that of `capture[layer, head].diagnose()`; several have none in common."""
        if len(self.heads) != 1:
            raise AttributeError(
                f"{len(self.heads)} heads have a verdict each: iterate over the diagnosis, "
                "or ask capture[layer, head].diagnose()"
            )
        return self.heads[0].verdict

    def __iter__(self) -> Iterator[HeadVerdict]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    @property
    def notes(self) -> Sequence[str]:
        """Everything that was assumed."""
        return self.file.notes

    @property
    def healthy(self) -> bool:
        """Whether every head is healthy: undecided is not."""
        return all(each.verdict.verdict == "healthy" for each in self.heads)

    def table(self) -> Table[Any]:
        return diagnosis_table([self.file], self.heads, len(self.heads))

    def __str__(self) -> str:
        """Return a line for each head that is not healthy."""
        return "\n".join(
            f"{each.place}: {found.cause or found.verdict}{found.says and f': {found.says}'}"
            for each in self.heads
            if (found := each.verdict).verdict != "healthy"
        )

    def __repr__(self) -> str:
        counts = Counter(each.verdict.verdict for each in self.heads)
        said = ", ".join(f"{count} {word}" for word, count in counts.items())
        notes = [f"note: {each}" for each in self.notes[:_NOTES]]
        return short_lines(f"<{len(self.heads)} heads: {said}>", [*notes, *str(self).splitlines()])


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Result):
    """The first stage at which each head of two captures differs."""

    reference: CaptureFile
    test: CaptureFile
    comparison: Comparison

    @property
    def same(self) -> bool:
        """Whether no head differs."""
        return all(each.first is None for each in self.comparison.heads)

    def table(self) -> Table[Any]:
        return compare_table(self.reference, self.test, self.comparison)

    def __repr__(self) -> str:
        found = [each for each in self.comparison.heads if each.first is not None]
        lines = [
            f"{each.layer.place} head {each.head}: {each.first.name}, {each.first.says}"
            for each in found
            if each.first is not None
        ]
        return short_lines(f"<{len(found)} of {len(self.comparison.heads)} heads differ>", lines)


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result):
    """The findings of a check."""

    checked: FileCheck
    strict: bool

    @property
    def ok(self) -> bool:
        """Whether there is no finding and, if strict, every head is judged."""
        return not self.checked.findings and not (self.strict and self.checked.not_judged)

    def table(self) -> Table[Any]:
        return check_table([self.checked])

    def __repr__(self) -> str:
        judged = self.checked.judged
        lines = [f"{each.place}: {each.message}" for each in self.checked.findings]
        counts = f"{judged['healthy']} healthy, {len(lines)} findings, {self.checked.not_judged} not judged"
        return short_lines(f"<{len(self.checked.heads)} heads: {counts}>", lines)
