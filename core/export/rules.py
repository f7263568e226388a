"""Export the comparisons of scale rules, of mechanisms and of weightings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..lab.results import MEASURED, NOT_OF_MECHANISMS, SETTINGS, Order, RuleRow, listed_rules
from ..lab.weighting.results import MEASURES as MEASURES_OF_WEIGHTS
from ..lab.weighting.results import NOT_OF_WEIGHTINGS, WEIGHTINGS, WeightingRow
from ..message import joined, message
from ..parameters import FIELD, FIELDS, Parameters, choice_word
from ..scales import scale_rule
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate
from ..statistics.status import Status
from ..theory.prediction import status_given
from .columns import OF_ALL_COLUMNS, cell, estimate_json, existing_pair, freezing_json, scale_json
from .formats import NONE, Say, csv_text, digits, existing, json_text, markdown_page, version
from .words import notable_words

if TYPE_CHECKING:
    from ..lab.results import MechanismRow, RuleCurves
    from ..theory.prediction import Freezing

_RULES = "attn-tui/rules-1"
_MECHANISMS = "attn-tui/mechanisms-1"
_WEIGHTINGS = "attn-tui/weightings-1"
# Of the columns of weightings: headings, and a statistic of the same unit.
_HEADINGS = {
    "weight_sum": ("Σp", "logit_std"),
    "entropy": ("entropy", "entropy"),
    "max_weight": ("max weight", "max_weight"),
    "zero_weights": ("zero weights", "max_weight"),
    "one_hot_rows": ("one-hot rows", "one_hot_rows"),
    "jacobian_norm": ("‖J‖_F", "jacobian_norm"),
}


@dataclass(frozen=True, eq=False)
class RulesResult:
    """A comparison of scale rules: the request and the result."""

    parameters: Parameters
    order: Order
    rows: Sequence[RuleRow]
    curves: RuleCurves
    freezing: Mapping[str, Freezing | None]  # by rule, of those that have a multiplier
    command: str  # reproduces the result

    def status(self, row: RuleRow) -> Status | None:
        """Return the status of a rule's row; None if the rule has no multiplier."""
        return status_given(self.freezing.get(row.rule), row.measured)

    @property
    def sorted(self) -> Sequence[RuleRow]:
        """The rows in the requested order."""
        return self.order.of(self.rows)

    @property
    def shown(self) -> Sequence[RuleRow]:
        """The same without a custom rule that was not set."""
        listed = listed_rules(self.parameters)
        return [row for row in self.sorted if row.rule in listed]


@dataclass(frozen=True, eq=False)
class MechanismsResult:
    """A comparison of mechanisms: the request and the result."""

    parameters: Parameters
    rows: Sequence[MechanismRow]
    command: str


def rules_json(rules: RulesResult) -> str:
    """Return all rules as one JSON object."""
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
                    "formula": scale_rule(row.rule).formula,
                    "multiplier": row.multiplier,
                    "fault": row.fault or None,
                    "measured": {name: estimate_json(row.estimate(name)) for name in MEASURED},
                    "freezing": freezing_json(rules.freezing.get(row.rule)),
                    "status": rules.status(row),
                    "entropy_fraction_over_d_k": [existing(value) for value in curves.values[row.rule]],
                }
                for row in rules.sorted
            ],
            "over_d_k": {"d_k": [*curves.d_ks], "draws": curves.draws, "rows_of_a_draw": curves.rows},
        }
    )


def rules_csv(rules: RulesResult) -> str:
    """Return a line for each rule: the parameters, multiplier, each value with its standard error, and the curve."""
    asked = {
        field.name: getattr(rules.parameters, field.name) for field in FIELDS if field.name not in OF_ALL_COLUMNS
    }
    header = [*asked, "rule", "multiplier"]
    for name in MEASURED:
        header += [name, f"{name}_stderr"]
    header.append("status")
    header += [f"entropy_fraction_at_d_k_{d_k}" for d_k in rules.curves.d_ks]
    lines: list[list[Any]] = []
    for row in rules.sorted:
        line = [*asked.values(), row.rule, row.multiplier]
        for name in MEASURED:
            line += existing_pair(row.estimate(name))
        lines.append([*line, rules.status(row), *map(existing, rules.curves.values[row.rule])])
    return csv_text(header, lines)


