"""The widgets of the Rules pane: the table of rules, the selected rule, mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import events

from ....core.lab.results import RULES, Order, RuleRow
from ....core.parameters import Parameters
from ...views.lines import EDGES, Line, fitted, line_width, shortened, wrapped
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
)
from ...widgets.lines import ChoosingLines, Content, LinesWidget, ScrolledLines
from .rule_text import rule_text, rule_title, source_line

if TYPE_CHECKING:
    from ....core.lab.results import MechanismRow as MechanismRow
    from ....core.theory.prediction import Saturation


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

    def note(self) -> Line:
        room = self.outer_size.width - EDGES - 3 - line_width(self.heading(0))
        return source_line(self.rule, room, self.glyphs)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        contents = self.rule, self.row, self.saturation, width - 2, self.glyphs, self.objection
        texts = (rule_text(*contents, figures=figures) for figures in (True, False))
        lines = next(
            (text for text in texts if len(text) <= height), rule_text(*contents, figures=False, source=False)
        )
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
