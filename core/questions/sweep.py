"""The question of the Sweep pane: the statistics of the Lab over many d_k, and over a second axis."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import did_you_mean
from ..grid import parse_grid, parse_values
from ..lab.results import Target
from ..message import message
from ..parameters import FIELD, FIELDS, Parameters, Value
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import HISTOGRAMS, HistogramName
from .parse import UsageError, called, is_number, value_of
from .question import NamedQuestion, option, option_words, parameter_options
from .request import Cache, Work, batches

if TYPE_CHECKING:
    from ..lab.results import SweepPoint
    from ..program.text import Dialect
    from ..tables.lab import SweepResult
    from ..tables.table import Table
    from ..theory.prediction import Prediction
    from ..work.part import Part
    from ..work.sweeps import Found, Predicted, SweepPlan

GRID = "1:4096:log24"  # the default values of d_k, unless the number of keys is swept
_TITLE = "grid and precision"


def _second_axis(texts: Sequence[str]) -> tuple[str, str]:
    """Return `n-keys=64,128` as a parameter's name and the text of its values, which are checked."""
    if len(texts) > 1:
        raise UsageError("--vary: given more than once; a sweep has one second axis")
    option, equals, values = texts[0].partition("=")
    name = option.strip().removeprefix("--").replace("-", "_")
    names = [field.option[2:] for field in FIELDS if field.name != "d_k"]
    if name not in FIELD or name == "d_k" or not equals:
        raise UsageError(
            "--vary: must be NAME=VALUES, with NAME one of {names}, not {text!r}{near}",
            names=", ".join(names),
            text=texts[0],
            near="" if name in FIELD else did_you_mean(option.strip(), names),
        )
    field = FIELD[name]
    if name == "scale" and any(map(is_number, values.split(","))):
        raise UsageError("--vary scale: values must be names of rules; for numbers use --vary multiplier=0.05,0.1")
    with called(f"--vary {field.option[2:]}", field.label):
        parse_values(values, field)
    return name, values.strip()


def _statistics(text: str) -> tuple[str, ...]:
    """Return the requested statistics, in order and without repetitions."""
    names = [word.strip().replace("-", "_") for word in text.split(",")]
    if names == ["all"]:
        return tuple(STATISTIC)
    for name in names:
        if name not in STATISTIC:
            raise UsageError(
                "--statistics: must be all, or any of {names}, not {text!r}{near}",
                names=", ".join(STATISTIC),
                text=name,
                near=did_you_mean(name, STATISTIC),
            )
    return tuple(dict.fromkeys(names))


def _stderr(text: str) -> float:
    stderr = float(text) if is_number(text) else math.nan
    if not 0 < stderr < math.inf:
        raise UsageError("--stderr: must be a number above 0, not {text!r}", text=text)
    return stderr


def _target_statistic(text: str) -> str:
    with called("--of", "statistic"):
        return Target(1.0, text.strip().replace("-", "_")).statistic


@dataclass(frozen=True, eq=False)
class SweptPoint:
    """A measurement at one place, its theory, and the deviations in standard errors."""

    point: SweepPoint
    prediction: Prediction
    deviations: Sequence[Mapping[str, float | None]]


@dataclass(frozen=True, eq=False)
class Points:
    """More points, and the part of the work that is done, 0 to 1."""

    points: Sequence[SweptPoint]
    fraction: float


