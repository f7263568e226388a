"""The question of the Watch pane: the newest step of a training run, or another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..watching.limits import LIMIT
from .question import Question

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.table import Table
    from ..watching.snapshot import RunSnapshot

Head: TypeAlias = tuple[int, int]  # layer, head


@dataclass(frozen=True)
class WatchRun(Question["tuple[RunSnapshot, Head]"]):
    """Read a step of a run, and which head to look at; the pane and the command read it while it grows."""

    run: Path
    limit: float = LIMIT
    at: int | None = None  # the step to show; None: the newest
    baseline: int | None = None  # the step to compare with

    @property
    def words(self) -> Sequence[str]:
        words = ["watch", str(self.run), "--once"]
        words += ["--max-logit", f"{self.limit:g}"] if self.limit != LIMIT else []
        words += ["--step", str(self.at)] if self.at is not None else []
        return [*words, *(["--baseline", str(self.baseline)] if self.baseline is not None else [])]

    @property
    def file_name(self) -> str:
        return "watch" if self.at is None else f"watch-step{self.at}"

    def table(self, answer: tuple[RunSnapshot, Head]) -> Table[Any]:
        from ..tables.runs import watch_table

        return watch_table(str(self.run), answer[0])

    def code(self, answer: tuple[RunSnapshot, Head], dialect: Dialect) -> str:
        from ..program.library import watched_code

        shown, (layer, head) = answer
        return watched_code(self.run, shown, layer, head, self.line())
