"""Export the comparison of two captures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...diagnosis.comparing.results import FIGURES, ORDER, STAGES
from ...message import message
from ..formats import NONE, Say, csv_text, digits, escaped, existing, json_text, markdown_table, version

if TYPE_CHECKING:
    from ...captures.capture import Capture
    from ...diagnosis.comparing.results import Comparison, Figures, HeadComparison, StageName, State

_COMPARE = "attn-tui/compare-1"
# The stages whose difference is a number.
_MEASURED: tuple[StageName, ...] = ("qk", "multiplier", "lse", "weights", "v", "o")
_STATES: tuple[State, ...] = ("same", "differs", "follows", "not-compared")


def compare_json(reference: Capture, test: Capture, found: Comparison) -> str:
    """Return one JSON object with every stage and figure of every head."""
    first = found.first
    return json_text(
        {
            "schema": _COMPARE,
            "version": version(),
            "reference": {"path": str(reference.path), "model": reference.model},
            "test": {"path": str(test.path), "model": test.model},
            "notes": list(found.notes),
            "missing": list(found.missing),
            "differs": found.differs,
            "first": None
            if first is None
            else {
                "stage": first[0].name,
                "layer": str(first[1][0].layer.index),
                "layer_name": first[1][0].layer.name,
                "heads": [each.head for each in first[1]],
                "says": first[0].says,
            },
            "stages": {name: counts(found, name) for name in ORDER},
            "heads": [_head(each) for each in found.ranked],
        }
    )


def counts(found: Comparison, stage: StageName) -> dict[str, int]:
    """Return how many heads have each state at a stage."""
    states = Counter(each.stages[ORDER.index(stage)].state for each in found.heads)
    return {state: states[state] for state in _STATES}


def _head(each: HeadComparison) -> dict[str, Any]:
    first = each.first
    return {
        "layer": str(each.layer.index),
        "layer_name": each.layer.name,
        "head": each.head,
        "test_layer": str(each.test_layer.index),
        "test_head": each.test_head,
        "first": None if first is None else first.name,
        "stages": {
            stage.name: {"state": stage.state, "says": stage.says}
            | ({"change": existing(stage.change)} if stage.name in _MEASURED else {})
            for stage in each.stages
        },
        "reference": _figures(each.reference),
        "test": _figures(each.test),
        "divergence": existing(each.divergence),
        "changed_rows": existing(each.changed_rows),
    }


def _figures(found: Figures | None) -> dict[str, float | None] | None:
    return None if found is None else {name: existing(getattr(found, name)) for name in FIGURES}


def compare_csv(found: Comparison) -> str:
    """Return a line for each head, in the order of their first difference."""
    header = ["layer", "layer_name", "head", "test_layer", "test_head", "first", *ORDER]
    header += [f"{side}_{name}" for name in FIGURES for side in ("reference", "test")]
    header += ["divergence", "changed_rows", "says"]
    lines: list[list[Any]] = []
    for each in found.ranked:
        cells = _head(each)
        figures = [
            None if side is None else existing(getattr(side, name))
            for name in FIGURES
            for side in (each.reference, each.test)
        ]
        says = "" if each.first is None else each.first.says
        lines.append(
            [
                *(cells[name] for name in header[:6]),
                *(stage.state for stage in each.stages),
                *figures,
                cells["divergence"],
                cells["changed_rows"],
                says,
            ]
        )
    return csv_text(header, lines)


def compare_markdown(found: Comparison, say: Say = str) -> str:
    """Return the verdict, notes, and a table with a line for each head, in the order of their first difference."""
    header = ["layer", "head", "other head", "first difference", "KL, nats", "multiplier", "entropy", "what differs"]
    lines: list[list[str]] = []
    for each in found.ranked:
        first = each.first
        lines.append(
            [
                str(each.layer.index),
                str(each.head),
                str(each.test_head),
                NONE if first is None else STAGES[first.name],
                shown(each.divergence),
                *changed(each, ("multiplier", "entropy")),
                NONE if first is None else first.says,
            ]
        )
    sentences = [*verdict(found), *found.missing, *found.notes]
    return "\n".join([*(f"{escaped(text, say)}\n" for text in sentences), markdown_table(header, lines, say)])


def verdict(found: Comparison) -> list[str]:
    """Return what a comparison found, in one or two sentences."""
    from ...diagnosis.comparing.results import heads_in_words

    heads = len(found.heads)
    first = found.first
    if first is None:
        if found.missing:
            return [message("{number} heads", number=heads)]
        return [message("{number} heads, everything that can be compared is the same", number=heads)]
    stage, where = first
    says = (
        stage.says
        if len(where) == 1
        else message("head {head}: {difference}", head=where[0].head, difference=stage.says)
    )
    differ = sum(each.first is not None for each in found.heads)
    return [
        message(
            "first difference: {stage} in layer {layer}, {heads} ({difference})",
            stage=STAGES[stage.name],
            layer=where[0].layer.index,
            heads=heads_in_words([each.head for each in where]),
            difference=says,
        ),
        message("{differing} of {number} heads differ", differing=differ, number=heads),
    ]


def changed(each: HeadComparison, names: Sequence[str]) -> list[str]:
    """Return figures as `0.125` or, where they differ, `0.125 to 0.1325`."""
    cells: list[str] = []
    for name in names:
        numbers: list[float | None] = [
            None if side is None else getattr(side, name) for side in (each.reference, each.test)
        ]
        before, after = map(shown, numbers)
        cells.append(before if before == after else message("{before} to {after}", before=before, after=after))
    return cells


def shown(number: float | None) -> str:
    """Return a number with four significant digits, or a dash."""
    return NONE if number is None or existing(number) is None else digits(number)
