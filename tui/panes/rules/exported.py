"""What the Rules pane exports: scale rules, mechanisms or weightings in a format, or the program of scale rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ....core.errors import InputError
from ....core.export import rules as export
from ...views.glyphs import Glyphs
from ..in_format import in_format

if TYPE_CHECKING:
    from ....core.export.code.program import Dialect
    from ....core.export.formats import Format

Result: TypeAlias = export.RulesResult | export.MechanismsResult | export.WeightingsResult


def written(found: Result, kind: Format, glyphs: Glyphs) -> str:
    """Return a result exactly as `attn-tui rules` prints it in this format."""
    match found:
        case export.MechanismsResult():
            to = export.mechanisms_json, export.mechanisms_csv, export.mechanisms_markdown
            return in_format(kind, found, *to, glyphs)
        case export.WeightingsResult():
            to = export.weightings_json, export.weightings_csv, export.weightings_markdown
            return in_format(kind, found, *to, glyphs)
        case export.RulesResult():
            return in_format(kind, found, export.rules_json, export.rules_csv, export.rules_markdown, glyphs)


def code(found: Result, dialect: Dialect) -> str:
    """Return the program that prints scale rules; raises InputError for mechanisms and weightings."""
    from ....core.export.code.compared.rules import rules_code

    if not isinstance(found, export.RulesResult):
        raise InputError("No short program prints this view; v shows the scale rules, whose code there is.")
    return rules_code(found.parameters, found.sorted, dialect, found.command)
