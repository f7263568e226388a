"""The question of whether captured heads are beyond limits, or their scale is not the expected one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ...captures.capture import capture_path
from ...diagnosis.limits import LIMITS, Limits, limit
from ...message import message
from ..question import flag, option, path_word
from .captured import HeadTask, VerdictQuestion
from .compare import CompareCaptures, pair_task

if TYPE_CHECKING:
    from ...captures.head import CaptureFile
    from ...diagnosis.check import HeadFigures, LimitFinding
    from ...diagnosis.comparing.results import Comparison
    from ...program.text import Dialect
    from ...tables.check import FileCheck
    from ...tables.table import Table


def _limit(name: str, words: str) -> Any:
    """Return the option that is a limit; `words` are what it is, and its default."""
    return option("limits", name, "X", words, read=lambda value: limit(value, name), write="{:g}".format)


@dataclass(frozen=True)
class CheckCaptures(VerdictQuestion["Sequence[FileCheck]"]):
    """Check files, each by itself, against limits and what is expected."""

    COMMAND: ClassVar[str] = "check"
    strict: bool = flag("file", "--strict", "fail, too, if a head is not judged")
    baseline: Path | None = option(
        "file",
        "--baseline",
        "OLD",
        "an earlier capture of the same model to compare with",
        read=capture_path,
        write=path_word,
    )
    max_logit: float | None = _limit("--max-logit", message("the largest |logit|, before a soft-cap; default 100"))
    max_capped: float | None = _limit(
        "--max-capped", message("the largest share of logits beyond 2 soft-caps; default 0.5")
    )
    min_spread: float | None = _limit(
        "--min-spread", message("the least standard deviation of logits within rows; default 0.01")
    )
    min_token_spread: float | None = _limit(
        "--min-token-spread", message("the least share of q and of k that differs between tokens; default 0.05")
    )
    min_file_entropy: float | None = _limit(
        "--min-file-entropy", message("the least median of entropy / ln n over the heads of the file; default 0.2")
    )
    min_entropy: float | None = _limit(
        "--min-entropy", message("the least entropy / ln n of a head; not checked by default")
    )
    max_one_hot: float | None = _limit(
        "--max-one-hot", message("the largest share of one-hot rows; not checked by default")
    )
    max_first_key: float | None = _limit(
        "--max-first-key", message("the largest weight on the first key; not checked by default")
    )
    allow: tuple[str, ...] = option(
        "limits",
        "--allow",
        "PATTERN",
        "accept findings whose place and rule match, such as 'layers.0.*:max-logit' or '*:scale-other'; may be "
        "repeated",
        action="append",
        default=(),
        read=tuple,
    )

    @property
    def limits(self) -> Mapping[str, float]:
        """The limits that are set."""
        return {name: value for name in LIMITS if (value := getattr(self, name)) is not None}

    @cached_property
    def comparisons(self) -> Sequence[CompareCaptures]:
        """The comparison of each file with the baseline, if there is one."""
        if self.baseline is None:
            return ()
        from ...captures.reader import open_capture

        old = open_capture(self.baseline, *self.hints)
        return [
            CompareCaptures(*self.hints, reference=self.baseline, test=capture.path, opened=(old, capture))
            for capture in self.captures
        ]

    @property
    def files(self) -> Sequence[Path]:
        return (*super().files, *(file for comparison in self.comparisons[:1] for file in comparison.files))

    @cached_property
    def sources(self) -> dict[Path, Any]:
        tensors = dict(super().sources)
        for comparison in self.comparisons[:1]:
            tensors |= replace(comparison, by_content=self.by_content).sources
        return tensors

    def tasks(self) -> Iterator[HeadTask]:
        from ...work.heads import check_figures

        yield from self.on_heads(check_figures, self.configuration, self.expect)
        for comparison in self.comparisons:
            yield pair_task(comparison.captures, comparison.plan.pairs)

    def result(self, results: Sequence[Any]) -> Sequence[FileCheck]:
        rest = iter(results)
        figures = iter([*self.with_layers(islice(rest, self.asked))])
        heads = [[*islice(figures, len(head_set))] for head_set in self.chosen]
        compared: list[Comparison | None] = [
            comparison.result([*islice(rest, len(comparison.plan.pairs))]) for comparison in self.comparisons
        ]
        compared = compared or [None for _ in heads]
        return [self._checked(*each) for each in zip(self.captures, heads, compared, strict=True)]

    def _checked(self, capture: CaptureFile, heads: Sequence[HeadFigures], compared: Comparison | None) -> FileCheck:
        """Return what is found in one file."""
        from ...diagnosis.check import changes, findings, from_first_layer
        from ...tables.check import FileCheck

        heads = from_first_layer(heads)
        limits = Limits(**self.limits, set=frozenset(self.limits))
        found: list[LimitFinding] = findings(heads, limits, capture.disagreements)
        found += [
            each if each.layer is None else replace(each, layer=capture.layers[each.layer.position])
            for each in (() if compared is None else changes(compared, heads))
        ]
        if any(finding.rule == "baseline-multiplier" for finding in found):
            found = [each for each in found if each.rule != "inconsistent"]
        allowed = [finding for finding in found if finding.allowed(self.allow)]
        name = capture.layers[0].file if len(self.captures) > 1 else ""
        return FileCheck(
            capture, heads, [finding for finding in found if finding not in allowed], allowed, name, compared
        )

    def table(self, answer: Sequence[FileCheck]) -> Table[Any]:
        from ...tables.check import check_table

        return check_table(answer)

    def code(self, answer: Sequence[FileCheck], dialect: Dialect) -> str:
        """Return the program of the first head with a finding, else of the first head."""
        from ...program.library import checked_code, opened

        at = {
            (number, finding.layer, finding.head) for number, file in enumerate(answer) for finding in file.findings
        }
        heads = [(number, head) for number, file in enumerate(answer) for head in file.heads]
        known = [head for head in heads if head[1].max_logit is not None] or heads
        number, chosen = next((head for head in known if (head[0], head[1].layer, head[1].head) in at), known[0])
        line = replace(self, paths=(self.paths[number],), strict=False).line()
        return checked_code(opened(self.captures[number].path, self.hints), chosen, line)
