"""The widgets of the Rules pane: the table of rules, the selected rule, mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events

from ....core.lab.results import MEASURED, RULES, Order, RuleRow
from ....core.message import joined, message
from ....core.parameters import FIELD, Parameters
from ....core.scales import is_formula, scale_rule
from ....core.statistics.catalogue import STATISTIC
from ...views.glyphs import Glyphs
from ...views.lines import Line, Span, fitted, shortened, wrapped
from ...views.numbers import error, short
from ...views.results.mechanisms import mechanism_lines
from ...views.results.rules import (
    HEAD,
    RuleTableContents,
    column_at,
    first_line,
    next_columns,
    rule_at,
    table_lines,
    title_line,
    words_of,
)
from ...widgets.lines import ChoosingLines, Content, LinesWidget, ScrolledLines

if TYPE_CHECKING:
    from ....core.lab.results import MechanismRow as MechanismRow
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
    if is_formula(name):
        lines += wrapped(glyphs.say("This is {source}.", source=rule.source), width)
    else:
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
    title: list[Span] = [(glyphs.say(rule.formula), "heading"), ("" if is_formula(name) else f"  {name}", "dim")]
    if rule.needs:
        labels = joined(
            [
                message(
                    "{parameter} {value}", parameter=field.label, value=field.format(getattr(parameters, field.name))
                )
                for field in map(FIELD.__getitem__, rule.needs)
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


class RuleTable(ChoosingLines):
    """Shows a row for each rule; if not all fit, those around the cursor.

    `choose` is called with a clicked rule, `sort` with a column whose heading is clicked.
    """

    HEADED, LEADS = True, True
    DEFAULT_CLASSES = "region"

    def __init__(self, choose: Callable[[str], object], sort: Callable[[str], object]) -> None:
        super().__init__(choose)
        self._sort = sort

    shown: Content[RuleTableContents] = Content(RuleTableContents(RULES, {}, {}, Order(), ""))
    top = 0  # index of the first line shown

    def next_columns(self) -> int:
        """Return the first column to show next, to show hidden ones."""
        shown = self.shown
        return next_columns(self.size.width, shown.first_column, shown.order.column)

    def heading(self, width: int) -> Line:
        return title_line(self.shown, width, self.size.width, self.glyphs)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        shown = self.shown
        self.top = first_line(shown, self.top, height)
        return table_lines(shown, width, self.top, height, self.glyphs)

    def on_click(self, event: events.Click) -> None:
        x, y = self.place_of(event)
        rule = rule_at(self.shown, self.top, y, self.room.height)
        if rule is not None:
            self._choose(rule)
        elif 0 <= y < HEAD:
            column = column_at(self.shown, self.size.width, x, self.glyphs)
            if column is not None:
                self._sort(column)


class RuleText(LinesWidget):
    """Shows the description of a rule."""

    HEADED = True
    DEFAULT_CLASSES = "region"

    rule: Content[str] = Content(RULES[0])
    row: Content[RuleRow | None] = Content(None)  # what was measured
    saturation: Content[Saturation | None] = Content(None)
    objection: Content[str] = Content("")  # an error
    parameters: Content[Parameters] = Content(Parameters())

    def heading(self, width: int) -> Line:
        return rule_title(self.rule, self.glyphs, self.parameters)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        contents = self.rule, self.row, self.saturation, width - 2, self.glyphs, self.objection
        lines = rule_text(*contents)
        lines = lines if len(lines) <= height else rule_text(*contents, figures=False)
        shown = shortened(lines, width - 2, height, self.glyphs.say("…"))
        return [fitted(((" ", "text"), *line), width) for line in shown]


class MechanismText(ScrolledLines):
    """Shows mechanisms over d_k."""

    HEADED, LEADS = True, True
    TITLE = "mechanisms over d_k, each with its usual scale rule"
    DEFAULT_CLASSES = "region"

    rows: Content[Sequence[MechanismRow]] = Content(())  # measured so far
    objection: Content[str] = Content("")  # why rows are missing

    def write(self, width: int, height: int) -> Sequence[Line]:
        lines = wrapped(self.glyphs.say(self.objection), width - 2, "alert")
        if self.rows or not self.objection:
            lines += mechanism_lines(self.rows, width - 2, self.glyphs)
        return [((" ", "text"), *line) for line in lines]
