"""The request of the Softmax pane: a worked example under A and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....core.attention.worked_example import (
    Example,
    MultiplierCurves,
    WorkedExample,
    multiplier_curves,
    work_out_sides,
)
from ....core.parameters import Parameters
from ...compute.request import Cache, Priority, Request, Work


@dataclass(frozen=True)
class WorkOut(Request):
    """Work out an example under A and B of the parameters. Answered by WorkedSides."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    example: Example
    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        a, b = work_out_sides(self.example, self.parameters)
        yield WorkedSides(a, b, multiplier_curves(self.example, (a.multiplier, b.multiplier)))


@dataclass(frozen=True)
class WorkedSides:
    """Both columns of a worked example, and weights under multipliers around theirs."""

    a: WorkedExample
    b: WorkedExample
    curves: MultiplierCurves
