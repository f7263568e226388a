"""What `import attn_tui` offers: the same numbers as the commands, as objects.

Results print in a few lines, and `to_dict()` is what the command's `--format json` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast
from warnings import warn

import numpy as np
import numpy.typing as npt

from .arrays import FloatArray
from .attention.cost import SHAPE_FIELDS, Cost
from .attention.cost import LayerShape as Shape
from .attention.presets import PRESETS
from .captures.capture import HeadSubject, Layer, Meaning
from .captures.head import CaptureFile, read_head
from .captures.heads import measure_head
from .captures.reader import open_capture
from .captures.rules import Rule, computation, file_rule, named_rule
from .diagnosis.check import HeadFigures
from .diagnosis.check import measure as head_figures
from .diagnosis.comparing.compare import compare_heads
from .diagnosis.comparing.results import Comparison, HeadComparison, HeadPair
from .diagnosis.configuration import Configuration, configuration_of
from .diagnosis.groups import HeadVerdict
from .diagnosis.limits import LIMITS, limit
from .diagnosis.reading import file_configuration
from .diagnosis.replay import replay
from .diagnosis.results import Replay, RuleReplay, Verdict
from .errors import InputError, did_you_mean
from .learning.card import Card
from .learning.items import ITEMS
from .learning.outcome import Outcome
from .parameters import FIELD, Parameters, Value, parameters_from
from .program.library import call_of
from .questions.captures.check import CheckCaptures
from .questions.captures.compare import CompareCaptures
from .questions.captures.diagnose import DiagnoseCaptures
from .questions.cost import CountCost
from .questions.lab import Measure
from .questions.learn import ReadItems, all_claims
from .questions.question import Question
from .scales import SCALE_RULES
from .statistics.catalogue import STATISTIC
from .statistics.measurement import Estimate, Measurement, column_names
from .tables.diagnosis import (
    FileCheck,
    check_counts,
    check_table,
    compare_table,
    diagnosis_table,
    groups_of,
    verdict,
    verdict_counts,
)
from .tables.heads import inspect_table, replay_table
from .tables.lab import Axis, SweepResult, prediction_table, report_table, sweep_table
from .tables.runs import watch_table
from .tables.table import Table, markdown, pieces
from .theory.predict import predict as predict_parameters
from .theory.prediction import PredictedColumn, Prediction, status_given
from .watching.limits import LIMIT
from .watching.poll import read_run
from .watching.snapshot import RunSnapshot
from .work.sweeps import stream, sweep_plan

Path_: TypeAlias = "str | PathLike[str]"
Side: TypeAlias = Literal["a", "b"]

_T = TypeVar("_T")


class Catalogue(dict[str, _T]):
    """Declarations by name."""

    def __repr__(self) -> str:
        return fill(f"<{len(self)}: {', '.join(self)}>", 110)


RULES = Catalogue(SCALE_RULES)
STATISTICS = Catalogue(STATISTIC)
_SHOWN = ("logit_std", "entropy", "effective_keys", "max_weight", "dead_rows")  # in a repr
_LINES, _WIDTH = 8, 160  # of a repr, below its first line


class Result:
    """A result that can be written as the command of its name writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Return what the command prints with `--format json`."""
        return cast("dict[str, Any]", json.loads("".join(pieces(self.table(), "json"))))

    def rows(self) -> list[dict[str, Any]]:
        """Return what the command prints with `--format csv`: `pandas.DataFrame(result.rows())`."""
        table = self.table()
        return [dict(zip(table.columns, row, strict=True)) for each in table.things for row in table.rows(each)]

    def table(self) -> Table[Any]:
        """Return the declaration of its JSON and CSV."""
        raise NotImplementedError

    def __repr__(self) -> str:
        first, *rest = filter(None, markdown(self.table().page()).splitlines())
        return _short(first, rest)


def _short(first: str, lines: Sequence[str]) -> str:
    """Return the first lines, each cut at a width that can be read."""
    more = [f"… {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return "\n".join(line[:_WIDTH] for line in (first, *lines[:_LINES], *more))


def _named(name: str, among: Iterable[str]) -> str:
    """Return a name that is among these; raise InputError if it is not."""
    if name not in (known := [*among]):
        raise InputError("{name}: unknown name{near}", name=name, near=did_you_mean(name, known))
    return name


def _parameters(changes: Mapping[str, Value]) -> Parameters:
    """Return parameters with these values; raise InputError for a name or a value that is not accepted."""
    return parameters_from({_named(name, FIELD): value for name, value in changes.items()})


# Random attention


@dataclass(frozen=True, eq=False, repr=False)
class Lab(Result):
    """A measurement of random attention with its theory: column A, by default unscaled, and column B."""

    measurement: Measurement[Parameters]
    prediction: Prediction

    @property
    def parameters(self) -> Parameters:
        """What was measured."""
        return self.measurement.subject

    @property
    def a(self) -> Mapping[str, Estimate]:
        """The statistics of A by name: value and standard error."""
        return self.measurement.columns[0].measured

    @property
    def b(self) -> Mapping[str, Estimate]:
        """The statistics of B by name: value and standard error."""
        return self.measurement.columns[1].measured

    def status(self, side: Side = "b") -> str | None:
        """Return the status of a column, such as `healthy`; None if no row sees two keys."""
        at = "ab".index(side)
        return status_given(self.prediction.columns[at].saturation, self.measurement.columns[at].measured)

    def table(self) -> Table[Any]:
        return report_table(self.measurement, self.prediction)

    def __repr__(self) -> str:
        names = column_names(self.measurement.columns)
        lines = [f"{'':16}{names[0]:>14}{names[1]:>14}"]
        for name in _SHOWN:
            values = (column.measured[name].value for column in self.measurement.columns)
            lines.append(
                f"{name:16}" + "".join(f"{'—' if value is None else f'{value:.4g}':>14}" for value in values)
            )
        p = self.parameters
        return "\n".join([f"<attention at d_k {p.d_k}, {p.n_keys} keys, {self.measurement.draws} draws>", *lines])


def measure(**parameters: Value) -> Lab:
    """Measure random attention, as `attn-tui report` does, and predict it exactly.

    `parameters` are those of the command line, with underscores: `d_k=64, n_keys=128, scale="sqrt_d_k"`. A scale is
    the name of a rule or a formula such as "1/sqrt(d)". Raise InputError if one is not accepted.
    """
    found = Measure(_parameters(parameters)).answer()
    return Lab(found.measurement, found.theory.prediction)


@dataclass(frozen=True, eq=False, repr=False)
class Exact(Result):
    """The exact values of column A, by default unscaled, and of B: `a, b = attn_tui.predict(…)`."""

    prediction: Prediction

    def __iter__(self) -> Iterator[PredictedColumn]:
        return iter(self.prediction.columns)

    def table(self) -> Table[Any]:
        return prediction_table(self.prediction)

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {column!r}" for name, column in zip("ab", self, strict=True))


def predict(**parameters: Value) -> Exact:
    """Return the exact values of A and of B: `.values` by statistic, None if unknown, and `.saturation`.

    They assume exact arithmetic. Raise InputError as `measure` does.
    """
    return Exact(predict_parameters(_parameters(parameters)))


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """Measurements over d_k, and over a second axis, each with its theory."""

    result: SweepResult

    @property
    def axes(self) -> Mapping[str, Sequence[Value]]:
        """The names and values of the axes of its arrays, in order; d_k, ascending, is the last."""
        found = self.result
        varied = {} if found.vary is None else {found.vary[0]: found.vary[1]}
        return {**varied, **({"n_keys": found.n_keys} if found.n_keys else {}), "d_k": found.d_ks}

    @cached_property
    def d_k(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """The widths, ascending: (d_k,)."""
        return np.array(self.result.d_ks)

    def values(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return a statistic of a column, with the shape of `axes`; NaN where it does not exist."""
        return self._array(measured[_named(statistic, STATISTIC)].value for measured in self._measured(side))

    def stderrs(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the standard errors of those values."""
        return self._array(measured[_named(statistic, STATISTIC)].stderr for measured in self._measured(side))

    def exact(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the exact values; NaN where theory knows none."""
        at, name = "ab".index(side), _named(statistic, STATISTIC)
        return self._array(theory.columns[at].values[name] for _, theory in self.result.points)

    def _measured(self, side: Side) -> Iterator[Mapping[str, Estimate]]:
        return (point.measurement.columns["ab".index(side)].measured for point, _ in self.result.points)

    def _array(self, found: Iterable[float | None]) -> FloatArray:
        shape = [len(values) for values in self.axes.values()]
        return np.array([np.nan if value is None else value for value in found]).reshape(shape)

    def table(self) -> Table[Any]:
        return sweep_table(self.result)

    def __repr__(self) -> str:
        axes = " × ".join(f"{len(values)} {name}" for name, values in self.axes.items())
        return (
            f"<sweep of {axes}, {self.d_k[0]} to {self.d_k[-1]}: .values(statistic, side), .stderrs, .exact, .axes>"
        )


def sweep(
    d_k: Sequence[int], n_keys: int | Sequence[int] | None = None, vary: Axis | None = None, **parameters: Value
) -> Sweep:
    """Measure random attention at several d_k, as `attn-tui sweep` does; other parameters are as for `measure`.

    Several `n_keys`, or `vary=("scale", ["sqrt_d_k", "d_k"])`, another parameter with its values, are a second axis.
    """
    given = {"n_keys": n_keys, "vary": vary, **parameters}
    called = call_of("sweep", [*d_k], **{name: value for name, value in given.items() if value is not None})
    widths, counts = sorted({*d_k}), sorted({*n_keys}) if isinstance(n_keys, Iterable) else []
    one = {} if n_keys is None else {"n_keys": counts[0] if counts else n_keys}
    p = _parameters({**parameters, **cast("dict[str, Value]", one), **({"d_k": widths[0]} if widths else {})})
    for each in widths:
        p.with_value("d_k", each)  # or raise
    points = [found for step in stream(sweep_plan(p, widths, vary=vary, n_keys=counts)) for found in step.found]
    return Sweep(SweepResult(p, widths, points, called, vary, n_keys=counts))


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Result, Generic[_T]):
    """What a command finds out, and the table that it prints."""

    value: _T
    declared: Table[Any]

    def table(self) -> Table[Any]:
        return self.declared


