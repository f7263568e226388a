"""Every scale rule side by side, and mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attention.scales import SCALE_RULES
from ..lab.rule_rows import MEASURED, NOT_OF_MECHANISMS, SETTINGS, Order, Row
from ..parameters import FIELD, FIELDS, Parameters, choice_word
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate
from .columns import cell, estimate_json
from .formats import NONE, Say, csv_text, digits, existing, json_text, markdown_page, version
from .words import notable_words

if TYPE_CHECKING:
    from ..lab import mechanisms
    from ..lab.rule_curves import Curves

_RULES = "attn-tui/rules-1"
_MECHANISMS = "attn-tui/mechanisms-1"


@dataclass(frozen=True, eq=False)
class Rules:
    """What was asked of scale rules, and what came of it."""

    parameters: Parameters  # their own rule is the one that is marked
    order: Order
    rows: Sequence[Row]
    curves: Curves
    command: str  # that gives the same again

    @property
    def sorted(self) -> Sequence[Row]:
        """The rows as they are to stand."""
        return self.order.of(self.rows)


@dataclass(frozen=True, eq=False)
class Mechanisms:
    """What was asked of mechanisms, and what came of it."""

    parameters: Parameters
    rows: Sequence[mechanisms.Row]
    command: str


def rules_json(rules: Rules) -> str:
    """All rules as one JSON object."""
    curves = rules.curves
    return json_text(
        {
            "schema": _RULES,
            "version": version(),
            "command": rules.command,
            "parameters": {field.name: getattr(rules.parameters, field.name) for field in FIELDS},
            "sort": {"column": rules.order.column, "reverse": rules.order.reverse},
            "rules": [
                {
                    "rule": row.rule,
                    "formula": SCALE_RULES[row.rule].formula,
                    "multiplier": row.multiplier,
                    "fault": row.fault or None,
                    "measured": {name: estimate_json(row.estimate(name)) for name in MEASURED},
                    "entropy_fraction_over_d_k": [existing(value) for value in curves.values[row.rule]],
                }
                for row in rules.sorted
            ],
            "over_d_k": {"d_k": [*curves.d_ks], "draws": curves.draws, "rows_of_a_draw": curves.rows},
        }
    )


def rules_csv(rules: Rules) -> str:
    """A line for each rule: the parameters, its multiplier, each value with its standard error, and the curve."""
    asked = {
        field.name: getattr(rules.parameters, field.name)
        for field in FIELDS
        if field.name not in ("scale", "multiplier")
    }
    header = [*asked, "rule", "multiplier"]
    for name in MEASURED:
        header += [name, f"{name}_stderr"]
    header += [f"entropy_fraction_at_d_k_{d_k}" for d_k in rules.curves.d_ks]
    lines: list[list[Any]] = []
    for row in rules.sorted:
        line = [*asked.values(), row.rule, row.multiplier]
        for name in MEASURED:
            line += map(existing, row.estimate(name))
        lines.append([*line, *map(existing, rules.curves.values[row.rule])])
    return csv_text(header, lines)


def rules_markdown(rules: Rules, say: Say = str) -> str:
    """A line for each rule."""
    header = ["rule", "name", "multiplier", *(STATISTIC[name].label for name in MEASURED)]
    lines: list[list[str]] = []
    for row in rules.sorted:
        cells = [cell(row.estimate(name), STATISTIC[name]) for name in MEASURED]
        number = NONE if row.multiplier is None else digits(row.multiplier)
        lines.append([SCALE_RULES[row.rule].label, row.rule, number, *cells])
    return markdown_page(rules_words(rules.parameters), header, lines, remarks(rules), rules.command, say)


def rules_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """`d_k 64`, …: what all rules have in common, of these names or other than usual."""
    return notable_words(p, [name for name in FIELD if name not in (*SETTINGS, "scale")], always)


def remarks(rules: Rules) -> list[str]:
    """What the rows do not say by themselves: what some rules depend on, and why some have no multiplier."""
    p = rules.parameters
    words = ", ".join(f"{FIELD[name].label} {FIELD[name].format(getattr(p, name))}" for name in SETTINGS)
    return [f"The rules that depend on it have {words}.", *(f"{row.fault}." for row in rules.sorted if row.fault)]


def mechanisms_json(found: Mechanisms) -> str:
    """The comparison as one JSON object."""
    return json_text(
        {
            "schema": _MECHANISMS,
            "version": version(),
            "command": found.command,
            "parameters": {name: getattr(found.parameters, name) for name in FIELD if name not in NOT_OF_MECHANISMS},
            "points": [
                {
                    "d_k": row.d_k,
                    "mechanism": row.mechanism,
                    "scale": {"rule": row.rule, "multiplier": row.multiplier},
                    "measured": {name: estimate_json(estimate) for name, estimate in row.measured.items()},
                    "largest_score": existing(row.largest),
                    "score_bound": existing(row.bound),
                }
                for row in found.rows
            ],
        }
    )


def mechanisms_csv(found: Mechanisms) -> str:
    """A line for each mechanism at each d_k."""
    names = [*found.rows[0].measured] if found.rows else []
    asked = {name: getattr(found.parameters, name) for name in FIELD if name not in NOT_OF_MECHANISMS}
    header = [*asked, "d_k", "mechanism", "scale", "multiplier"]
    header += [title for name in names for title in (name, f"{name}_stderr")]
    lines: list[list[Any]] = []
    for row in found.rows:
        numbers = [existing(number) for estimate in row.measured.values() for number in estimate]
        place = [*asked.values(), row.d_k, row.mechanism, row.rule, row.multiplier]
        lines.append([*place, *numbers, existing(row.largest), existing(row.bound)])
    return csv_text([*header, "largest_score", "score_bound"], lines)


def mechanisms_markdown(found: Mechanisms, say: Say = str) -> str:
    """A line for each mechanism at each d_k."""
    names = [*found.rows[0].measured] if found.rows else []
    header = ["mechanism", "scale", "d_k", *(STATISTIC[name].label for name in names), "largest score", "bound"]
    lines: list[list[str]] = []
    for row in found.rows:
        cells = [cell(estimate, STATISTIC[name]) for name, estimate in row.measured.items()]
        ends = [cell(Estimate(number, None), STATISTIC["logit_std"]) for number in (row.largest, row.bound)]
        place = (choice_word(row.mechanism), SCALE_RULES[row.rule].label, str(row.d_k))
        lines.append([*place, *cells, *ends])
    return markdown_page(mechanisms_words(found.parameters), header, lines, (), found.command, say)


def mechanisms_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """`keys 128`, …: what all mechanisms have in common, of these names or other than usual."""
    p = p.with_value("mechanism", "additive")  # of which all parameters of mechanisms have an effect
    return notable_words(p, [name for name in FIELD if name not in NOT_OF_MECHANISMS], always)
