"""The table of scale rules with a cursor, the rule it stands on in words, and mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message

from ...core.lab.rule_rows import RULES, Order, Row
from ..views.lines import Line, fitted, wrapped
from ..views.mechanisms import mechanism_lines
from ..views.rule_text import rule_text
from ..views.rules import HEAD, Shown, next_columns, rows_in, table_lines, title_line
from .lines import LinesWidget
from .scrolled import ScrolledLines

if TYPE_CHECKING:
    from ...core.lab.mechanisms import Row as MechanismRow

OVER = 1 + HEAD  # lines over the rows


class RuleTable(LinesWidget):
    """Shows a row for each rule, those around the cursor."""

    class Pointed(Message):
        """Somebody points at a rule."""

        def __init__(self, rule: str) -> None:
            super().__init__()
            self.rule = rule

    shown = Shown(RULES, {}, None, Order(), "")
    top = 0  # number of the first row that is shown

    def next_columns(self) -> int:
        """The first column to show, to see those that have no room now."""
        shown = self.shown
        return next_columns(self.size.width, shown.first_column, shown.order.column, shown.curves)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        shown = self.shown
        room = rows_in(len(shown.names), height - 1)
        at = shown.names.index(shown.cursor)
        self.top = min(max(self.top, at - room + 1), at, max(len(shown.names) - room, 0))
        title = title_line(shown, width, self.glyphs)
        return [title, *table_lines(shown, width, self.top, height - 1, self.glyphs)]

    def on_click(self, event: events.Click) -> None:
        at = event.y - OVER
        if 0 <= at < rows_in(len(self.shown.names), self.size.height - 1):
            self.post_message(self.Pointed(self.shown.names[self.top + at]))


class RuleText(LinesWidget):
    """Shows one rule in words."""

    rule = RULES[0]
    row: Row | None = None
    objection = ""  # what stands in the way of what was asked for

    def show(self, rule: str, row: Row | None, objection: str = "") -> None:
        """Show this rule."""
        self.rule, self.row, self.objection = rule, row, objection
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        told = self.rule, self.row, width - 2, self.glyphs, self.objection
        lines = rule_text(*told)
        if len(lines) > height:
            lines = rule_text(*told, figures=False)
        shown: list[Line] = [((" ", "text"), *line) for line in lines[:height]]
        if len(lines) > height > 1:
            shown[-1] = ((f" {len(lines) - height + 1} more lines: i", "dim"),)
        return [fitted(line, width) for line in shown]


class MechanismText(ScrolledLines):
    """Shows mechanisms over d_k."""

    rows: Sequence[MechanismRow] = ()
    objection = ""  # why there are no more

    def show(self, rows: Sequence[MechanismRow], objection: str = "") -> None:
        """Show these."""
        self.rows, self.objection = rows, objection
        self.redraw()

    def write(self, width: int, height: int) -> Sequence[Line]:
        lines: list[Line] = [(("Mechanisms over d_k, each under the rule it is used with", "heading"),)]
        lines += wrapped(self.glyphs.say(self.objection), width - 2, "alert")
        if self.rows or not self.objection:
            lines += mechanism_lines(self.rows, width - 2, self.glyphs)
        return [((" ", "text"), *line) for line in lines]
