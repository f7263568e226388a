"""The question of the Softmax pane: a worked example under A and B."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..attention.worked_example import (
    EXAMPLE_FIELDS,
    Example,
    MultiplierCurves,
    WorkedExample,
    multiplier_curves,
    relevant,
    scores_text,
    start_scores,
    work_out_sides,
)
from ..field import differing, words_of
from ..parameters import Parameters
from ..work.part import Part, Steps
from .question import Question, parameter_options
from .request import Priority

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.table import Table


@dataclass(frozen=True, eq=False)
class SoftmaxSteps:
    """An example worked out under A and B."""

    example: Example
    parameters: Parameters  # with the scale rule and the number format
    sides: tuple[WorkedExample, WorkedExample]  # of A and B
    curves: MultiplierCurves | None = None  # weights under multipliers around those of both sides
    remark: str = ""  # sentences on differences from the Lab


def work_out(example: Example, p: Parameters) -> Steps[SoftmaxSteps]:
    """Work out an example under A and B of the parameters."""
    sides = work_out_sides(example, p)
    curves = multiplier_curves(example, (sides[0].multiplier, sides[1].multiplier))
    yield 1.0, (SoftmaxSteps(example, p, sides, curves),)


@dataclass(frozen=True)
class WorkOut(Question[SoftmaxSteps]):
    """Work out an example under A and B of the parameters."""

    PRIORITY: ClassVar[Priority] = Priority.KEYPRESS
    example: Example
    parameters: Parameters

    def parts(self) -> Sequence[Part[SoftmaxSteps]]:
        return [Part(work_out, (self.example, self.parameters), 0.01)]

    @property
    def words(self) -> Sequence[str]:
        words, usual = ["softmax"], Example()
        if self.example.scores != start_scores(relevant(self.parameters).d_k):
            words.append(f"--scores={scores_text(self.example.scores)}")
        others = words_of(EXAMPLE_FIELDS[1:], differing(EXAMPLE_FIELDS, self.example, usual))
        return [*words, *others, *parameter_options(relevant(self.parameters))]

    @property
    def file_name(self) -> str:
        return "softmax"

    def table(self, answer: SoftmaxSteps) -> Table[Any]:
        from ..tables.softmax import softmax_table

        return softmax_table(self.example, relevant(self.parameters), answer.sides)

    def code(self, answer: SoftmaxSteps, dialect: Dialect) -> str:
        from ..program.lab import softmax_code

        return softmax_code(self.example, relevant(self.parameters), answer.sides, dialect, self.line())
