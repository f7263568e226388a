"""What the Rules pane exports: scale rules, mechanisms or weightings in a format, or as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ....core.lab.results import Order
from ....core.parameters import Parameters
from ....core.tables import rules as tables
from ...compute.question import rules_line
from .requests import of_mechanisms, of_weightings

if TYPE_CHECKING:
    from ....core.program.text import Dialect
    from ....core.tables.table import Format, Table

View: TypeAlias = Literal["rules", "words", "mechanisms", "weightings"]
Result: TypeAlias = tables.RulesResult | tables.MechanismsResult | tables.WeightingsResult


def table(found: Result) -> Table[Any]:
    """Return a result as `attn-tui rules` prints it."""
    match found:
        case tables.MechanismsResult():
            return tables.mechanisms_table(found)
        case tables.WeightingsResult():
            return tables.weightings_table(found)
        case tables.RulesResult():
            return tables.rules_table(found)


def code(found: Result, dialect: Dialect) -> str:
    """Return the program that prints a result; raise InputError if there is none."""
    from ....core.program.library import weightings_code
    from ....core.program.sweep import mechanisms_code, rules_code

    match found:
        case tables.MechanismsResult():
            return mechanisms_code(found.parameters, found.rows, dialect, found.command)
        case tables.WeightingsResult():
            return weightings_code(found.parameters, found.rows, found.command)
        case tables.RulesResult():
            return rules_code(found.parameters, found.sorted, dialect, found.command)


def line_of(view: View, p: Parameters, order: Order, kind: Format | Literal["table"], ascii_only: bool) -> str:
    """Return the command that prints a view in a format."""
    if view == "mechanisms":
        return rules_line(of_mechanisms(p), Order(), True, kind, ascii_only)
    if view == "weightings":
        return rules_line(of_weightings(p), Order(), False, kind, ascii_only, weightings=True)
    return rules_line(p, order, False, kind, ascii_only)
