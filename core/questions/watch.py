"""The question of the Watch pane: the newest step of a training run, or another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError
from ..message import message
from ..watching.limits import LIMIT
from ..watching.snapshot import run_path
from ..work.part import Part, Steps
from .parse import UsageError
from .question import Question, option, option_words, path_word

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.table import Table
    from ..watching.snapshot import RunSnapshot

Head: TypeAlias = tuple[int, int]  # layer, head


def _limit(text: str) -> float:
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < float("inf"):
        raise UsageError("--max-logit: must be a number above 0, not {text!r}", text=text)
    return limit


def _step(name: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UsageError("{option}: must be the number of a step, not {text!r}", option=name, text=text)
        return int(text)

    return read


def read_step(run: Path, limit: float, at: int | None, baseline: int | None) -> Steps[str | RunSnapshot]:
    """Read the whole run: notes on what cannot be read, and last its newest step, or the one asked for."""
    from ..watching.poll import read_run

    return read_run(run, limit, at, baseline)


@dataclass(frozen=True)
class WatchRun(Question["RunSnapshot"]):
    """Read a step of a run, as it is now; the Watch pane reads on while it grows."""

    run: Path = option(
        "run",
        "",
        "RUN",
        "a folder of captures, a file of attn-tui/watch-1 lines, or - for lines of stdin",
        read=run_path,
        write=path_word,
    )
    limit: float = option(
        "watching",
        "--max-logit",
        "X",
        message("the largest |logit| that is accepted; default {limit:g}", limit=LIMIT),
        default=LIMIT,
        read=_limit,
        write=lambda limit: f"{limit:g}",
    )
    at: int | None = option(
        "watching", "--step", "N", "print step N, or the last one before it", read=_step("--step")
    )
    baseline: int | None = option(
        "watching", "--baseline", "N", "print the change of every head since step N", read=_step("--baseline")
    )
    head: Head | None = field(default=None, compare=False)  # that a program prints; None: the worst

    def parts(self) -> Sequence[Part[str | RunSnapshot]]:
        return [Part(read_step, (self.run, self.limit, self.at, self.baseline), 1.0)]

    @property
    def words(self) -> Sequence[str]:
        run, *others = option_words(self)
        return ["watch", run, "--once", *others]

    @property
    def file_name(self) -> str:
        return "watch" if self.at is None else f"watch-step{self.at}"

    def table(self, answer: RunSnapshot) -> Table[Any]:
        from ..tables.runs import watch_table

        return watch_table(str(self.run), answer)

    def code(self, answer: RunSnapshot, dialect: Dialect) -> str:
        from ..program.library import watched_code

        if self.head is None and not answer.ranked:
            raise InputError("{run}: no head has a largest |logit|", run=self.run)
        layer, head = self.head or (answer.ranked[0].layer, answer.ranked[0].head)
        return watched_code(self.run, answer, layer, head, self.line())