def _answered(question: Question[_T]) -> Answer[_T]:
    found = question.answer()
    return Answer(found, question.table(found))


# What needs no file


def cost(preset: str | None = None, **shape: Value | None) -> Answer[Cost]:
    """Count parameters, bytes of the KV cache and FLOPs of a layer, as `attn-tui cost` does.

    `preset` names a well-known model; `shape` are the options of the command, such as d_model=4096, heads=32. Raise
    InputError if one is not accepted.
    """
    of = None if preset is None else PRESETS[_named(preset, PRESETS)]
    known = [field.name for field in SHAPE_FIELDS]
    values = {_named(name, known): value for name, value in shape.items()}
    return _answered(CountCost(replace(Shape() if of is None else of.layer, **values), of))


def claims(*ids: str) -> Answer[Sequence[Outcome]]:
    """Test claims of study notes, by default all, as `attn-tui claims` does; this takes some seconds."""
    known = all_claims().items
    named = [_named(each, known) for each in ids] or known
    question = ReadItems(tuple(each for each in known if each in named))
    found = question.answer()
    return Answer([each.outcome for each in found], question.table(found))


def learn(item: str | int) -> Answer[Card]:
    """Return a step of the tour, 1 to 12, a question, "q1" to "q21", or a bug, "b1" to "b9", with figures of now."""
    items = {each.word: each for each in ITEMS if each.kind != "claim"}
    question = ReadItems((items[_named(str(item), items)].id,))
    found = question.answer()
    return Answer(found[0].card, question.table(found))


