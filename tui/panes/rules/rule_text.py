"""The description of a scale rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.lab.results import MEASURED, RuleRow
from ....core.message import joined, message
from ....core.parameters import FIELD, Parameters
from ....core.scales import scale_rule
from ....core.statistics.catalogue import STATISTIC
from ...views.glyphs import Glyphs
from ...views.lines import Line, Span, wrapped
from ...views.numbers import error, short
from ...views.results.rules import words_of

if TYPE_CHECKING:
    from ....core.theory.prediction import Saturation

_USUAL = Parameters()


def rule_text(
    name: str,
    row: RuleRow | None,
    saturation: Saturation | None,
    width: int,
    glyphs: Glyphs,
    objection: str = "",
    figures: bool = True,
) -> list[Line]:
    """Return a rule's users, note and source, and with `figures` where it saturates and what was measured.

    `objection` is an error to show; by default, why the rule has no multiplier.
    """
    rule = scale_rule(name)
    lines: list[Line] = []
    if row is not None and row.fault and not objection:
        objection = message("{reason}.", reason=row.fault)
    lines += wrapped(glyphs.say(objection), width, "alert")
    about = message("Used by {used_by}.", used_by=rule.used_by)
    if rule.note:
        about = joined([about, message("{note}.", note=rule.note)])
    lines += wrapped(glyphs.say(about), width)
    lines += wrapped(glyphs.say("Source: {source}.", source=rule.source), width, "dim")
    if figures and row is not None and row.measured:
        where = [_saturates(saturation)] if saturation else []
        lines += wrapped(glyphs.say(joined([*where, _measured(row, glyphs)])), width, "dim")
    return lines


def _saturates(saturation: Saturation) -> str:
    """Return the sentence on where softmax saturates."""
    where = saturation.words()[0]
    return (
        message("Softmax is {where}.", where=where)
        if saturation.saturated_at
        else message("Softmax {where}.", where=where)
    )


def rule_title(name: str, glyphs: Glyphs, parameters: Parameters = _USUAL) -> Line:
    """Return a rule's formula, its name, and the parameters that it depends on."""
    rule = scale_rule(name)
    title: list[Span] = [(glyphs.say(rule.formula), "heading"), (f"  {name}", "dim")]
    if rule.needs:
        labels = joined(
            [
                message(
                    "{parameter} {value}", parameter=each.label, value=each.format(getattr(parameters, each.name))
                )
                for each in map(FIELD.__getitem__, rule.needs)
            ],
            ", ",
        )
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
            parts.append(joined([words_of(column), message("none")]))
            continue
        factor, unit = (100, " %") if percent else (1, "")
        sign = "± ≥" if estimate.is_rough else "±"
        spread = "" if not estimate.stderr else f" {sign} {error(factor * estimate.stderr, glyphs).strip()}"
        parts.append(joined([words_of(column), f"{short(factor * estimate.value, glyphs)}{spread}{unit}"]))
    return message("{figures}.", figures=joined(parts, " · "))
