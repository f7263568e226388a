"""What `import attn_tui` offers: the same numbers as the commands, as objects.

Results print in a few lines, and `to_dict()` is what the command's `--format json` prints.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, TypeAlias, TypeVar, cast

import numpy as np

from .arrays import FloatArray
from .captures.capture import HeadSubject, Layer, Meaning
from .captures.files import NotFiniteError
from .captures.head import CaptureFile, read_head
from .captures.heads import measure_head
from .captures.reader import open_capture
from .captures.rules import Rule, computation, file_rule, named_rule
from .diagnosis.check import Limits, findings
from .diagnosis.check import measure as head_figures
from .diagnosis.comparing.compare import compare as compare_captures
from .diagnosis.comparing.results import Comparison
from .diagnosis.configuration import Configuration, configuration_of, expecting
from .diagnosis.disagreement import disagreements
from .diagnosis.reading import file_configuration, read_subject
from .diagnosis.replay import Replay, Replayed, replay
from .diagnosis.subject import Facts
from .diagnosis.verdict import Verdict, not_finite
from .diagnosis.verdict import diagnose as diagnose_subject
from .errors import InputError, did_you_mean
from .lab.experiment import run
from .parameters import FIELD, Parameters, Value, parameters_from
from .scales import SCALE_RULES
from .statistics.catalogue import STATISTIC
from .statistics.measurement import Estimate, Measurement, column_names
from .tables.diagnosis import Checked, Diagnosed, check_table, compare_table, diagnosis_table
from .tables.heads import inspect_table, replay_table
from .tables.lab import SweepResult, report_table, sweep_table
from .tables.table import Table, pieces
from .theory.predict import predict as predict_parameters
from .theory.prediction import PredictedColumn, Prediction, status_given
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


class Result:
    """A result that can be written as the command of its name writes it."""

    def to_dict(self) -> dict[str, Any]:
        """Return what the command prints with `--format json`."""
        return cast("dict[str, Any]", json.loads("".join(pieces(self.table(), "json"))))

    def table(self) -> Table[Any]:
        """Return the declaration of its JSON and CSV."""
        raise NotImplementedError


def _parameters(changes: Mapping[str, Value]) -> Parameters:
    """Return parameters with these values; raise InputError for a name or a value that is not accepted."""
    for name in changes:
        if name not in FIELD:
            raise InputError("{name}: unknown parameter{near}", name=name, near=did_you_mean(name, FIELD))
    return parameters_from(changes)


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
    p = _parameters(parameters)
    return Lab(run(p), predict_parameters(p))


def predict(**parameters: Value) -> tuple[PredictedColumn, PredictedColumn]:
    """Return the exact values of A and of B: `.values` by statistic, None if unknown, and `.saturation`.

    They assume exact arithmetic. Raise InputError as `measure` does.
    """
    a, b = predict_parameters(_parameters(parameters)).columns
    return a, b


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """Measurements over d_k, each with its theory."""

    result: SweepResult

    @cached_property
    def d_k(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """The widths, ascending: (points,)."""
        return np.array([point.parameters.d_k for point, _ in self.result.points])

    def values(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return a statistic of a column over d_k, (points,); NaN where it does not exist."""
        return self._numbers(statistic, side, 0)

    def stderrs(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the standard errors of those values, (points,)."""
        return self._numbers(statistic, side, 1)

    def exact(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the exact values, (points,); NaN where theory knows none."""
        at = "ab".index(side)
        known = [theory.columns[at].values[_statistic(statistic)] for _, theory in self.result.points]
        return np.array([np.nan if value is None else value for value in known])

    def _numbers(self, statistic: str, side: Side, part: int) -> FloatArray:
        columns = [point.measurement.columns["ab".index(side)] for point, _ in self.result.points]
        found = [column.measured[_statistic(statistic)][part] for column in columns]
        return np.array([np.nan if value is None else value for value in found])

    def table(self) -> Table[Any]:
        return sweep_table(self.result)

    def __repr__(self) -> str:
        first, last = self.d_k[0], self.d_k[-1]
        return f"<sweep of {len(self.d_k)} d_k from {first} to {last}: .values(statistic, side), .stderrs, .exact>"


def sweep(d_k: Sequence[int], **parameters: Value) -> Sweep:
    """Measure random attention at several d_k, as `attn-tui sweep` does; other parameters are as for `measure`."""
    widths = sorted({*d_k})
    p = _parameters({**parameters, **({"d_k": widths[0]} if widths else {})})
    for each in widths:
        p.with_value("d_k", each)  # or raise
    points = [found for step in stream(sweep_plan(p, widths)) for found in step.found]
    return Sweep(SweepResult(p, widths, points, ""))


def _statistic(name: str) -> str:
    if name not in STATISTIC:
        raise InputError("{name}: unknown statistic{near}", name=name, near=did_you_mean(name, STATISTIC))
    return name


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
    def rules(self) -> Sequence[Replayed]:
        """What each rule would have done, rules of the same weights together."""
        return self.replay.replayed

    @property
    def remedy(self) -> Replayed | None:
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

    def diagnose(self, expect: str | float | None = None) -> Verdict:
        """Return which multiplier was used, and what else was done to the head."""
        return _verdict(self.file, self.layer, self.head, expect, None)

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
    """A file of captured heads; `capture[layer, head]` is a head, by the layer's number in the model."""

    file: CaptureFile

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers, in order of their number, with sizes and metadata."""
        return self.file.layers

    @property
    def notes(self) -> Sequence[str]:
        """Everything that was assumed."""
        return self.file.notes

    def __getitem__(self, place: tuple[int, int]) -> Head:
        index, head = place
        layer = next((each for each in self.layers if each.index == index), None)
        if layer is None or not 0 <= head < layer.heads:
            raise KeyError(f"no layer {index} with a head {head}")
        return Head(self.file, layer, head)

    def __iter__(self) -> Iterator[Head]:
        return (Head(self.file, layer, head) for layer in self.layers for head in range(layer.heads))

    def __len__(self) -> int:
        return sum(layer.heads for layer in self.layers)

    def __repr__(self) -> str:
        return f"<capture {self.file.path.name}: {len(self.layers)} layers, {len(self)} heads>"


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
    heads: Sequence[Diagnosed]

    @property
    def healthy(self) -> bool:
        """Whether every head is healthy: undecided is not."""
        return all(each.verdict.verdict == "healthy" for each in self.heads)

    def table(self) -> Table[Any]:
        return diagnosis_table([self.file], self.heads, len(self.heads))

    def __str__(self) -> str:
        """Return a line for each head that is not healthy."""
        return "\n".join(
            f"{each.layer.place} head {each.head}: {verdict_words(each.verdict)}"
            for each in self.heads
            if each.verdict.verdict != "healthy"
        )

    def __repr__(self) -> str:
        counts = Counter(each.verdict.verdict for each in self.heads)
        said = ", ".join(f"{count} {word}" for word, count in counts.items())
        lines = str(self).splitlines()
        more = [f"… {len(lines) - 8} more"] if len(lines) > 8 else []
        return "\n".join([f"<{len(self.heads)} heads: {said}>", *lines[:8], *more])


def verdict_words(verdict: Verdict) -> str:
    """Return a verdict in a line: `scale-twice: × 0.03125, expected × 0.1768 …`."""
    return ": ".join(each for each in (verdict.cause or verdict.verdict, verdict.says) if each)


def diagnose(
    source: Path_ | Capture, *, expect: str | float | None = None, config: Mapping[str, object] | None = None
) -> Diagnosis:
    """Find out which multiplier each head really used, as `attn-tui diagnose` does.

    `expect` is what is intended: a rule, a number or a formula of d; `config` is the model configuration, instead
    of the file's. Raise InputError if one is not accepted or a head cannot be read.
    """
    file = _file(source)
    given = None if config is None else configuration_of(dict(config), "config")
    heads = ((layer, head) for layer in file.layers for head in range(layer.heads))
    return Diagnosis(file, [Diagnosed(*each, _verdict(file, *each, expect, given)) for each in heads])


def _file(source: Path_ | Capture) -> CaptureFile:
    return source.file if isinstance(source, Capture) else open_capture(Path(source))


def _verdict(
    file: CaptureFile, layer: Layer, head: int, expect: str | float | None, given: Configuration | None
) -> Verdict:
    own = file_configuration(file)
    given = expecting(expect, given, own)
    try:
        return diagnose_subject(read_subject(file, layer, head, own, given), given)
    except NotFiniteError as error:
        return not_finite(Facts(layer.d_k, layer.scale), str(error))


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
        more = [f"… {len(lines) - 8} more"] if len(lines) > 8 else []
        return "\n".join([f"<{len(found)} of {len(self.comparison.heads)} heads differ>", *lines[:8], *more])


def compare(reference: Path_ | Capture, test: Path_ | Capture) -> Differences:
    """Compare two captures stage by stage, as `attn-tui compare` does; raise InputError if one cannot be read."""
    one, other = _file(reference), _file(test)
    return Differences(one, other, compare_captures(one, other))


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result):
    """The findings of a check."""

    checked: Checked
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
        more = [f"… {len(lines) - 8} more"] if len(lines) > 8 else []
        counts = f"{judged['healthy']} healthy, {len(lines)} findings, {self.checked.not_judged} not judged"
        return "\n".join([f"<{len(self.checked.heads)} heads: {counts}>", *lines[:8], *more])


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
    known = {each.name for each in fields(Limits)} - {"set"}
    for name in limits:
        if name not in known:
            raise InputError("{name}: unknown limit{near}", name=name, near=did_you_mean(name, known))
    own = file_configuration(file)
    given = expecting(expect, None if config is None else configuration_of(dict(config), "config"), own)
    heads = [
        figures
        for layer in file.layers
        for head in range(layer.heads)
        for _, figures in head_figures(file, layer, head, own, given)
        if figures is not None
    ]
    found = findings(heads, Limits(**limits, set=frozenset(limits)), disagreements(file.layers, given or own))
    allowed = [each for each in found if each.allowed(allow)]
    return Check(Checked(file, heads, [each for each in found if each not in allowed], allowed), strict)
