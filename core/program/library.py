"""Programs of a few lines that use the installed library, for what takes more than a page of code to compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnosis.comparing.results import FIGURES, STAGES
from ..lab.weighting.results import MEASURES, NOT_OF_WEIGHTINGS
from .text import NoCodeError, Piece, assembled, expected, literal, shown

if TYPE_CHECKING:
    from ..attention.cost import Cost
    from ..claims.claim import Finding, Outcome, Reading
    from ..diagnosis.check import Figures
    from ..diagnosis.comparing.results import HeadComparison
    from ..lab.weighting.results import WeightingRow
    from ..learning.card import Card
    from ..parameters import Parameters
    from ..watching.snapshot import Snapshot

_VALUE = "(exact if measured is None else measured.value)"
_OF_COST = ("parameters", "all_parameters", "cache_per_token", "cache", "next_token.total", "whole_context.total")
_CHECKED = ("largest_logit", "spread", "token_spread", "entropy_fraction", "one_hot_rows", "first_key_weight")


def claims_code(outcomes: Sequence[Outcome], command: str) -> str:
    """Return the program that prints the figures of claims; raise NoCodeError if none of them has any."""
    rows = {
        f"{outcome.claim.id}: {finding.label}": [shown(_value(finding))]
        for outcome in outcomes
        for finding in outcome.findings
    }
    if not rows:
        raise NoCodeError("No code: {reason}.", reason=outcomes[0].claim.untestable or outcomes[0].claim.why)
    lines = [
        f"chosen = {sorted(outcome.claim.id for outcome in outcomes if outcome.findings)}",
        "for claim in CLAIMS:",
        "    for each in examine(claim).findings if claim.id in chosen else []:",
        "        measured, exact = each.measured, each.exact",
        f'        print(f"{{claim.id}}: {{each.label}}".ljust({_wide(rows)}), f"{{{_VALUE}:12.4g}}")',
    ]
    return _program(command, {"claims.catalogue": "CLAIMS", "claims.examine": "examine"}, lines, rows)


def card_code(card: Card, command: str) -> str:
    """Return the program that prints the figures of a step or a question of the tour."""
    rows = {figure.label: [shown(_value(figure.reading))] for figure in card.figures}
    table, module = (("STEPS", "tour"), ("QUESTIONS", "questions"))[card.kind == "question"]
    lines = [
        f"item = {table}[{card.number - 1}]",
        f"for figure in {card.kind}_card({card.number}, item, readings(item.figures)).figures:",
        "    measured, exact = figure.reading",
        f'    print(figure.label.ljust({_wide(rows)}), f"{{{_VALUE}:12.4g}}")',
    ]
    names = {"learning.card": f"{card.kind}_card", "learning.trials": "readings", f"learning.{module}": table}
    return _program(command, names, lines, rows)


def cost_code(cost: Cost, command: str) -> str:
    """Return the program that prints parameters, the KV cache and FLOPs."""
    rows = {name: [str(attrgetter(name)(cost))] for name in _OF_COST}
    lines = [
        f"found = cost({_made(cost.layer)})",
        f"for name in {_OF_COST}:",
        f"    print(name.ljust({_wide(rows)}), attrgetter(name)(found))",
    ]
    first = "from operator import attrgetter\n\n"
    return _program(command, {"attention.cost": "Layer, cost"}, lines, rows, first=first)


def weightings_code(parameters: Parameters, rows: Sequence[WeightingRow], command: str) -> str:
    """Return the program that prints what is measured of each weighting."""
    values = {row.name: [shown(row.estimate(name).value) for name in MEASURES] for row in rows if not row.fault}
    lines = [
        f"*_, last = stream({_made(parameters, NOT_OF_WEIGHTINGS)})",
        "for row in last.found:",
        "    if not row.fault:",
        "        values = [row.estimate(name).value for name in MEASURES]",
        '        values = [float("nan") if value is None else value for value in values]',
        f'        print(row.name.ljust({_wide(values)}), *(f"{{value:15.4g}}" for value in values))',
    ]
    names = {"lab.weighting.comparison": "stream", "lab.weighting.results": "MEASURES", "parameters": "Parameters"}
    return _program(command, names, lines, values, [*MEASURES])


def checked_code(opened: str, figures: Figures, command: str) -> str:
    """Return the program that prints what limits apply to of a head; `opened` is a text of `opened`."""
    rows = {name: [shown(getattr(figures, name))] for name in _CHECKED if getattr(figures, name) is not None}
    if not rows:
        raise NoCodeError("No code: no figure of this head is known.")
    lines = [
        f"capture = {opened}",
        f"*_, (_, found) = measure(capture, capture.layers[{figures.layer.position}], {figures.head}, None, None)",
        *_printing(rows, "getattr(found, name)"),
    ]
    names = {"captures.reader": "open_capture", "diagnosis.check": "measure"}
    says = f"layer {figures.layer.index}, head {figures.head}"
    return _program(command, names, lines, rows, says=says)


def pair_code(one: str, other: str, head: HeadComparison, command: str) -> str:
    """Return the program that prints the figures of two heads; `one` and `other` are texts of `opened`."""
    if head.reference is None or head.test is None:
        raise NoCodeError("No code: {reason}.", reason=head.stages[0].says)
    sides = head.reference, head.test
    names = [name for name in FIGURES if getattr(head.reference, name) is not None]
    rows = {name: [shown(getattr(side, name)) for side in sides] for name in names}
    lines = [
        f"reference, test = {one}, {other}",
        f"layers = reference.layers[{head.layer.position}], test.layers[{head.test_layer.position}]",
        f"found = compare_heads(reference, test, Pair(layers[0], {head.head}, layers[1], {head.test_head}))",
        f"for name in {tuple(names)}:",
        "    both = (getattr(side, name) for side in (found.reference, found.test))",
        f'    print(name.ljust({_wide(rows)}), *(f"{{value:12.4g}}" for value in both))',
    ]
    if head.divergence is not None:
        more = {"divergence": [shown(head.divergence), ""], "changed_rows": [shown(head.changed_rows), ""]}
        lines += _printing(more, "getattr(found, name)")
        rows |= more
    found = head.first
    says = "nothing differs" if found is None else f"{STAGES[found.name]}: {found.says}"
    imports = {
        "captures.reader": "open_capture",
        "diagnosis.comparing.compare": "compare_heads",
        "diagnosis.comparing.results": "Pair",
    }
    return _program(command, imports, lines, rows, ("reference", "test"), says)


def watched_code(run: Path, step: Snapshot, layer: int, head: int, command: str) -> str:
    """Return the program that prints the figures of a head of this step; `layer` is its row on the map."""
    rows = {
        name: [shown(table[layer][head])] for name, table in step.values.items() if math.isfinite(table[layer][head])
    }
    if not rows:
        raise NoCodeError("No code: no figure of this head is known.")
    lines = [
        "steps, cursor, more = {}, START, True",
        "while more:",
        f"    news = poll(Path({literal(str(run))}), cursor)",
        "    cursor, more = news.cursor, news.more",
        "    steps |= {step.step: step for step in news.steps}",
        f"values = snapshot([steps[{step.step}]], 0.0).values",
        *_printing(rows, f"values[name][{layer}][{head}]"),
    ]
    names = {"watching.poll": "START, poll", "watching.snapshot": "snapshot"}
    says = f"step {step.step}, layer {step.layers[layer]}, head {head}"
    return _program(command, names, lines, rows, says=says, first="from pathlib import Path\n\n")


def opened(path: Path, axes: str | None = None, mask_true: str | None = None, tensor: str | None = None) -> str:
    """Return the expression that opens a capture as a command does."""
    arguments = {"axes": axes, "mask_true": mask_true, "tensor": tensor}
    given = [f"{name}={literal(value)}" for name, value in arguments.items() if value is not None]
    return f"open_capture({', '.join([literal(str(path)), *given])})"


def _value(of: Reading | Finding) -> float | None:
    """Return the measured value, or the exact one of what is not measured."""
    return of.exact if of.measured is None else of.measured.value


def _wide(rows: Mapping[str, object]) -> int:
    return max(map(len, rows)) + 2


def _printing(rows: Mapping[str, object], value: str) -> list[str]:
    """Return the lines that print a value of each row."""
    return [f"for name in {tuple(rows)}:", f'    print(name.ljust({_wide(rows)}), f"{{{value}:12.4g}}")']


def _made(value: Any, left_out: Sequence[str] = ()) -> str:
    """Return the expression of a dataclass, with the fields that are not the usual ones."""
    given = [(each.name, getattr(value, each.name)) for each in fields(value) if each.init]
    usual = type(value)()
    changed = [f"{name}={own!r}" for name, own in given if own != getattr(usual, name) and name not in left_out]
    return f"{type(value).__name__}({', '.join(changed)})"


def _program(
    command: str,
    imports: Mapping[str, str],
    lines: Sequence[str],
    rows: Mapping[str, Sequence[str]],
    titles: Sequence[str] = ("",),
    says: str = "",
    first: str = "",
) -> str:
    """Return a program that imports names of modules of the library."""
    text = first + "\n".join(f"from attn_tui.core.{module} import {names}" for module, names in imports.items())
    return assembled(
        [command, *([says] if says else [])], [[Piece(text), Piece("\n".join(lines))]], expected(titles, rows)
    )