def watch(
    run: Path_, *, step: int | None = None, baseline: int | None = None, max_logit: float = LIMIT
) -> Answer[RunSnapshot]:
    """Read the newest step of a training run, or another one, as `attn-tui watch --once` does.

    What cannot be read of it is a warning. Raise InputError if nothing can be.
    """

    def heard(_: float, notes: Sequence[str]) -> None:
        for note in notes:
            warn(note, RuntimeWarning, stacklevel=4)

    found = read_run(Path(run), max_logit, step, baseline, heard)
    return Answer(found, watch_table(str(run), found))


# Captures


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeasurement(Result):
    """The statistics of one head under one scale."""

    capture: CaptureFile
    measurement: Measurement[HeadSubject]

    @property
    def measured(self) -> Mapping[str, Estimate]:
        """The statistics by name: value and standard error over texts."""
        return self.measurement.columns[0].measured

    def table(self) -> Table[Any]:
        return inspect_table([self.capture], [(self.measurement, None)], 1)

    def __repr__(self) -> str:
        known = [(name, self.measured[name].value) for name in _SHOWN]
        values = ", ".join(f"{name} {value:.4g}" for name, value in known if value is not None)
        return f"<× {self.measurement.columns[0].multiplier:.4g}: {values}>"


@dataclass(frozen=True, eq=False, repr=False)
class HeadReplay(Result):
    """One head under every scale rule, the file's own first."""

    capture: CaptureFile
    replay: Replay

    @property
    def rules(self) -> Sequence[RuleReplay]:
        """What each rule would have done, rules of the same weights together."""
        return self.replay.replayed

    @property
    def remedy(self) -> RuleReplay | None:
        """The rule of least divergence that makes a saturated head healthy; None if none does or it is not."""
        return self.replay.remedy

    def table(self) -> Table[Any]:
        return replay_table([self.capture], [self.replay], 1)

    def __repr__(self) -> str:
        remedy = "none" if self.remedy is None else ", ".join(self.remedy.rules)
        return f"<{self.replay.layer.place} head {self.replay.head} under {len(self.rules)} rules; remedy: {remedy}>"


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """One head of a capture."""

    file: CaptureFile
    layer: Layer
    head: int

    def measure(self, scale: str | None = None) -> HeadMeasurement:
        """Return its statistics as `attn-tui inspect` does, at the file's scale or under a rule or formula."""
        return HeadMeasurement(self.file, measure_head(self.file, self.layer, self.head, [self._rule(scale)]))

    def weights(self, scale: str | None = None) -> FloatArray:
        """Return the attention weights, (batch, queries, keys), at the file's scale or under a rule or formula."""
        data = read_head(self.file, self.layer, self.head)
        return computation(self._rule(scale), self.layer, data).evaluate(data.q, data.k).softmax.weights

    def diagnose(self, expect: str | float | None = None) -> Diagnosis:
        """Return which multiplier was used, and what else was done to the head."""
        question = DiagnoseCaptures(
            paths=(self.file.path,), opened=(self.file,), expect=expect, only=(self.layer, self.head)
        )
        return Diagnosis(self.file, question.answer())

    def figures(self) -> HeadFigures:
        """Return the figures that the limits of `check` apply to."""
        own = file_configuration(self.file)
        *_, (_, found) = head_figures(self.file, self.layer, self.head, own, None)
        assert found is not None
        return found

    def compare(self, test: Head) -> HeadComparison:
        """Return the stages of this head, the reference, and of another one, and where they differ."""
        return compare_heads(self.file, test.file, HeadPair(self.layer, self.head, test.layer, test.head))

    def replay(self) -> HeadReplay:
        """Return what every scale rule would have done to it."""
        return HeadReplay(self.file, replay(self.file, self.layer, self.head))

    def _rule(self, scale: str | None) -> Rule:
        return file_rule(self.layer) if scale is None else named_rule(scale, self.layer)

    def __repr__(self) -> str:
        layer = self.layer
        return f"<{layer.place} head {self.head}: {layer.queries} × {layer.keys}, d_k {layer.d_k}>"


