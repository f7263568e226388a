"""The request of the Softmax pane: a worked example, unscaled and scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....core.attention.worked_example import Example, WorkedExample, multiplier_of, work_out
from ....core.parameters import Parameters
from ...compute.request import Cache, Priority, Request, Work


@dataclass(frozen=True)
class WorkOut(Request):
    """Work out an example, unscaled and with the parameters' rule. Answered by WorkedSides."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    example: Example
    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        c, number_format = multiplier_of(self.parameters), self.parameters.precision
        yield WorkedSides(*(work_out(self.example, each, number_format) for each in (1.0, c)))


@dataclass(frozen=True)
class WorkedSides:
    """Both columns of a worked example."""

    unscaled: WorkedExample
    scaled: WorkedExample
