"""Export the comparisons of scale rules and of mechanisms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..lab.results import MEASURED, NOT_OF_MECHANISMS, SETTINGS, Order, RuleRow, listed_rules
from ..message import joined, message
from ..parameters import FIELD, Parameters, choice_word
from ..scales import scale_rule
from ..statistics.catalogue import STATISTIC
from ..statistics.measurement import Estimate
from ..statistics.status import Status
from ..theory.prediction import status_given
from .formats import NONE
from .statistics import OF_ALL_COLUMNS, cell, estimate_cell, notable_words, saturation_entry, scale_entry
from .table import Cell, Table, grid, page_of, table_of, text_cell

if TYPE_CHECKING:
    from ..lab.results import MechanismRow, RuleCurves
    from ..theory.prediction import Saturation


@dataclass(frozen=True, eq=False)
class RulesResult:
    """A comparison of scale rules: the request and the result."""

    parameters: Parameters
    order: Order
    rows: Sequence[RuleRow]
    curves: RuleCurves
    saturation: Mapping[str, Saturation | None]  # by rule, of those that have a multiplier

    def status(self, row: RuleRow) -> Status | None:
        """Return the status of a rule's row; None if the rule has no multiplier."""
        return status_given(self.saturation.get(row.rule), row.measured)

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
class ComparedMechanisms:
    """A comparison of mechanisms: the request and the result."""

    parameters: Parameters
    rows: Sequence[MechanismRow]


def rules_table(rules: RulesResult, command: str) -> Table[RuleRow]:
    """Return all rules in the requested order, and the command that reproduces them."""
    p, curves = rules.parameters, rules.curves

    def where(row: RuleRow) -> str:
        saturation = rules.saturation.get(row.rule)
        return saturation.words()[0] if saturation else NONE

    cells: list[Cell[RuleRow]] = [
        text_cell("rule", lambda row: scale_rule(row.rule).label),
        Cell("rule", str, label="name"),
        Cell("formula", object, lambda row: scale_rule(row.rule).formula),
        Cell("multiplier", float, label="multiplier"),
        Cell("fault", object, lambda row: row.fault or None),
        *(estimate_cell(name, RuleRow.estimate) for name in MEASURED),
        Cell("saturation", object, lambda row: saturation_entry(rules.saturation.get(row.rule))),
        Cell("status", str, rules.status, "status"),
        text_cell("saturation", where),
        Cell("entropy_fraction_over_d_k", object, lambda row: curves.values[row.rule]),
        *(_at(d_k, curves) for d_k in curves.d_ks),
    ]
    asked = {name: getattr(p, name) for name in FIELD if name not in OF_ALL_COLUMNS}
    return table_of(
        "rules-2",
        {
            "command": command,
            "parameters": {name: getattr(p, name) for name in FIELD},
            "sort": {"column": rules.order.column, "reverse": rules.order.reverse},
        },
        "rules",
        rules.sorted,
        cells,
        lambda: page_of(rules_words(p), grid(cells, rules.shown), remarks(rules), command),
        asked,
        {"over_d_k": {"d_k": curves.d_ks, "draws": curves.draws, "rows_of_a_draw": curves.rows}},
    )


def _at(d_k: int, curves: RuleCurves) -> Cell[RuleRow]:
    """Return the column of CSV with the curves at a d_k."""
    at = curves.d_ks.index(d_k)
    return Cell(f"entropy_fraction_at_d_k_{d_k}", float, lambda row: curves.values[row.rule][at], in_json=False)


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


def mechanism_word(row: MechanismRow) -> str:
    """Return the mechanism of a row in words."""
    word = choice_word(row.mechanism)
    return message("{mechanism} with sink", mechanism=word) if row.with_sink else word


def mechanisms_table(answer: ComparedMechanisms, command: str) -> Table[MechanismRow]:
    """Return each mechanism at each d_k, and the command that reproduces them."""
    unit = STATISTIC["logit_std"]
    asked = {name: getattr(answer.parameters, name) for name in FIELD if name not in NOT_OF_MECHANISMS}
    names = [*answer.rows[0].measured] if answer.rows else []
    cells: list[Cell[MechanismRow]] = [
        text_cell("mechanism", mechanism_word),
        text_cell("scale", lambda row: scale_rule(row.rule).label),
        Cell("d_k", int, label="d_k"),
        Cell("mechanism", str),
        Cell("with_sink", bool),
        Cell("scale", object, lambda row: scale_entry(row.rule, row.multiplier)),
        Cell("scale", str, "rule", in_json=False),
        Cell("multiplier", float, in_json=False),
        *(estimate_cell(name, lambda row, name: row.measured[name]) for name in names),
        Cell(
            "largest_score", float, "largest", "largest score",
            lambda row: cell(Estimate(row.largest, None), unit),
        ),
        Cell("score_bound", float, "bound", "bound", lambda row: cell(Estimate(row.bound, None), unit)),
    ]  # fmt: skip
    return table_of(
        "mechanisms-1",
        {"command": command, "parameters": asked},
        "points",
        answer.rows,
        cells,
        lambda: page_of(mechanisms_words(answer.parameters), grid(cells, answer.rows), (), command),
        asked,
    )


def mechanisms_words(p: Parameters, always: Sequence[str] = tuple(FIELD)) -> list[str]:
    """Return `keys 128`, …: the parameters that all mechanisms share, if in `always` or not at their default."""
    p = p.with_value("mechanism", "additive")  # the one for which all parameters of mechanisms have an effect
    return notable_words(p, [name for name in FIELD if name not in NOT_OF_MECHANISMS], always)
