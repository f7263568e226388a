"""Export the verdicts on the heads of a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..formats import NONE, Say, digits, existing, markdown_table, version
from ..listing.files import files_json
from ..listing.listing import CellType, Listing

if TYPE_CHECKING:
    from ...captures.capture import Capture, Layer
    from ...diagnosis.verdict import Verdict

_DIAGNOSIS = "attn-tui/diagnosis-1"


@dataclass(frozen=True)
class Diagnosed:
    """The verdict on one head."""

    layer: Layer
    head: int
    verdict: Verdict


def diagnosis_listing(captures: Sequence[Capture], asked: int, written: Sequence[Diagnosed]) -> Listing[Diagnosed]:
    """Return how `asked` verdicts are written; at their end, `written` has them all, for the summary."""
    return Listing(
        {"schema": _DIAGNOSIS, "version": version(), **files_json(captures, "notes")},
        "heads",
        asked,
        lambda each: [_head(each)],
        _COLUMNS,
        lambda each: [_line(each)],
        lambda: {"summary": summary(written)},
    )


def summary(heads: Sequence[Diagnosed]) -> dict[str, Any]:
    """Return how many heads have each verdict, and each cause."""
    words = Counter(each.verdict.verdict for each in heads)
    causes = Counter(each.verdict.cause for each in heads if each.verdict.cause is not None)
    names = ("healthy", "cause", "undecided", "unexplained", "no-evidence")
    return {
        "verdicts": {name: words[name] for name in names},
        "causes": [{"cause": cause, "heads": count} for cause, count in causes.most_common()],
    }


def _head(each: Diagnosed) -> dict[str, Any]:
    verdict = each.verdict
    effect = verdict.consequence
    return {
        "file": each.layer.path,
        "layer": str(each.layer.index),
        "layer_name": each.layer.name,
        "head": each.head,
        "verdict": verdict.verdict,
        "cause": verdict.cause,
        "also": list(verdict.also),
        "multiplier": existing(verdict.multiplier),
        "multiplier_error": existing(verdict.multiplier_error),
        "expected": verdict.expected.multiplier,
        "expected_from": verdict.expected.words,
        "evidence": verdict.evidence,
        "misfit": existing(verdict.misfit),
        "says": verdict.says,
        "consequence": None if effect is None else asdict(effect),
    }


def _line(each: Diagnosed) -> list[Any]:
    """Return the cells of a line of CSV; `also` is separated by spaces."""
    cells = _head(each) | {"also": " ".join(each.verdict.also)}
    return [cells[name] for name in _COLUMNS]


_COLUMNS: Mapping[str, CellType] = {
    "file": "string", "layer": "string", "layer_name": "string", "head": "integer", "verdict": "string",
    "cause": "string", "also": "string", "multiplier": "number", "multiplier_error": "number", "expected": "number",
    "expected_from": "string", "evidence": "string", "misfit": "number", "says": "string",
}  # fmt: skip


def diagnosis_markdown(heads: Sequence[Diagnosed], say: Say = str) -> str:
    """Return a table with a line for each head."""
    files = any(each.layer.file for each in heads)
    header = [
        *(["file"] if files else []),
        "layer",
        "head",
        "verdict",
        "cause",
        "multiplier",
        "expected",
        "evidence",
        "misfit",
    ]
    lines: list[list[str]] = []
    for each in heads:
        verdict = each.verdict
        causes = " = ".join(filter(None, (verdict.cause, *verdict.also))) or NONE
        numbers = [_cell(verdict.multiplier), digits(verdict.expected.multiplier)]
        lines.append(
            [
                *([each.layer.file] if files else []),
                str(each.layer.index),
                str(each.head),
                verdict.verdict,
                causes,
                *numbers,
                verdict.evidence or NONE,
                _cell(verdict.misfit),
            ]
        )
    return markdown_table(header, lines, say)


def _cell(number: float | None) -> str:
    return NONE if existing(number) is None or number is None else digits(number)