@dataclass(frozen=True)
class SweepQuestion(NamedQuestion["SweepResult"]):
    """A sweep as written on the command line. In the engine, answered by Points, in rising order of keys and d_k."""

    parameters: Parameters  # with the default of what is swept
    grid: str = option(
        _TITLE,
        "--d-k",
        "GRID",
        message(
            "the values of d_k: numbers, a:b (a to b), a:b:STEP (every STEP-th), a:b:logN (N values, "
            "evenly spaced on a log axis), or several of these separated by commas; default {grid}, or "
            "{width} if the number of keys is swept",
            grid=GRID,
            width=Parameters.d_k,
        ),
        default=GRID,
        read=str.strip,
    )
    values: tuple[str, str] | None = option(  # a parameter, and its values
        _TITLE,
        "--vary",
        "NAME=VALUES",
        "a second axis: another parameter and its values, such as n-keys=64,128, scale=sqrt_d_k,d_k or "
        "components=normal,uniform",
        read=_second_axis,
        action="append",
    )
    statistics: tuple[str, ...] = option(  # if empty, the default of each format
        _TITLE,
        "--statistics",
        "NAMES",
        "the statistics to print, separated by commas, with their names in JSON, or all; default: all except "
        "those of gradients and of the number format, which take a separate run per point; a table shows those that "
        "fit",
        default=(),
        read=_statistics,
        write=",".join,
        suggest=STATISTIC,
    )
    stderr: float | None = option(
        _TITLE,
        "--stderr",
        "X",
        "draw more batches at each point until the standard error is at most X in both columns",
        read=_stderr,
    )
    of: str = option(
        _TITLE,
        "--of",
        "STATISTIC",
        "the statistic whose standard error it is; default entropy_fraction",
        default=Target.statistic,
        read=_target_statistic,
        suggest=STATISTIC,
    )
    most_draws: int = option(
        _TITLE,
        "--most-draws",
        "N",
        "the most draws at a point, even if X is not reached; default 4096",
        default=Target.most_draws,
        read=lambda text: value_of(FIELD["batch"], text, "--most-draws"),
    )
    keys: str = ""  # the numbers of keys, if they are swept too
    known: int = field(default=0, compare=False)  # points that the pane already has; a sweep stopped there continues

    def plan(self, histograms: Sequence[HistogramName] = ()) -> SweepPlan:
        """Return the plan of the measurement of all that a table shows, with these histograms."""
        from ..work.sweeps import sweep_plan

        full = any(STATISTIC[name].optional for name in self.swept(()).shown)
        return sweep_plan(
            self.parameters, self.d_ks, vary=self.vary, n_keys=self.n_keys, target=self.target, full=full,
            histograms=histograms,
        )  # fmt: skip

    def parts(self) -> Iterator[Part[Any]]:
        from ..work.sweeps import parts

        return parts(self.plan())

    def work(self, cache: Cache) -> Work:
        from ..theory.predict import deviations
        from ..work.part import MemoryStore
        from ..work.sweeps import Fold, parts

        kept: dict[SweepQuestion, MemoryStore] = cache.by_kind.setdefault(SweepQuestion, {})
        if all(question.parameters != self.parameters for question in kept):
            kept.clear()
        plan = self.plan(() if len(self.d_ks) > 1 and len(self.n_keys) > 1 else HISTOGRAMS)  # a map shows none
        running = cache.workers.begin(parts(plan), kept.setdefault(self, MemoryStore()))

        def steps() -> Iterator[tuple[float, list[SweptPoint]]]:
            fold, passed = Fold(plan), 0
            for done in running.steps():
                points = fold.add(done.results)
                new = points[max(self.known - passed, 0) :]
                passed += len(points)
                yield (
                    done.seconds / running.total,
                    [
                        SweptPoint(point, prediction, deviations(point.measurement, prediction))
                        for point, prediction in new
                    ],
                )

        yield from batches(steps(), Points, running)

    @property
    def d_ks(self) -> tuple[int, ...]:
        """The values of d_k, ascending."""
        return parse_grid(self.grid)

    @property
    def n_keys(self) -> tuple[int, ...]:
        """The numbers of keys, ascending; none if there is only that of the parameters."""
        return parse_grid(self.keys, FIELD["n_keys"]) if self.keys else ()

    @property
    def vary(self) -> tuple[str, tuple[Value, ...]] | None:
        """The parameter of the second axis and its values, if there is one."""
        return self.values and (self.values[0], parse_values(self.values[1], FIELD[self.values[0]]))

    @property
    def target(self) -> Target | None:
        """The precision of each point, if it is given."""
        return None if self.stderr is None else Target(self.stderr, self.of, self.most_draws)

    @property
    def each(self) -> list[Parameters]:
        """The parameters at each value of the second axis, with any number of keys."""
        p = self.parameters
        return [p.with_value(self.vary[0], value) for value in self.vary[1]] if self.vary else [p]

    @property
    def words(self) -> list[str]:
        words = ["sweep", "--d-k", self.grid, *(["--n-keys", self.keys] if self.keys else [])]
        if self.values:
            words += ["--vary", f"{FIELD[self.values[0]].option[2:]}={self.values[1]}"]
        words += parameter_options(self.parameters, self.values[0] if self.values else "")
        words += option_words(self, ("statistics",))
        if self.stderr is not None:
            words += ["--stderr", repr(self.stderr), "--of", self.of, "--most-draws", str(self.most_draws)]
        return words

    @property
    def file_name(self) -> str:
        return "sweep"

    def result(self, results: Sequence[Found]) -> SweepResult:
        from ..work.sweeps import Fold

        return self.swept(Fold(self.plan()).add(results))

    def swept(self, points: Sequence[Predicted]) -> SweepResult:
        """Return these points as the answer."""
        from ..tables.lab import SweepResult

        return SweepResult(self.parameters, self.d_ks, points, self.vary, self.target, self.statistics, self.n_keys)

    def table(self, answer: SweepResult) -> Table[Any]:
        from ..tables.lab import sweep_table

        return sweep_table(answer, self.line())

    def code(self, answer: SweepResult, dialect: Dialect) -> str:
        from ..program.sweep import sweep_code

        return sweep_code(answer, dialect, self.line())
