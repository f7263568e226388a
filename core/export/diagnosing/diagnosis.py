"""Export the verdicts on the heads of a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..formats import NONE, Say, csv_text, digits, existing, json_text, markdown_table, version

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


def diagnosis_json(capture: Capture, heads: Sequence[Diagnosed]) -> str:
    """Return one JSON object with an entry for each head."""
    return json_text(
        {
            "schema": _DIAGNOSIS,
            "version": version(),
            "file": {"path": str(capture.path), "model": capture.model, "notes": list(capture.notes)},
            "heads": [_head(each) for each in heads],
            "summary": summary(heads),
        }
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


_COLUMNS = (
    "layer", "layer_name", "head", "verdict", "cause", "also", "multiplier", "multiplier_error", "expected",
    "expected_from", "evidence", "misfit", "says",
)  # fmt: skip


def diagnosis_csv(heads: Sequence[Diagnosed]) -> str:
    """Return a line for each head; `also` is separated by spaces."""
    lines: list[list[Any]] = []
    for each in heads:
        cells = _head(each) | {"also": " ".join(each.verdict.also)}
        lines.append([cells[name] for name in _COLUMNS])
    return csv_text(_COLUMNS, lines)


def diagnosis_markdown(heads: Sequence[Diagnosed], say: Say = str) -> str:
    """Return a table with a line for each head."""
    header = ["layer", "head", "verdict", "cause", "multiplier", "expected", "evidence", "misfit"]
    lines: list[list[str]] = []
    for each in heads:
        verdict = each.verdict
        causes = " = ".join(filter(None, (verdict.cause, *verdict.also))) or NONE
        numbers = [_cell(verdict.multiplier), digits(verdict.expected.multiplier)]
        lines.append(
            [
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