def rules_markdown(rules: RulesResult, say: Say = str) -> str:
    """Return a page with a line for each rule."""
    header = ["rule", "name", "multiplier", *(STATISTIC[name].label for name in MEASURED), "status", "freezing"]
    lines: list[list[str]] = []
    for row in rules.shown:
        cells = [cell(row.estimate(name), STATISTIC[name]) for name in MEASURED]
        number = NONE if row.multiplier is None else digits(row.multiplier)
        freezing = rules.freezing.get(row.rule)
        cells += [rules.status(row) or NONE, freezing.words()[0] if freezing else NONE]
        lines.append([scale_rule(row.rule).label, row.rule, number, *cells])
    return markdown_page(rules_words(rules.parameters), header, lines, remarks(rules), rules.command, say)


def rules_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `d_k 64`, …: the parameters that all rules share, if in `always` or not at their default."""
    return notable_words(p, [name for name in FIELD if name not in (*SETTINGS, "scale", "against")], always)


def remarks(rules: RulesResult) -> list[str]:
    """Return sentences on the parameters that only some rules use, and on why some have no multiplier."""
    p = rules.parameters
    words = (
        message("{parameter} {value}", parameter=FIELD[name].label, value=FIELD[name].format(getattr(p, name)))
        for name in SETTINGS
    )
    used = message("Rules that need them use {parameters}.", parameters=joined(words, ", "))
    return [used, *(message("{fault}.", fault=row.fault) for row in rules.sorted if row.fault)]


def mechanisms_json(found: MechanismsResult) -> str:
    """Return the comparison as one JSON object."""
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
                    "with_sink": row.with_sink,
                    "scale": scale_json(row.rule, row.multiplier),
                    "measured": {name: estimate_json(estimate) for name, estimate in row.measured.items()},
                    "largest_score": existing(row.largest),
                    "score_bound": existing(row.bound),
                }
                for row in found.rows
            ],
        }
    )


def mechanisms_csv(found: MechanismsResult) -> str:
    """Return a line for each mechanism at each d_k."""
    names = [*found.rows[0].measured] if found.rows else []
    asked = {name: getattr(found.parameters, name) for name in FIELD if name not in NOT_OF_MECHANISMS}
    header = [*asked, "d_k", "mechanism", "with_sink", "scale", "multiplier"]
    header += [title for name in names for title in (name, f"{name}_stderr")]
    lines: list[list[Any]] = []
    for row in found.rows:
        numbers = [number for estimate in row.measured.values() for number in existing_pair(estimate)]
        place = [*asked.values(), row.d_k, row.mechanism, row.with_sink, row.rule, row.multiplier]
        lines.append([*place, *numbers, existing(row.largest), existing(row.bound)])
    return csv_text([*header, "largest_score", "score_bound"], lines)


def mechanisms_markdown(found: MechanismsResult, say: Say = str) -> str:
    """Return a page with a line for each mechanism at each d_k."""
    names = [*found.rows[0].measured] if found.rows else []
    header = ["mechanism", "scale", "d_k", *(STATISTIC[name].label for name in names), "largest score", "bound"]
    lines: list[list[str]] = []
    for row in found.rows:
        cells = [cell(estimate, STATISTIC[name]) for name, estimate in row.measured.items()]
        ends = [cell(Estimate(number, None), STATISTIC["logit_std"]) for number in (row.largest, row.bound)]
        word = choice_word(row.mechanism) + (" with sink" if row.with_sink else "")
        place = (word, scale_rule(row.rule).label, str(row.d_k))
        lines.append([*place, *cells, *ends])
    return markdown_page(mechanisms_words(found.parameters), header, lines, (), found.command, say)


def mechanisms_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `keys 128`, …: the parameters that all mechanisms share, if in `always` or not at their default."""
    p = p.with_value("mechanism", "additive")  # the one for which all parameters of mechanisms have an effect
    return notable_words(p, [name for name in FIELD if name not in NOT_OF_MECHANISMS], always)


@dataclass(frozen=True, eq=False)
class WeightingsResult:
    """A comparison of weightings: the request and the result."""

    parameters: Parameters
    rows: Sequence[WeightingRow]
    command: str  # reproduces the result


