"""The Rules pane: every scale rule on one question, side by side; and mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ...core.errors import InputError
from ...core.lab.rule_rows import NOT_OF_MECHANISMS, RULES, SORTABLE, Order, Row
from ...core.parameters import FIELD, Field, Parameters
from ...core.statistics.catalogue import STATISTIC, Statistic
from .. import work
from ..messages import Failed, MechanismsPart, RuleCurvesReady, RulesPart, ToLab
from ..views.bars import Key
from ..views.glyphs import Glyphs
from ..views.rules import Shown
from ..widgets.rules import OVER, MechanismText, RuleTable, RuleText
from .following import FollowingPane

if TYPE_CHECKING:
    from ...core.export.formats import Format
    from ...core.lab.mechanisms import Row as MechanismRow
    from ...core.lab.rule_curves import Curves

_SOON = 0.3  # seconds that rows of older parameters may stay on screen as if they were of these
_FEW, _MOST = 5, 9  # lines of a rule's words
_LOW = 20  # lines of a pane from which on it has room for all of the few


class RulesPane(FollowingPane):
    """The table, and the rule with the cursor in words; or mechanisms.

    What is known stays where it is while something else is being measured: rows change places only once all are new.
    While the pane is hidden nothing is computed.
    """

    NAME = "Rules"
    WORK = ("rules", "mechanisms", "curves")
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "rule"), ("←→", "d_k ±1"), ("s", "sort"), ("r", "reverse"), ("Enter", "Lab"), ("?", "help"),
        ("q", "quit"), (">", "next pane"), ("m", "mechanisms"), ("v", "columns"), ("i", "in full"), ("d", "d_k ×2"),
        ("[ ]", "keys"), ("f", "format"), ("c", "law"), ("x", "mask"), ("n", "redraw"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next rule", show=False, id="rules.next"),
        Binding("up,k", "move(-1)", "previous rule", show=False, id="rules.previous"),
        Binding("pagedown", "move(10)", "ten rules on", show=False, id="rules.page_down"),
        Binding("pageup", "move(-10)", "ten rules back", show=False, id="rules.page_up"),
        Binding("home", "move(-1000)", "first rule", show=False, id="rules.first"),
        Binding("end", "move(1000)", "last rule", show=False, id="rules.last"),
        Binding("right,l", "d_k(1)", "d_k + 1", show=False, id="rules.more"),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False, id="rules.less"),
        Binding("d", "step('d_k', 1)", "d_k to the next power of two", show=False, id="rules.double"),
        Binding("D", "step('d_k', -1)", "d_k to the previous power of two", show=False, id="rules.halve"),
        Binding("w", "width(1)", "next width of a real model", show=False, id="rules.next_width"),
        Binding("W", "width(-1)", "previous width of a real model", show=False, id="rules.previous_width"),
        Binding("s", "sort(1)", "sort by the next column", show=False, id="rules.sort_next"),
        Binding("S", "sort(-1)", "sort by the previous column", show=False, id="rules.sort_previous"),
        Binding("r", "reverse", "the other way round", show=False, id="rules.reverse"),
        Binding("v", "columns", "columns that have no room", show=False, id="rules.columns"),
        Binding("i", "words", "the rule in full, without the table", show=False, id="rules.words"),
        Binding("m", "mechanisms", "mechanisms over d_k, or scale rules", show=False, id="rules.mechanisms"),
        Binding("enter", "to_lab", "the rule into the Lab", show=False, id="rules.to_lab"),
        Binding("right_square_bracket", "step('n_keys', 1)", "keys × 2", show=False, id="rules.more_keys"),
        Binding("left_square_bracket", "step('n_keys', -1)", "keys ÷ 2", show=False, id="rules.fewer_keys"),
        Binding("f", "step('precision', 1)", "next number format", show=False, id="rules.next_format"),
        Binding("c", "step('components', 1)", "next component law", show=False, id="rules.next_law"),
        Binding("x", "step('mask', 1)", "next mask", show=False, id="rules.next_mask"),
        Binding("n", "step('seed', 1)", "redraw with a new seed", show=False, id="rules.redraw"),
    ]

    def __init__(self, parameters: Parameters, glyphs: Glyphs) -> None:
        super().__init__(parameters, glyphs)
        self.table = RuleTable()
        self.words = RuleText()
        self.mechanisms = MechanismText()
        self.order = Order()
        self.cursor: str = parameters.scale
        self.view: Literal["rules", "words", "mechanisms"] = "rules"
        self.rows: dict[str, Row] = {}  # those that are known, perhaps of older parameters
        self.curves: Curves | None = None
        self._names: Sequence[str] = RULES  # as they stand
        self._first_column = 0
        self._fresh: set[str] = set()  # rules that are known of what is asked for
        self._doubtful = False  # whether rows that are not stand back
        self._asked: dict[str, Parameters] = {}  # by kind of work, the question that it is at work on or has answered
        self._answered: dict[str, Parameters] = {}
        self._compared: dict[object, MechanismRow] = {}  # by d_k, mechanism and rule, perhaps of older parameters
        self._objection = ""  # why there is no result, until something else is asked for
        self._work = work.Rules()

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.words
        yield self.mechanisms

    @property
    def topic(self) -> Field | Statistic:
        if self.view == "mechanisms":
            return FIELD["mechanism"]
        return STATISTIC.get(self.order.column) or FIELD["scale"]

    # What it is told

    def on_hide(self) -> None:
        """Out of sight nothing is computed; what has been measured is kept."""
        self._work = work.Rules()  # without what it has drawn
        for kind, question in [*self._asked.items()]:
            if self._answered.get(kind) != question:
                self.recompute.request(kind, work.nothing)
                del self._asked[kind]
        self.say_progress(None)

    def on_resize(self, event: events.Resize) -> None:
        self._arrange()

    # What it asks for, and what comes of that

    def _ask(self) -> None:
        """Ask for what these parameters lead to, as far as it is not known and is looked at."""
        p, self._objection = self.parameters, ""
        if self.view == "mechanisms":
            question = _of_mechanisms(p)
            if self._begin("mechanisms", question):
                self.compute("mechanisms", partial(work.compare_mechanisms, question))
                self.set_timer(_SOON, self._doubt)
        else:
            question = _of_rules(p)
            if self._begin("rules", question):
                self._fresh = set()
                self.compute("rules", partial(self._work.measure, question))
                self.set_timer(_SOON, self._doubt)
            question = _of_curves(p)
            if self._begin("curves", question):
                self.compute("curves", partial(work.rule_curves, question))
        self._show()

    def _begin(self, kind: str, question: Parameters) -> bool:
        """Whether this has to be asked for; it is then what is at work."""
        if self._asked.get(kind) == question:
            return False
        self._asked[kind] = question
        return True

    def on_rules_part(self, message: RulesPart) -> None:
        current = message.question == self._asked.get("rules")
        for row in message.rows:  # under a held key older ones are the newest that there are
            self.rows[row.rule] = row
            if current:
                self._fresh.add(row.rule)
        complete = current and message.fraction == 1
        if complete:
            self._answered["rules"] = message.question
            self._doubtful = False
            self._sort()
        if complete or (current and self.progress is not None):
            self.say_progress(None if complete else message.fraction)
        self._show_soon()

    def on_rule_curves_ready(self, message: RuleCurvesReady) -> None:
        if message.question == self._asked.get("curves"):
            self.curves = message.curves
            self._answered["curves"] = message.question
            self._show_soon()

    def on_mechanisms_part(self, message: MechanismsPart) -> None:
        if message.question != self._asked.get("mechanisms"):
            return
        self._compared |= {(row.d_k, row.mechanism, row.rule): row for row in message.rows}
        complete = message.fraction == 1
        if complete:
            self._answered["mechanisms"] = message.question
            self.mechanisms.stand_back(False)
        self.say_progress(None if complete else message.fraction)
        self._show_soon()

    def on_failed(self, message: Failed) -> None:
        self._objection = f"{message.reason}."
        self.say_progress(None)
        self._show()

    def _doubt(self) -> None:
        """Rows that are still of older parameters stand back."""
        self.mechanisms.stand_back(self._answered.get("mechanisms") != self._asked.get("mechanisms"))
        doubtful = self._answered.get("rules") != self._asked.get("rules")
        if doubtful != self._doubtful:
            self._doubtful = doubtful
            self._show()

    def _sort(self) -> None:
        if len(self.rows) == len(RULES):
            self._names = [row.rule for row in self.order.of(self.rows.values())]

    def _show(self, objection: str = "") -> None:
        objection = objection or self._objection
        self.table.shown = Shown(
            self._names,
            self.rows,
            self.curves,
            self.order,
            self.parameters.scale,
            self.cursor,
            {*RULES} - self._fresh if self._doubtful else (),
            self._first_column,
            self._answered.get("curves") != self._asked.get("curves"),
        )
        self.table.redraw()
        self.words.show(self.cursor, self.rows.get(self.cursor), objection)
        self.mechanisms.show([*self._compared.values()], self._objection)

    def _arrange(self) -> None:
        """The whole table first, as far as it leaves a few lines for the words."""
        height = self.size.height
        few = _FEW if height >= _LOW else min(max(height - 9, 0), 3)
        words = min(max(height - OVER - len(RULES), few), _MOST)
        self.table.display = self.view == "rules"
        self.words.display = self.view == "words" or (self.view == "rules" and words > 0)
        self.words.styles.height = "1fr" if self.view == "words" else words
        self.mechanisms.display = self.view == "mechanisms"

    # What people do

    def action_move(self, step: int) -> None:
        if self.view == "mechanisms":
            self.mechanisms.scroll_by(step)
            return
        at = min(max(self._names.index(self.cursor) + step, 0), len(self._names) - 1)
        self.cursor = self._names[at]
        self._show()

    def on_rule_table_pointed(self, event: RuleTable.Pointed) -> None:
        event.stop()
        self.cursor = event.rule
        self._show()

    def action_sort(self, direction: int) -> None:
        column = SORTABLE[(SORTABLE.index(self.order.column) + direction) % len(SORTABLE)]
        self._order(Order(column))

    def action_reverse(self) -> None:
        self._order(replace(self.order, reverse=not self.order.reverse))

    def _order(self, order: Order) -> None:
        self.order = order
        self._sort()
        self._show()

    def action_columns(self) -> None:
        self._first_column = self.table.next_columns()
        self._show()

    def action_words(self) -> None:
        self._look_at("rules" if self.view == "words" else "words")

    def action_mechanisms(self) -> None:
        self._look_at("rules" if self.view == "mechanisms" else "mechanisms")

    def _look_at(self, view: Literal["rules", "words", "mechanisms"]) -> None:
        self.view = view
        self._arrange()
        self._ask()

    def action_to_lab(self) -> None:
        row = self.rows.get(self.cursor)
        if self.view == "mechanisms":
            return
        if row is not None and row.fault:
            self._show(f"Not for the Lab: {row.fault}.")
        else:
            self.post_message(ToLab(self.parameters.with_value("scale", self.cursor)))

    # What people take away from it

    def numbers(self, kind: Format) -> str:
        from ...core.export import rules as export

        p = self.parameters
        if self.view == "mechanisms":
            if self._answered.get("mechanisms") != _of_mechanisms(p):
                raise InputError("Mechanisms are still being measured.")
            compared = export.Mechanisms(_of_mechanisms(p), [*self._compared.values()], self._line(kind))
            if kind == "markdown":
                return export.mechanisms_markdown(compared, self.glyphs.say)
            return (export.mechanisms_json if kind == "json" else export.mechanisms_csv)(compared)
        if self._answered.get("rules") != _of_rules(p):
            known = len(self._fresh) if self._asked.get("rules") == _of_rules(p) else 0
            raise InputError(f"{known} of {len(RULES)} scale rules have been measured at d_k {p.d_k} so far.")
        if self.curves is None or self._answered.get("curves") != _of_curves(p):
            raise InputError("Entropy over d_k is still being measured.")
        found = export.Rules(p, self.order, [*self.rows.values()], self.curves, self._line(kind))
        if kind == "markdown":
            return export.rules_markdown(found, self.glyphs.say)
        return (export.rules_json if kind == "json" else export.rules_csv)(found)

    def command(self) -> str:
        return self._line("table")

    @property
    def file_name(self) -> str:
        return "mechanisms" if self.view == "mechanisms" else f"rules-d{self.parameters.d_k}"

    def _line(self, kind: Format | Literal["table"]) -> str:
        """The command that prints what is shown in a format."""
        from ..command import rules_line
        from ..requests import Output, Rules

        if self.view == "mechanisms":
            asked = Rules(_of_mechanisms(self.parameters), mechanisms=True, output=Output(kind))
        else:
            asked = Rules(self.parameters, self.order, output=Output(kind))
        return rules_line(asked, self.glyphs.ascii)


def _of_rules(p: Parameters) -> Parameters:
    """What rows depend on: everything but which rule is chosen."""
    return replace(p, scale=Parameters.scale)


def _of_curves(p: Parameters) -> Parameters:
    """What curves depend on: not on d_k either."""
    return replace(p, scale=Parameters.scale, d_k=Parameters.d_k)


def _of_mechanisms(p: Parameters) -> Parameters:
    """What mechanisms over d_k depend on."""
    usual: dict[str, Any] = {name: getattr(Parameters, name) for name in NOT_OF_MECHANISMS}
    return replace(p, **usual)
