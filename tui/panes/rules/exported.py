"""What the Rules pane exports: scale rules, mechanisms or weightings in a format, or as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ....core.export import rules as export
from ....core.export.formats import in_format
from ....core.lab.results import Order
from ....core.parameters import Parameters
from ...views.glyphs import Glyphs
from ...views.reproduce import rules_line
from .requests import of_mechanisms, of_weightings

if TYPE_CHECKING:
    from ....core.export.code.program import Dialect
    from ....core.export.formats import Format

View: TypeAlias = Literal["rules", "words", "mechanisms", "weightings"]
Result: TypeAlias = export.RulesResult | export.MechanismsResult | export.WeightingsResult


def written(found: Result, kind: Format, glyphs: Glyphs) -> str:
    """Return a result exactly as `attn-tui rules` prints it in this format."""
    match found:
        case export.MechanismsResult():
            to = export.mechanisms_json, export.mechanisms_csv, export.mechanisms_markdown
            return in_format(kind, glyphs.say, *to, found)
        case export.WeightingsResult():
            to = export.weightings_json, export.weightings_csv, export.weightings_markdown
            return in_format(kind, glyphs.say, *to, found)
        case export.RulesResult():
            return in_format(kind, glyphs.say, export.rules_json, export.rules_csv, export.rules_markdown, found)


def code(found: Result, dialect: Dialect) -> str:
    """Return the program that prints a result; raise InputError if there is none."""
    from ....core.export.code.compared.mechanisms import mechanisms_code
    from ....core.export.code.compared.rules import rules_code
    from ....core.export.code.compared.weightings import weightings_code

    match found:
        case export.MechanismsResult():
            return mechanisms_code(found.parameters, found.rows, dialect, found.command)
        case export.WeightingsResult():
            return weightings_code(found.parameters, found.rows, dialect, found.command)
        case export.RulesResult():
            return rules_code(found.parameters, found.sorted, dialect, found.command)


def line_of(view: View, p: Parameters, order: Order, kind: Format | Literal["table"], ascii_only: bool) -> str:
    """Return the command that prints a view in a format."""
    if view == "mechanisms":
        return rules_line(of_mechanisms(p), Order(), True, kind, ascii_only)
    if view == "weightings":
        return rules_line(of_weightings(p), Order(), False, kind, ascii_only, weightings=True)
    return rules_line(p, order, False, kind, ascii_only)
