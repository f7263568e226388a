"""The description of a scale rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.lab.results import MEASURED, RuleRow
from ....core.message import message
from ....core.parameters import FIELD
from ....core.scales import scale_rule
from ....core.statistics.catalogue import STATISTIC
from ...views.glyphs import Glyphs
from ...views.lines import Line, Span, wrapped
from ...views.numbers import error, short
from .view import words_of

if TYPE_CHECKING:
    from ....core.theory.prediction import Freezing


def rule_text(
    name: str,
    row: RuleRow | None,
    freezing: Freezing | None,
    width: int,
    glyphs: Glyphs,
    objection: str = "",
    figures: bool = True,
) -> list[Line]:
    """Return a rule's users, note and source, and with `figures` where it freezes and what was measured.

    `objection` is an error to show; by default, why the rule has no multiplier.
    """
    rule = scale_rule(name)
    lines: list[Line] = []
    if row is not None and row.fault and not objection:
        objection = f"{row.fault}."
    lines += wrapped(glyphs.say(objection), width, "alert")
    lines += wrapped(glyphs.say("Used by {used_by}.", used_by=rule.used_by), width)
    if rule.note:
        lines += wrapped(glyphs.say(f"{rule.note}."), width)
    lines += wrapped(glyphs.say("Source: {source}.", source=rule.source), width, "dim")
    if figures and row is not None and row.measured:
        words = (
            message("Softmax {value}{words}. ", value="is " * bool(freezing.frozen_at), words=freezing.words()[0])
            if freezing
            else ""
        )
        lines += wrapped(glyphs.say(words + _measured(row, glyphs)), width, "dim")
    return lines


def rule_title(name: str, glyphs: Glyphs) -> Line:
    """Return a rule's formula, its name, and the parameters that it depends on."""
    rule = scale_rule(name)
    title: list[Span] = [(glyphs.say(rule.formula), "heading"), (f"  {name}", "dim")]
    if rule.needs:
        labels = ", ".join(FIELD[need].label for need in rule.needs)
        title.append((glyphs.say(" · depends on {labels}", labels=labels), "dim"))
    return tuple(title)


def _measured(row: RuleRow, glyphs: Glyphs) -> str:
    """Return every value with its standard error."""
    parts: list[str] = []
    for column in MEASURED:
        estimate, percent = row.estimate(column), STATISTIC[column].unit == "share"
        if estimate.value is None:
            continue
        if percent and not estimate.value:
            parts.append(message("{column} none", column=words_of(column)))
            continue
        factor, unit = (100, " %") if percent else (1, "")
        sign = "± ≥" if estimate.is_rough else "±"
        spread = "" if not estimate.stderr else f" {sign} {error(factor * estimate.stderr, glyphs).strip()}"
        parts.append(f"{words_of(column)} {short(factor * estimate.value, glyphs)}{spread}{unit}")
    return " · ".join(parts) + "."
