"""The question of which scale captured heads really used, and what else was done to them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import InputError
from ..parse import UsageError
from ..question import option
from .captured import HeadTask, VerdictQuestion, head_number

if TYPE_CHECKING:
    from ...captures.capture import Layer
    from ...diagnosis.groups import HeadVerdict
    from ...program.text import Dialect
    from ...tables.table import Table


@dataclass(frozen=True)
class DiagnoseCaptures(VerdictQuestion["Sequence[HeadVerdict]"]):
    """Diagnose heads; without layer and head, every head."""

    COMMAND: ClassVar[str] = "diagnose"
    layer: str | None = option("heads", "--layer", "I", "only this layer, by number or name")
    head: int | None = option("heads", "--head", "H", "only this head; the first is 0", read=head_number)

    @property
    def selected(self) -> tuple[str | None, int | None]:
        return self.layer, self.head

    @property
    def file_name(self) -> str:
        return f"{self.captures[0].path.stem}-verdicts"

    def tasks(self) -> Iterator[HeadTask]:
        from ...work.heads import diagnose

        return self.on_heads(diagnose, self.configuration, self.expect)

    def heads(self, results: Iterator[Any]) -> Generator[HeadVerdict | InputError, None, None]:
        """Yield the verdicts as results come; an InputError stays one."""
        from ...diagnosis.groups import HeadVerdict
        from ...diagnosis.verdict import not_finite_from_first_layer

        first: dict[Path, Layer] = {}
        for each in self.with_layers(results):
            if isinstance(each, InputError):
                yield each
            else:
                layer, head, verdict = each
                yield HeadVerdict(layer, head, not_finite_from_first_layer(verdict, layer, first))

    def result(self, results: Sequence[Any]) -> Sequence[HeadVerdict]:
        return [head for head in self.heads(iter(results)) if not isinstance(head, InputError)]

    def table(self, answer: Iterable[HeadVerdict]) -> Table[Any]:
        from ...tables.diagnosis import diagnosis_table

        return diagnosis_table(self.captures, answer, self.asked)

    def code(self, answer: Sequence[HeadVerdict], dialect: Dialect) -> str:
        """Return the program of the only head, whose verdict it finds itself."""
        from ...diagnosis.configuration import expecting
        from ...program.diagnosis import diagnosis_code

        if self.asked > 1:
            raise UsageError(
                "--format: {format} prints one head of one file; give --layer and --head", format=dialect
            )
        [(number, (layer, head))] = [(at, each) for at, heads in enumerate(self.chosen) for each in heads]
        line = replace(self, paths=self.paths[number : number + 1]).line()
        given = expecting(self.expect, self.configuration)
        return diagnosis_code(self.captures[number], layer, head, given, dialect, line)
