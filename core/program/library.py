"""Programs of a few lines that use the installed library, for what takes more than a page of code to compute."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..attention.cost import SHAPE_FIELDS, LayerShape
from ..captures.capture import NO_HINTS, Hints
from ..diagnosis.comparing.results import FIGURES
from ..diagnosis.results import STAGES
from ..field import differing
from ..tables.cost import figures
from .text import CodePiece, NoCodeError, assembled, expected, literal, shown

if TYPE_CHECKING:
    from ..attention.cost import Cost
    from ..captures.capture import Layer
    from ..diagnosis.check import HeadFigures
    from ..diagnosis.comparing.results import HeadComparison
    from ..learning.card import Card
    from ..learning.outcome import Outcome
    from ..statistics.measurement import Estimate
    from ..watching.snapshot import RunSnapshot

_CHECKED = ("max_logit", "spread", "token_spread", "entropy_fraction", "one_hot_rows", "first_key_weight")


def claims_code(outcomes: Sequence[Outcome], command: str) -> str:
    """Return the program that prints the figures of claims; raise NoCodeError if none of them has any."""
    chosen = [outcome for outcome in outcomes if outcome.findings]
    if not chosen:
        raise NoCodeError(
            "No code: {reason}.", reason=(outcomes[0].claim.untestable or outcomes[0].claim.why).rstrip(".")
        )
    rows = {
        f"{each.claim.id}: {found.label}": [_value(found.measured, found.exact)]
        for each in chosen
        for found in each.findings
    }
    return _of_figures(call_of("claims", *(outcome.claim.id for outcome in chosen)), "claims", rows, command)


def card_code(card: Card, command: str) -> str:
    """Return the program that prints the figures of a step or a question of the tour."""
    item: object = f"q{card.number}" if card.kind == "question" else card.number
    rows = {f"{card.id}: {figure.label}": [_value(*figure.reading)] for figure in card.figures}
    return _of_figures(call_of("learn", item), "cards", rows, command)


def _of_figures(call: str, name: str, rows: Mapping[str, Sequence[str]], command: str) -> str:
    """Return the program that prints the figures of every item in a list of JSON."""
    lines = [
        f'for each in {call}.to_dict()["{name}"]:',
        '    for figure in each["figures"]:',
        '        value = figure["measured"]["value"] if figure["measured"] else figure["exact"]',
        f"""        print(f"{{each['id']}}: {{figure['label']}}".ljust({_wide(rows)}), f"{{value:12.4g}}")""",
    ]
    return _program(command, lines, rows)


def cost_code(cost: Cost, command: str) -> str:
    """Return the program that prints parameters, the KV cache and FLOPs."""
    rows = {name: [f"{value}"] for name, value, _ in figures(cost)}
    call = call_of("cost", **differing(SHAPE_FIELDS, cost.layer, LayerShape()))
    lines = [
        f"for row in {call}.rows():",
        f"""    print(row["quantity"].ljust({_wide(rows)}), f"{{row['value']:20}}")""",
    ]
    return _program(command, lines, rows)


def checked_code(opened: str, figures: HeadFigures, command: str) -> str:
    """Return the program that prints what limits apply to of a head; `opened` is a text of `opened`."""
    rows = {name: [shown(getattr(figures, name))] for name in _CHECKED if getattr(figures, name) is not None}
    if not rows:
        raise NoCodeError("No code: no figure of this head is known.")
    lines = [
        f"found = {opened}{_place(figures.layer, figures.head)}.figures()",
        *_printing(rows, "getattr(found, name)"),
    ]
    return _program(command, lines, rows, says=f"layer {figures.layer.index}, head {figures.head}")


def pair_code(one: str, other: str, head: HeadComparison, command: str) -> str:
    """Return the program that prints the figures of two heads; `one` and `other` are texts of `opened`."""
    if head.reference is None or head.test is None:
        raise NoCodeError("No code: {reason}.", reason=head.stages[0].says)
    sides = head.reference, head.test
    names = [name for name in FIGURES if getattr(head.reference, name) is not None]
    rows = {name: [shown(getattr(side, name)) for side in sides] for name in names}
    lines = [
        f"reference = {one}{_place(head.layer, head.head)}",
        f"found = reference.compare({other}{_place(head.test_layer, head.test_head)})",
        f"for name in {tuple(names)}:",
        "    both = (getattr(side, name) for side in (found.reference, found.test))",
        f'    print(name.ljust({_wide(rows)}), *(f"{{value:12.4g}}" for value in both))',
    ]
    if head.divergence is not None:
        more = {"divergence": [shown(head.divergence), ""], "changed_rows": [shown(head.changed_rows), ""]}
        lines += _printing(more, "getattr(found, name)")
        rows |= more
    fault = head.first
    says = "nothing differs" if fault is None else f"{STAGES[fault.name]}: {fault.says}"
    return _program(command, lines, rows, ("reference", "test"), says)


def watched_code(run: Path, step: RunSnapshot, layer: int, head: int, command: str) -> str:
    """Return the program that prints the figures of a head of this step; `layer` is its row on the map."""
    rows = {
        name: [shown(table[layer][head])] for name, table in step.values.items() if math.isfinite(table[layer][head])
    }
    if not rows:
        raise NoCodeError("No code: no figure of this head is known.")
    lines = [
        f"values = {call_of('watch', str(run), step=step.step)}.value.values",
        *_printing(rows, f"values[name][{layer}][{head}]"),
    ]
    return _program(command, lines, rows, says=f"step {step.step}, layer {step.layers[layer]}, head {head}")


def opened(path: Path, hints: Hints = NO_HINTS) -> str:
    """Return the expression that opens a capture as a command does."""
    return call_of("open", str(path), **{name: value for name, value in hints._asdict().items() if value is not None})


def call_of(name: str, *values: object, **named: object) -> str:
    """Return the expression that calls a function of the library."""
    texts = [literal(value) if isinstance(value, str) else repr(value) for value in values]
    texts += [f"{key}={literal(value) if isinstance(value, str) else repr(value)}" for key, value in named.items()]
    return f"attn_tui.{name}({', '.join(texts)})"


def _place(layer: Layer, head: int) -> str:
    return f"[{literal(layer.name)}, {head}]"


def _value(measured: Estimate | None, exact: float | None) -> str:
    """Return the measured value, or the exact one of what is not measured."""
    return shown(exact if measured is None else measured.value)


def _wide(rows: Mapping[str, object]) -> int:
    return max(map(len, rows)) + 2


def _printing(rows: Mapping[str, object], value: str) -> list[str]:
    """Return the lines that print a value of each row."""
    return [f"for name in {tuple(rows)}:", f'    print(name.ljust({_wide(rows)}), f"{{{value}:12.4g}}")']


def _program(
    command: str,
    lines: Sequence[str],
    rows: Mapping[str, Sequence[str]],
    titles: Sequence[str] = ("",),
    says: str = "",
) -> str:
    """Return a program that imports the library."""
    pieces = [CodePiece("import attn_tui"), CodePiece("\n".join(lines))]
    return assembled([command, *([says] if says else [])], [pieces], expected(titles, rows))
