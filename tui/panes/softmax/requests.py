"""The request of the Softmax pane: a worked example under A and B."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ....core.attention.worked_example import Example, WorkedExample, work_out_sides
from ....core.parameters import Parameters
from ...compute.request import Cache, Priority, Request, Work


@dataclass(frozen=True)
class WorkOut(Request):
    """Work out an example under A and B of the parameters. Answered by WorkedSides."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    example: Example
    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        yield WorkedSides(*work_out_sides(self.example, self.parameters))


@dataclass(frozen=True)
class WorkedSides:
    """Both columns of a worked example."""

    a: WorkedExample
    b: WorkedExample
