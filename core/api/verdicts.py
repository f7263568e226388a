"""Verdicts on captured heads, as results of the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..captures.head import CaptureFile
from ..diagnosis.comparing.results import Comparison
from ..diagnosis.groups import HeadVerdict
from ..diagnosis.results import Verdict
from ..tables.check import FileCheck, check_counts, check_table
from ..tables.diagnosis import compare_table, diagnosis_table, groups_of, verdict, verdict_counts
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
        return all(head.verdict.word == "healthy" for head in self.heads)

    def table(self) -> Table[Any]:
        return diagnosis_table([self.file], self.heads, len(self.heads))

    def __str__(self) -> str:
        """Return a line for each fault, whatever the number of its heads, and for what is not decided."""
        faults = (group for group in groups_of(self.heads) if group.rule != "healthy")
        return "\n".join(f"{group.fault.label} {group.sentence}" for group in faults)

    def __repr__(self) -> str:
        notes = [f"note: {note}" for note in self.notes[:_NOTES]]
        return short_lines(f"<{verdict_counts(self.heads)}>", [*notes, *str(self).splitlines()])


@dataclass(frozen=True, eq=False, repr=False)
class Differences(Result):
    """The first stage at which each head of two captures differs."""

    reference: CaptureFile
    test: CaptureFile
    comparison: Comparison

    @property
    def same(self) -> bool:
        """Whether no head differs."""
        return all(head.first is None for head in self.comparison.heads)

    def table(self) -> Table[Any]:
        return compare_table(self.reference, self.test, self.comparison)

    def __repr__(self) -> str:
        *lines, counts = verdict(self.comparison)
        return short_lines(f"<{counts}>", lines)


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
        lines = [f"{group.fault.label} {group.sentence}" for group in self.checked.groups]
        return short_lines(f"<{check_counts([self.checked])}>", lines)
