"""The other requests of the Sweep pane, and the ranges that it offers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ....core.grid import parse_grid
from ....core.message import message
from ....core.models import MODEL_WIDTHS, MODELS, landmarks
from ....core.parameters import FIELD, Parameters, usual_of
from ....core.questions.lab import Measure
from ....core.questions.request import Cache, Request, Work

_WIDTHS = ",".join(map(str, MODEL_WIDTHS))


@dataclass(frozen=True)
class GridRange:
    """A range of a swept parameter, written as on the command line."""

    text: str
    name: str = "d_k"  # of the parameter: d_k or n_keys

    @property
    def title(self) -> str:
        """The range in words."""
        name, low, high = FIELD[self.name].label, self.values[0], self.values[-1]
        if len(self.values) > high - low:
            return message("{name} {low} to {high}, every one", name=name, low=low, high=high)
        return message("{name} {low} to {high}", name=name, low=low, high=high)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values, ascending."""
        return parse_grid(self.text, FIELD[self.name])


GRIDS = (
    GridRange(f"1:4096:log24,{_WIDTHS},1024,2048"),
    GridRange(f"1:512:log20,{_WIDTHS.removesuffix(',576')}"),
    GridRange("1:512"),
    GridRange(f"1:16384:log28,{_WIDTHS},1024,2048,4096,8192"),
    GridRange("2:8192:log13", "n_keys"),  # powers of two, whose exact values are tabulated
    GridRange("2:512:log9", "n_keys"),
)


def landmarks_of(name: str, values: Iterable[int]) -> list[int]:
    """Return the values that deserve their own row: widths of models, or powers of two as numbers of keys."""
    return landmarks(values) if name == "d_k" else [n for n in values if n.bit_count() == 1]


def models_at(name: str, value: int) -> str:
    """Return the models with this width, or with a context of this length; empty if there are none."""
    if name == "d_k":
        return MODEL_WIDTHS.get(value, "")
    return ", ".join([model.title for model in MODELS.values() if model.context == value][:2])


def at_any(name: str, parameters: Parameters) -> Parameters:
    """Return the parameters that a sweep over `name` depends on: all but that one."""
    return parameters.with_value(name, getattr(usual_of(parameters), name))


@dataclass(frozen=True)
class MeasureOthers(Request):
    """Measure other settings at the cursor, one after another. Answered by a Report for each."""

    each: tuple[Parameters, ...]

    def work(self, cache: Cache) -> Work:
        for parameters in self.each:
            yield from Measure(parameters).work(cache)
