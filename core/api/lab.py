"""Random attention in the library: measured, predicted exactly, and swept over d_k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, SupportsIndex, TypeAlias

import numpy as np

from ..arrays import FloatArray
from ..errors import InputError, not_one_of
from ..parameters import FIELD, Parameters, Value, parameters_from
from ..program.library import call_of
from ..questions.lab import Measure
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate, Measurement, column_names
from ..tables.lab import SweepResult, prediction_table, report_table, sweep_table
from ..tables.table import Table
from ..theory.predict import predict as predict_parameters
from ..theory.prediction import PredictedColumn, Prediction, status_given
from ..work.engines import all_results
from ..work.sweeps import Fold, parts, sweep_plan
from .result import SHOWN, Result, known_name, own_number

Side: TypeAlias = Literal["a", "b"]


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
        at = _column(side)
        return status_given(self.prediction.columns[at].saturation, self.measurement.columns[at].measured)

    def table(self) -> Table[Any]:
        return report_table(self.measurement, self.prediction)

    def __repr__(self) -> str:
        names = column_names(self.measurement.columns)
        lines = [f"{'':16}{names[0]:>14}{names[1]:>14}"]
        for name in SHOWN:
            values = (column.measured[name].value for column in self.measurement.columns)
            lines.append(
                f"{name:16}" + "".join(f"{'—' if value is None else f'{value:.4g}':>14}" for value in values)
            )
        p = self.parameters
        return "\n".join([f"<attention at d_k {p.d_k}, {p.n_keys} keys, {self.measurement.draws} draws>", *lines])


def measure(**parameters: Any) -> Lab:
    """Measure random attention, as `attn-tui report` does, and predict it exactly.

    `parameters` are those of the command line, with underscores: `d_k=64, n_keys=128, scale="sqrt_d_k"`. A scale is
    the name of a rule, a number or a formula such as "1/sqrt(d)". Raise InputError if one is not accepted.
    """
    answer = Measure(_parameters(parameters)).answer()
    return Lab(answer.measurement, answer.theory.prediction)


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


def predict(**parameters: Any) -> Exact:
    """Return the exact values of A and of B: `.values` by statistic, None if unknown, and `.saturation`.

    They assume exact arithmetic. Raise InputError as `measure` does.
    """
    return Exact(predict_parameters(_parameters(parameters)))


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """Measurements over d_k, and over a second axis, each with its theory."""

    result: SweepResult
    called: str  # the call that returned it

    @property
    def axes(self) -> Mapping[str, Sequence[Value]]:
        """The names and values of the axes of its arrays, in order; d_k, ascending, is the last."""
        swept = self.result
        varied = {} if swept.vary is None else {swept.vary[0]: swept.vary[1]}
        return {**varied, **({"n_keys": swept.n_keys} if swept.n_keys else {}), "d_k": swept.d_ks}

    @cached_property
    def d_k(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """The widths, ascending: (d_k,)."""
        return np.array(self.result.d_ks)

    def values(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return a statistic of a column, with the shape of `axes`; NaN where it does not exist."""
        return self._array(measured[known_name(statistic, STATISTIC)].value for measured in self._measured(side))

    def stderrs(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the standard errors of those values."""
        return self._array(measured[known_name(statistic, STATISTIC)].stderr for measured in self._measured(side))

    def exact(self, statistic: str, side: Side = "b") -> FloatArray:
        """Return the exact values; NaN where theory knows none."""
        at, name = _column(side), known_name(statistic, STATISTIC)
        return self._array(theory.columns[at].values[name] for _, theory in self.result.points)

    def _measured(self, side: Side) -> Iterator[Mapping[str, Estimate]]:
        return (point.measurement.columns[_column(side)].measured for point, _ in self.result.points)

    def _array(self, numbers: Iterable[float | None]) -> FloatArray:
        shape = [len(values) for values in self.axes.values()]
        return np.array([np.nan if value is None else value for value in numbers]).reshape(shape)

    def table(self) -> Table[Any]:
        return sweep_table(self.result, self.called)

    def __repr__(self) -> str:
        axes = " × ".join(f"{len(values)} {name}" for name, values in self.axes.items())
        return (
            f"<sweep of {axes}, {self.d_k[0]} to {self.d_k[-1]}: .values(statistic, side), .stderrs, .exact, .axes>"
        )


def sweep(
    d_k: Iterable[SupportsIndex],
    n_keys: SupportsIndex | Iterable[SupportsIndex] | None = None,
    vary: tuple[str, Iterable[Value]] | None = None,
    **parameters: Any,
) -> Sweep:
    """Measure random attention at several d_k, as `attn-tui sweep` does; other parameters are as for `measure`.

    Several `n_keys`, or `vary=("scale", ["sqrt_d_k", "d_k"])`, another parameter with its values, are a second axis.
    """
    asked: list[int] = [*map(own_number, d_k)]
    keys: Any = own_number(n_keys)
    several = hasattr(keys, "__iter__")
    counts: list[int] = sorted({*map(own_number, keys)}) if several else []
    varied = None if vary is None else (vary[0], [_own_value(vary[0], value) for value in vary[1]])
    given = {"n_keys": counts if several else keys, "vary": varied, **parameters}
    called = call_of("sweep", asked, **{name: value for name, value in given.items() if value is not None})
    widths = sorted({*asked})
    one = {"n_keys": counts[0] if counts else given["n_keys"]} if n_keys is not None else {}
    p = _parameters({**parameters, **one, **({"d_k": widths[0]} if widths else {})})
    for width in widths:
        p.with_value("d_k", width)  # or raise
    plan = sweep_plan(p, widths, vary=varied, n_keys=counts)
    points = Fold(plan).add(all_results(parts(plan)))
    return Sweep(SweepResult(p, widths, points, varied, n_keys=counts), called)


def _column(side: str) -> int:
    """Return the number of a column; raise InputError if there is no such column."""
    if side not in ("a", "b"):
        raise InputError("side: {reason}", reason=not_one_of(str(side), ("a", "b")))
    return "ab".index(side)


def _own_value(name: str, value: Any) -> Value:
    """Return the value of a parameter as Python's; of a scale that is a number, as the formula."""
    value = own_number(value)
    return repr(value) if name == "scale" and _is_number(value) else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _parameters(changes: Mapping[str, Any]) -> Parameters:
    """Return parameters with these values; raise InputError for a name or a value that is not accepted."""
    values = {known_name(name, FIELD): own_number(value) for name, value in changes.items()}
    if _is_number(values.get("scale")):
        if "multiplier" in values:
            raise InputError("scale: {scale} is a multiplier already; leave out multiplier", scale=values["scale"])
        values |= {"scale": "custom", "multiplier": values["scale"]}
    return parameters_from(values)
