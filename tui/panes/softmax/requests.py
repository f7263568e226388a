"""The request of the Softmax pane: a worked example under A and B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from ....core.attention.worked_example import (
    EXAMPLE_FIELD,
    Example,
    MultiplierCurves,
    WorkedExample,
    multiplier_curves,
    relevant,
    scores_text,
    work_out_sides,
)
from ....core.parameters import Parameters
from ...compute.question import Question, parameter_options
from ...compute.request import Cache, Priority, Work

if TYPE_CHECKING:
    from ....core.program.text import Dialect
    from ....core.tables.table import Table


class Sides(Protocol):
    """A worked example: columns A and B."""

    @property
    def sides(self) -> tuple[WorkedExample, WorkedExample]:
        """Both columns."""
        ...


@dataclass(frozen=True)
class WorkOut(Question[Sides]):
    """Work out an example under A and B of the parameters. Answered by WorkedSides."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    example: Example
    parameters: Parameters

    def work(self, cache: Cache) -> Work:
        a, b = work_out_sides(self.example, self.parameters)
        yield WorkedSides(a, b, multiplier_curves(self.example, (a.multiplier, b.multiplier)))

    @property
    def words(self) -> Sequence[str]:
        words, usual = ["softmax"], Example()
        if self.example.scores != usual.scores:
            words.append(f"--scores={scores_text(self.example.scores)}")
        for name in ("temperature", "shift"):
            value, field = getattr(self.example, name), EXAMPLE_FIELD[name]
            if value != getattr(usual, name):
                words += [field.option, field.format(value)]
        return [*words, *parameter_options(relevant(self.parameters))]

    @property
    def file_name(self) -> str:
        return "softmax"

    def table(self, answer: Sides) -> Table[Any]:
        from ....core.tables.softmax import softmax_table

        return softmax_table(self.example, relevant(self.parameters), answer.sides)

    def code(self, answer: Sides, dialect: Dialect) -> str:
        from ....core.program.lab import softmax_code

        return softmax_code(self.example, relevant(self.parameters), answer.sides, dialect, self.line())


@dataclass(frozen=True)
class WorkedSides:
    """Both columns of a worked example, and weights under multipliers around theirs."""

    a: WorkedExample
    b: WorkedExample
    curves: MultiplierCurves
