"""The Rules pane: every scale rule on the same queries and keys, side by side; mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ....core.errors import InputError
from ....core.field import Field, next_of
from ....core.lab.results import RULES, SORTABLE, MechanismRow, Order, RuleCurves, RuleRow, listed_rules, rules_for
from ....core.message import message
from ....core.parameters import FIELD, Parameters
from ....core.questions.request import Failed, Progress, Request
from ....core.questions.rules import CompareRules, MechanismRows
from ....core.statistics.catalogue import STATISTIC, Statistic
from ....core.tables.rules import ComparedMechanisms, RulesResult
from ...views.bars import Key
from ...views.results.rules import RuleTableContents, by_family, of_note, rule_sentences, words_height
from ..lists import choose_of, choose_value
from ..pane import Host, next_where
from ..stepping import TypingPane, stepping_keys
from .requests import (
    MeasureRuleCurves,
    MeasureRules,
    RuleRows,
    compared,
    of_curves,
    of_rules,
)
from .widget import MechanismText, RuleTable, RuleText

if TYPE_CHECKING:
    from ....core.theory.prediction import Saturation

View: TypeAlias = Literal["rules", "mechanisms"]
_NAMED = ("sqrt_d_k", "none", "d_k")  # rules of which the headline tells, besides the selected one


def _kind(request: Request) -> object:
    """Return what a request is of: another one of its kind replaces its answer."""
    return (CompareRules, request.mechanisms) if isinstance(request, CompareRules) else type(request)


class RulesPane(TypingPane):
    """The table with the description of the selected rule; or mechanisms.

    While rows for new parameters arrive, rows keep their places; they are sorted when all have arrived. While the
    pane is hidden, nothing is computed.
    """

    NAME = "Rules"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "rule"), ("←→", "d_k"), ("Enter", "Lab"), ("v", "curves"), ("/", "find"), ("?", "help"),
        ("q", "quit"), (">", "next tab"), ("o I", "order"), ("m", "mechanisms"), ("n N", "not healthy"),
        ("i", "columns"), ("0-9", "type d_k"), ("H L", "÷2 ×2"), ("[ ]", "keys"), ("f", "format"), ("c", "law"),
        ("x", "mask"), ("r", "redraw"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next rule", id="rules.next"),
        Binding("up,k", "move(-1)", "previous rule", id="rules.previous"),
        Binding("pagedown,space", "move(10)", "down ten rules", id="rules.page_down"),
        Binding("pageup", "move(-10)", "up ten rules", id="rules.page_up"),
        Binding("home", "move(-1000)", "first rule", id="rules.first"),
        Binding("end", "move(1000)", "last rule", id="rules.last"),
        Binding("slash", "find", "find a scale rule by words", id="rules.find"),
        Binding("n", "of_note(1)", "next rule that is not healthy", id="rules.next_of_note"),
        Binding("N", "of_note(-1)", "previous rule that is not healthy", id="rules.previous_of_note"),
        Binding("right,l", "d_k(1)", "d_k + 1", id="rules.more"),
        Binding("left,h", "d_k(-1)", "d_k − 1", id="rules.less"),
        Binding("L,shift+right", "double(1)", "d_k to the next power of two", id="rules.double"),
        Binding("H,shift+left", "double(-1)", "d_k to the previous power of two", id="rules.halve"),
        Binding("o", "order", "choose the column to sort by", id="rules.order"),
        Binding("O", "sort", "sort by the next column", id="rules.sort_next"),
        Binding("I", "reverse", "reverse the order", id="rules.reverse"),
        Binding("i", "columns", "show hidden columns", id="rules.columns"),
        Binding("v", "view", "next view of the tab", id="rules.view"),
        Binding("m", "table", "show mechanisms, or scale rules", id="rules.table"),
        *stepping_keys("rules", without=("against", "next_against", "next_width", "previous_width")),
        *TypingPane.TYPING,
        Binding("enter", "to_lab", "open the Lab with the rule", id="rules.to_lab"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.table = RuleTable(self._choose, self._sort_by)
        self.words = RuleText()
        self.mechanisms = MechanismText()
        self.order = Order()
        self.cursor: str = host.parameters.scale
        self.view: View = "rules"
        self.rows: dict[str, RuleRow] = {}  # the latest row of each rule, possibly for earlier parameters
        self.saturation: dict[str, Saturation | None] = {}  # of the same parameters as the row of each rule
        self.curves: RuleCurves | None = None
        self.compared: dict[object, MechanismRow] = {}  # by place, possibly for earlier parameters
        self._names: Sequence[str] = by_family(listed_rules(host.parameters))  # in the order shown
        self._first_column = 0
        self._fresh: set[str] = set()  # rules whose rows are for `_fresh_for`
        self._fresh_for: Request | None = None
        self._stale = False  # whether other rows are dimmed, because a request takes long
        self._answered: dict[object, Request] = {}  # by kind, the last request with a complete answer
        self._objection = ""  # why the last request failed

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self.table
        yield self.words
        yield self.mechanisms

    # Requests and answers

    def _wanted(self) -> Sequence[Request]:
        """Return the requests for the current view."""
        p = self.parameters
        if self.view == "mechanisms":
            return [self.question]
        return [MeasureRules(of_rules(p), self.cursor), MeasureRuleCurves(of_curves(p))]

    def _is_answered(self, request: Request) -> bool:
        return self._answered.get(_kind(request)) == request

    @property
    def is_current(self) -> bool:
        return all(self._is_answered(request) for request in self._wanted())

    @property
    def is_stale(self) -> bool:
        return self._stale or self.is_refused

    def follow(self) -> None:
        self._objection = ""
        names = listed_rules(self.parameters)
        if {*names} != {*self._names}:  # another formula, or a multiplier
            self._names = sorted(names, key=[*self._names, *names].index)
            self._sort()
            self.rows = {name: row for name, row in self.rows.items() if name in (*names, *RULES)}
            self._answered.clear()  # a list of rules tries several, and comes back to one whose row was dropped
            self.cursor = self.cursor if self.cursor in names else self.parameters.scale
        for request in self._wanted():
            if self._is_answered(request):
                self.host.engine.withdraw(type(request))
            else:
                self.ask(request)
        if self._is_answered(self._wanted()[0]):
            self._stale = False
            self.show_progress(None)
        self._arrange()
        self._show()

    def leave(self) -> None:
        """Withdraw requests; keep measured rows."""
        super().leave()
        for kind in (MeasureRules, MeasureRuleCurves, CompareRules):
            self.host.engine.withdraw(kind)
        self.show_progress(None)

    def on_resize(self) -> None:
        self._arrange()

    def show_answer(self, request: Request, answer: object) -> None:
        wanted = request in self._wanted()
        complete = self._is_answered(MeasureRules(of_rules(self.parameters)))
        match answer:
            case RuleRows(rows, saturation, fraction, exact) if wanted or not complete:
                # Under a held key, also for earlier parameters; not of another formula.
                self.rows |= {row.rule: row for row in rows if row.rule in (*self._names, *RULES)}
                self.saturation |= saturation
                if request != self._fresh_for:
                    self._fresh, self._fresh_for = set(), request
                if exact:
                    self._stale = True
                else:
                    self._fresh |= {row.rule for row in rows}
                self._finish(request, wanted, fraction)
            case RuleCurves() if wanted:
                self.curves = answer
                self._answered[_kind(request)] = request
            case MechanismRows(rows, fraction) if wanted:
                self.compared |= {(row.d_k, row.mechanism, row.rule, row.with_sink): row for row in rows}
                self.show_progress(fraction)
                self._stale = True
                self._finish(request, wanted, fraction)
            case Progress(fraction) if wanted and not isinstance(request, MeasureRuleCurves):
                self.show_progress(fraction)
                self._stale = True
            case Failed(reason) if wanted:
                self._objection, self._stale = message("{reason}.", reason=reason), True
                self.show_progress(None)
            case _:
                pass
        self._show()

    def _finish(self, request: Request, wanted: bool, fraction: float) -> None:
        """Record whether the request is answered completely, and then sort the rows."""
        self._answered.pop(_kind(request), None)
        if wanted and fraction == 1:
            self._answered[_kind(request)] = request
            self._stale = False
            self.show_progress(None)
            self._sort()

    def _sort(self) -> None:
        if self.order.column == "rule":
            self._names = by_family(self._names, self.order.reverse)
        elif self.rows.keys() >= {*self._names}:
            self._names = [row.rule for row in self.order.of(self.rows[name] for name in self._names)]

    def _show(self, objection: str = "") -> None:
        objection = objection or self._objection
        fresh = self._fresh if self._fresh_for in self._wanted() else set[str]()
        self.table.shown = RuleTableContents(
            self._names,
            self.rows,
            self.saturation,
            self.order,
            self.parameters.scale,
            self.cursor,
            {*self._names} - (set[str]() if self.is_refused else fresh) if self.is_stale else (),
            self._first_column,
            self.parameters.d_k,
        )
        room, names = self.headline.room_for_words, dict.fromkeys((self.cursor, *_NAMED))
        sentences = rule_sentences([*names][: len(_NAMED)], self.saturation, room, self.glyphs)
        self.show_headline(sentences)
        self.words.rule, self.words.row = self.cursor, self.rows.get(self.cursor)
        self.words.saturation, self.words.objection = self.saturation.get(self.cursor), objection
        self.words.parameters = self.parameters
        self.mechanisms.rows, self.mechanisms.objection = [*self.compared.values()], self._objection
        self.mechanisms.dim(self._stale and self.view == "mechanisms")

    def _arrange(self) -> None:
        """Give the table the lines it needs, but leave a few for the description."""
        height = self.size.height - self.headline_height()
        words = words_height(self._names, self.order, height, self.table.gutter.height)
        self.table.display = self.view == "rules"
        self.words.display, self.words.styles.height = self.view == "rules" and words > 0, words
        self.mechanisms.display = self.view == "mechanisms"

    @property
    def topic(self) -> Field | Statistic:
        if self.view == "mechanisms":
            return FIELD["mechanism"]
        return STATISTIC.get(self.order.column) or FIELD["scale"]

    def refuse(self, reason: str) -> None:
        self._objection, self._stale = reason, True
        self._show()

    def set_parameters(self, parameters: Parameters) -> None:
        """Replace the parameters; the cursor goes along with the scale rule."""
        if parameters.scale != self.parameters.scale:
            self.cursor = parameters.scale
        super().set_parameters(parameters)

    @property
    def undo_state(self) -> tuple[Order, View, int, str]:
        return self.order, self.view, self._first_column, self.cursor

    def restore_state(self, state: tuple[Order, View, int, str]) -> None:
        self.order, self.view, self._first_column, self.cursor = state
        self._sort()

    # Actions

    def action_move(self, step: int) -> None:
        self.leave_field()
        if self.view == "mechanisms":
            self.mechanisms.scroll_by(step)
            return
        at = min(max(self._names.index(self.cursor) + step, 0), len(self._names) - 1)
        self.cursor = self._names[at]
        self._show()

    def action_find(self) -> None:
        choose_value(self.host, "scale", self.show_rule)

    def show_rule(self, name: str) -> None:  # or set it, if it has no row here
        if self.view != "rules":
            self._switch_to("rules")
        if name in self._names:
            self.cursor = name
            self._show()
        else:
            self.set_value("scale", name)

    def action_of_note(self, direction: int) -> None:
        at = next_where(of_note(self.table.shown), self._names.index(self.cursor), direction)
        if at is None:
            self.host.say(message("All scale rules measured so far are healthy."))
        else:
            self.show_rule(self._names[at])

    def _choose(self, rule: str) -> None:
        self.action_move(self._names.index(rule) - self._names.index(self.cursor))

    def _sort_by(self, column: str) -> None:
        """Sort by the column; a second time reverses the order."""
        if column == self.order.column:
            self.action_reverse()
        else:
            self._order(Order(column))

    def action_sort(self) -> None:
        self._order(Order(next_of(SORTABLE, self.order.column)))

    def action_order(self) -> None:
        """Choose the column to sort by from a list."""
        labels = {"rule": message("rule"), "multiplier": message("multiplier")}
        columns = [(name, labels.get(name) or STATISTIC[name].label) for name in SORTABLE]
        choose_of(self.host, message("order"), columns, self.order.column, lambda name: self._order(Order(name)))

    def action_reverse(self) -> None:
        self._order(replace(self.order, reverse=not self.order.reverse))

    def _order(self, order: Order) -> None:
        self.order = order
        self._sort()
        self._show()

    def action_columns(self) -> None:
        self._first_column = self.table.next_columns()
        self._show()

    def action_view(self) -> None:
        self._switch_to("rules")
        self.host.next_view()

    def action_table(self) -> None:
        """Show mechanisms, or scale rules if they are shown."""
        self._switch_to("rules" if self.view == "mechanisms" else "mechanisms")

    def _switch_to(self, view: View) -> None:
        self.view, self._stale = view, False
        self.follow()

    def action_to_lab(self) -> None:
        """Accept the typed d_k, or open the Lab."""
        if self.editing is not None:
            self.action_typed("accept")
            return
        row = self.rows.get(self.cursor)
        if self.view == "mechanisms":
            return
        if row is not None and row.fault:
            self._show(message("The Lab cannot show this rule: {reason}.", reason=row.fault))
        else:
            self.host.to_lab(self.parameters.with_value("scale", self.cursor))

    # Export and copying

    @property
    def question(self) -> CompareRules:
        return compared(self.view, self.parameters, self.order)

    def answered(self) -> RulesResult | ComparedMechanisms:
        """Return what is on screen; raises InputError if it is not complete."""
        p, line = self.parameters, self.command()
        if self.view == "mechanisms":
            if self.is_current:
                return ComparedMechanisms(self.question.parameters, [*self.compared.values()], line)
            if self._objection:
                raise InputError(self._objection)
            raise InputError("Mechanisms are still being measured.")
        if not self._is_answered(MeasureRules(of_rules(p))):
            known = len(self._fresh) if self._fresh_for in self._wanted() else 0
            count = len(rules_for(p.scale))
            raise InputError(
                "{known} of {count} scale rules measured so far at d_k {d_k}.", known=known, count=count, d_k=p.d_k
            )
        if self.curves is None or not self._is_answered(MeasureRuleCurves(of_curves(p))):
            raise InputError("Entropy over d_k is still being measured.")
        return RulesResult(p, self.order, [*self.rows.values()], self.curves, self.saturation, line)