def weightings_json(found: WeightingsResult) -> str:
    """Return the comparison as one JSON object."""
    return json_text(
        {
            "schema": _WEIGHTINGS,
            "version": version(),
            "command": found.command,
            "parameters": _asked_of_weightings(found.parameters),
            "weightings": [
                {
                    "weighting": row.name,
                    "formula": WEIGHTINGS[row.name].formula,
                    "source": WEIGHTINGS[row.name].source,
                    "constant": {"symbol": WEIGHTINGS[row.name].setting or None, "value": row.setting},
                    "fault": row.fault or None,
                    "measured": {name: estimate_json(row.estimate(name)) for name in MEASURES_OF_WEIGHTS},
                }
                for row in found.rows
            ],
            "draws": found.rows[0].draws,
            "rows_of_a_draw": found.rows[0].rows,
        }
    )


def weightings_csv(found: WeightingsResult) -> str:
    """Return a line for each weighting: the parameters, its constant, each value with its standard error."""
    asked = _asked_of_weightings(found.parameters)
    header = [
        *asked,
        "weighting",
        "constant",
        *(title for name in MEASURES_OF_WEIGHTS for title in (name, f"{name}_stderr")),
    ]
    lines: list[list[Any]] = []
    for row in found.rows:
        numbers = [existing(number) for name in MEASURES_OF_WEIGHTS for number in row.estimate(name)]
        lines.append([*asked.values(), row.name, row.setting, *numbers])
    return csv_text(header, lines)


def weightings_markdown(found: WeightingsResult, say: Say = str) -> str:
    """Return a page with a line for each weighting."""
    header = ["weighting", "formula", *(heading for heading, _ in _HEADINGS.values())]
    lines: list[list[str]] = []
    for row in found.rows:
        cells = [cell(row.estimate(name), STATISTIC[unit]) for name, (_, unit) in _HEADINGS.items()]
        lines.append([WEIGHTINGS[row.name].label, WEIGHTINGS[row.name].formula, *cells])
    said = weightings_remarks(found.parameters, found.rows)
    return markdown_page(weightings_words(found.parameters), header, lines, said, found.command, say)


def weightings_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `d_k 64`, …: the parameters that weightings depend on, if in `always` or not at their default."""
    return notable_words(p, [name for name in FIELD if name not in NOT_OF_WEIGHTINGS], always)


def weightings_remarks(p: Parameters, rows: Sequence[WeightingRow]) -> list[str]:
    """Return sentences on what is measured, on the constants and on why some weightings have no values."""
    sample = rows[0]
    by_name = {row.name: row for row in rows}

    def constant(name: str) -> str:
        value = by_name[name].setting
        return NONE if value is None else digits(value).replace("-", "−")

    words: list[str] = [
        message(
            "The entropy is that of p/Σp. J = ∂p/∂z is with respect to the scaled logits. Sigmoid weights are not "
            "shares of one sum, and those of differential attention may be negative, so some columns do not apply to "
            "them."
        )
    ]
    constants = [message("b is {bias}", bias=constant("sigmoid"))]
    if not by_name["differential"].fault:
        constants.append(
            message(
                "λ is {value}, its initial value in layer {layer}, with z₁ and z₂ from the halves of d_k, each "
                "scaled for its own width",
                value=constant("differential"),
                layer=p.layer,
            )
        )
    if not by_name["forgetting"].fault:
        constants.append(
            message(
                "f is {value} = σ(2) at every position; models compute it from the token",
                value=constant("forgetting"),
            )
        )
    gamma = constant("qk_clip")
    constants.append(
        message("γ is {gamma}, no logit is above 100", gamma=gamma)
        if by_name["qk_clip"].setting == 1
        else message("γ is {gamma}, the mean over draws, each taken as one head", gamma=gamma)
    )
    words.append(message("{constants}.", constants=joined(constants, "; ")))
    words += [message("{fault}.", fault=row.fault) for row in rows if row.fault]
    if sample.draws < p.batch or sample.rows < p.n_queries:
        words.append(message("Measured on {rows} rows of {draws} draws each.", rows=sample.rows, draws=sample.draws))
    return words


def _asked_of_weightings(p: Parameters) -> dict[str, Any]:
    return {name: getattr(p, name) for name in FIELD if name not in NOT_OF_WEIGHTINGS}
