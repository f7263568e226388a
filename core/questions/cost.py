"""The question of what a layer costs. Its answer is counted at once, from no parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attention.cost import SHAPE_FIELDS, Cost, LayerShape, cost
from ..attention.presets import Preset
from ..field import differing, words_of
from .question import Question

if TYPE_CHECKING:
    from ..program.text import Dialect
    from ..tables.table import Table
    from ..work.part import Part


@dataclass(frozen=True)
class CountCost(Question[Cost]):
    """What a layer costs that a preset may be the start of."""

    layer: LayerShape
    preset: Preset | None = None

    def parts(self) -> Sequence[Part[Any]]:
        return ()

    def result(self, results: Sequence[Any]) -> Cost:
        return cost(self.layer)

    @property
    def words(self) -> Sequence[str]:
        words, usual = ["cost"], LayerShape()
        if self.preset is not None:
            words, usual = ["cost", "--model", self.preset.name], self.preset.layer
        changed = {name: self.layer.shape[name] for name in differing(SHAPE_FIELDS, self.layer, usual)}
        return [*words, *words_of(SHAPE_FIELDS, changed)]  # of a value that is not set, the one that follows

    @property
    def file_name(self) -> str:
        if self.preset is not None:
            return f"heads-{self.preset.name}"
        return f"heads-d{self.layer.d_model}-h{self.layer.heads}"

    def table(self, answer: Cost) -> Table[Any]:
        from ..tables.cost import cost_table

        return cost_table(answer, self.preset)

    def code(self, answer: Cost, dialect: Dialect) -> str:
        from ..program.library import cost_code

        return cost_code(answer, self.line())