@dataclass(frozen=True, eq=False, repr=False)
class Capture:
    """A file of captured heads; `capture[layer, head]` is a head, by the layer's number in the model, or its name.

    If several layers have this number or this name, that is a KeyError.
    """

    file: CaptureFile

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers, in order of their number, with sizes and metadata."""
        return self.file.layers

    @property
    def notes(self) -> Sequence[str]:
        """Everything that was assumed."""
        return self.file.notes

    def __getitem__(self, place: tuple[int | str, int]) -> Head:
        at, head = place
        found = [each for each in self.layers if at in (each.index, each.name)]
        if len(found) > 1:
            other = found[0].name if at == found[0].index else found[0].index
            raise KeyError(f"{len(found)} layers are {at!r}: ask for one as {other!r}, or iterate over the capture")
        if not found or not 0 <= head < found[0].heads:
            raise KeyError(f"no layer {at} with a head {head}")
        return Head(self.file, found[0], head)

    def __iter__(self) -> Iterator[Head]:
        return (Head(self.file, layer, head) for layer in self.layers for head in range(layer.heads))

    def __len__(self) -> int:
        return sum(layer.heads for layer in self.layers)

    def __repr__(self) -> str:
        return repr(self.file)


def open(
    path: Path_, *, axes: str | None = None, mask_true: Meaning | None = None, tensor: str | None = None
) -> Capture:
    """Open a file or folder of captured heads, as `attn-tui inspect` does; raise InputError if it cannot be read.

    `axes` names the axes of q and k, such as "batch,token,head,d_k"; `mask_true` says what True means in a mask.
    """
    return Capture(open_capture(Path(path), axes, mask_true, tensor))


# Verdicts


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """The verdicts on the heads of a capture."""

    file: CaptureFile
    heads: Sequence[HeadVerdict]

    @property
    def verdict(self) -> Verdict:
        """The verdict on the only head, that of `capture[layer, head].diagnose()`; several have none in common."""
        if len(self.heads) != 1:
            raise AttributeError(
                f"{len(self.heads)} heads have a verdict each: iterate over .heads, "
                "or ask capture[layer, head].diagnose()"
            )
        return self.heads[0].verdict

    @property
    def healthy(self) -> bool:
        """Whether every head is healthy: undecided is not."""
        return all(each.verdict.verdict == "healthy" for each in self.heads)

    def table(self) -> Table[Any]:
        return diagnosis_table([self.file], self.heads, len(self.heads))

    def __str__(self) -> str:
        """Return a line for each fault, whatever the number of its heads, and for what is not decided."""
        found = (each for each in groups_of(self.heads) if each.rule != "healthy")
        return "\n".join(f"{each.fault.label} {each.sentence}" for each in found)

    def __repr__(self) -> str:
        return _short(f"<{verdict_counts(self.heads)}>", str(self).splitlines())


def diagnose(
    source: Path_ | Capture | Mapping[str, npt.ArrayLike],
    *,
    expect: str | float | None = None,
    config: Mapping[str, object] | None = None,
) -> Diagnosis:
    """Find out which multiplier each head really used, as `attn-tui diagnose` does.

    `source` is a file, a capture, or arrays by the names that a file has, such as q, k [batch, heads, tokens, d_k],
    v, o and lse. `expect` is what is intended: a rule, a number or a formula of d; `config` is the model
    configuration, instead of the file's. Raise InputError if one is not accepted or a head cannot be read.
    """
    if isinstance(source, Mapping):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "arrays.npz"
            np.savez(path, allow_pickle=False, **{name: np.asarray(each) for name, each in source.items()})
            return diagnose(path, expect=expect, config=config)
    file = _file(source)
    question = DiagnoseCaptures(paths=(file.path,), opened=(file,), expect=expect, given=_given(config))
    return Diagnosis(file, question.answer())


def _file(source: Path_ | Capture) -> CaptureFile:
    return source.file if isinstance(source, Capture) else open_capture(Path(source))


def _given(config: Mapping[str, object] | None) -> Configuration | None:
    return None if config is None else configuration_of(config, "config")


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
        *lines, counts = verdict(self.comparison)
        return _short(f"<{counts}>", lines)


def compare(reference: Path_ | Capture, test: Path_ | Capture) -> Differences:
    """Compare two captures stage by stage, as `attn-tui compare` does; raise InputError if one cannot be read."""
    one, other = _file(reference), _file(test)
    question = CompareCaptures(reference=one.path, test=other.path, opened=(one, other))
    return Differences(one, other, question.answer())


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
        lines = [f"{each.fault.label} {each.sentence}" for each in self.checked.groups]
        return _short(f"<{check_counts([self.checked])}>", lines)


def check(
    source: Path_ | Capture,
    *,
    expect: str | float | None = None,
    strict: bool = False,
    config: Mapping[str, object] | None = None,
    allow: Sequence[str] = (),
    **limits: float,
) -> Check:
    """Check a capture against limits and against the expected scale, as `attn-tui check` does.

    `limits` are those of the command: max_logit, min_spread, …; `allow` are patterns such as "*:max-logit". Raise
    InputError if one is not accepted or a head cannot be read.
    """
    file = _file(source)
    limits = {_named(name, LIMITS): limit(value, name) for name, value in limits.items()}
    question = CheckCaptures(
        paths=(file.path,), opened=(file,), expect=expect, given=_given(config), allow=tuple(allow)
    )
    [checked] = replace(question, **limits).answer()
    return Check(checked, strict)
