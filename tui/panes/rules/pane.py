"""The Rules pane: every scale rule on the same queries and keys, side by side; and mechanisms over d_k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from ....core.errors import InputError
from ....core.lab.results import (
    NOT_OF_MECHANISMS,
    RULES,
    SORTABLE,
    MechanismRow,
    Order,
    RuleCurves,
    RuleRow,
)
from ....core.parameters import FIELD, Field, Parameters
from ....core.statistics.catalogue import STATISTIC, Statistic
from ...compute.request import Failed, Progress, Request
from ...views.bars import Key
from ...views.reproduce import rules_line
from ..pane import Host
from ..stepping import TypingPane, stepping_keys
from .requests import MeasureMechanisms, MeasureRuleCurves, MeasureRules, MechanismRows, RuleRows
from .view import Shown
from .widget import ABOVE, MechanismText, RuleTable, RuleText

if TYPE_CHECKING:
    from ....core.export.formats import Format
    from ....core.theory.prediction import Freezing

View: TypeAlias = Literal["rules", "words", "mechanisms"]

_LEAST, _MOST = 5, 9  # lines of a rule's description
_LOW = 20  # lines of a pane below which the description has fewer


class RulesPane(TypingPane):
    """The table with the description of the selected rule, or mechanisms.

    While rows for new parameters arrive, rows keep their places; they are sorted when all have arrived. While the
    pane is hidden, nothing is computed.
    """

    NAME = "Rules"
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("↑↓", "rule"), ("←→", "d_k ±1"), ("o", "order"), ("I", "reverse"), ("Enter", "Lab"), ("?", "help"),
        ("q", "quit"), (">", "next pane"), ("m", "mechanisms"), ("v", "full text"), ("i", "columns"),
        ("0-9", "type d_k"), ("H L", "÷2 ×2"), ("[ ]", "keys"), ("f", "format"), ("c", "law"), ("x", "mask"),
        ("r", "redraw"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "next rule", show=False, id="rules.next"),
        Binding("up,k", "move(-1)", "previous rule", show=False, id="rules.previous"),
        Binding("pagedown,space", "move(10)", "down ten rules", show=False, id="rules.page_down"),
        Binding("pageup", "move(-10)", "up ten rules", show=False, id="rules.page_up"),
        Binding("home", "move(-1000)", "first rule", show=False, id="rules.first"),
        Binding("end", "move(1000)", "last rule", show=False, id="rules.last"),
        Binding("right,l", "d_k(1)", "d_k + 1", show=False, id="rules.more"),
        Binding("left,h", "d_k(-1)", "d_k - 1", show=False, id="rules.less"),
        Binding("L,shift+right", "double(1)", "d_k to the next power of two", show=False, id="rules.double"),
        Binding("H,shift+left", "double(-1)", "d_k to the previous power of two", show=False, id="rules.halve"),
        Binding("o", "sort(1)", "sort by the next column", show=False, id="rules.sort_next"),
        Binding("O", "sort(-1)", "sort by the previous column", show=False, id="rules.sort_previous"),
        Binding("I", "reverse", "reverse the order", show=False, id="rules.reverse"),
        Binding("i", "columns", "show hidden columns", show=False, id="rules.columns"),
        Binding("v", "words", "switch between table and full text", show=False, id="rules.words"),
        Binding("m,M", "mechanisms", "switch between scale rules and mechanisms", show=False, id="rules.mechanisms"),
        *stepping_keys("rules"),
        *TypingPane.TYPING,
        Binding("enter", "to_lab", "open the Lab with the rule", show=False, id="rules.to_lab"),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.table = RuleTable()
        self.words = RuleText()
        self.mechanisms = MechanismText()
        self.order = Order()
        self.cursor: str = host.parameters.scale
        self.view: View = "rules"
        self.rows: dict[str, RuleRow] = {}  # the latest row of each rule, possibly for earlier parameters
        self.freezing: dict[str, Freezing | None] = {}  # of the same parameters as the row of each rule
        self.curves: RuleCurves | None = None
        self.compared: dict[object, MechanismRow] = {}  # by place, possibly for earlier parameters
        self._names: Sequence[str] = RULES  # of rules, in the order shown
        self._first_column = 0
        self._fresh: set[str] = set()  # rules whose rows are for `_fresh_for`
        self._fresh_for: Request | None = None
        self._stale = False  # whether other rows are dimmed, because a request takes long
        self._answered: dict[type[Request], Request] = {}  # by kind, the last request with a complete answer
        self._objection = ""  # why the last request failed

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.words
        yield self.mechanisms

    # Requests and answers

    def _wanted(self) -> Sequence[Request]:
        """Return the requests for the current view."""
        p = self.parameters
        if self.view == "mechanisms":
            return [MeasureMechanisms(_for_mechanisms(p))]
        return [MeasureRules(_for_rules(p)), MeasureRuleCurves(_for_curves(p))]

    def _is_answered(self, request: Request) -> bool:
        return self._answered.get(type(request)) == request

    @property
    def is_current(self) -> bool:
        return all(self._is_answered(request) for request in self._wanted())

    @property
    def is_stale(self) -> bool:
        return self._stale or self.is_refused

    def follow(self) -> None:
        self._objection = ""
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
        for kind in (MeasureRules, MeasureRuleCurves, MeasureMechanisms):
            self.host.engine.withdraw(kind)
        self.show_progress(None)

    def on_resize(self) -> None:
        self._arrange()

    def show_answer(self, request: Request, answer: object) -> None:
        wanted = request in self._wanted()
        complete = self._is_answered(MeasureRules(_for_rules(self.parameters)))
        match answer:
            case RuleRows(rows, freezing, fraction) if wanted or not complete:
                self.rows |= {row.rule: row for row in rows}  # under a held key, also for earlier parameters
                self.freezing |= freezing
                if request != self._fresh_for:
                    self._fresh, self._fresh_for = set(), request
                self._fresh |= {row.rule for row in rows}
                self._finish(request, wanted, fraction)
            case RuleCurves() if wanted:
                self.curves = answer
                self._answered[type(request)] = request
            case MechanismRows(rows, fraction) if wanted:
                self.compared |= {(row.d_k, row.mechanism, row.rule, row.with_sink): row for row in rows}
                self.show_progress(fraction)
                self._stale = True
                self._finish(request, wanted, fraction)
            case Progress(fraction) if wanted:
                self.show_progress(fraction)
                self._stale = True
            case Failed(reason) if wanted:
                self._objection, self._stale = f"{reason}.", True
                self.show_progress(None)
            case _:
                pass
        self._show()

    def _finish(self, request: Request, wanted: bool, fraction: float) -> None:
        """Record whether the request is answered completely, and then sort the rows."""
        self._answered.pop(type(request), None)
        if wanted and fraction == 1:
            self._answered[type(request)] = request
            self._stale = False
            self.show_progress(None)
            self._sort()

    def _sort(self) -> None:
        if len(self.rows) == len(RULES):
            self._names = [row.rule for row in self.order.of(self.rows.values())]

    def _show(self, objection: str = "") -> None:
        objection = objection or self._objection
        fresh = self._fresh if self._fresh_for in self._wanted() else set[str]()
        self.table.shown = Shown(
            self._names,
            self.rows,
            self.freezing,
            self.curves,
            self.order,
            self.parameters.scale,
            self.cursor,
            {*RULES} - (set[str]() if self.is_refused else fresh) if self.is_stale else (),
            self._first_column,
            not self._is_answered(MeasureRuleCurves(_for_curves(self.parameters))),
        )
        self.table.redraw()
        self.words.show(self.cursor, self.rows.get(self.cursor), self.freezing.get(self.cursor), objection)
        self.mechanisms.show([*self.compared.values()], self._objection)
        self.mechanisms.dim(self._stale and self.view == "mechanisms")

    def _arrange(self) -> None:
        """Give the table the lines it needs, but leave a few for the description."""
        height = self.size.height
        few = _LEAST if height >= _LOW else min(max(height - 9, 0), 3)
        words = min(max(height - ABOVE - len(RULES), few), _MOST)
        self.table.display = self.view == "rules"
        self.words.display = self.view == "words" or (self.view == "rules" and words > 0)
        self.words.styles.height = "1fr" if self.view == "words" else words
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
    def kept(self) -> tuple[Order, View, int]:
        return self.order, self.view, self._first_column

    def put_back(self, kept: tuple[Order, View, int]) -> None:
        self.order, self.view, self._first_column = kept
        self._sort()

    # Actions

    def action_move(self, step: int) -> None:
        if self.view == "mechanisms":
            self.mechanisms.scroll_by(step)
            return
        at = min(max(self._names.index(self.cursor) + step, 0), len(self._names) - 1)
        self.cursor = self._names[at]
        self._show()

    def on_rule_table_clicked(self, event: RuleTable.Clicked) -> None:
        event.stop()
        self.cursor = event.rule
        self._show()

    def on_rule_table_head_clicked(self, event: RuleTable.HeadClicked) -> None:
        """Sort by the column; a second click reverses the order."""
        event.stop()
        if event.column == self.order.column:
            self.action_reverse()
        else:
            self._order(Order(event.column))

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
        self._switch_to("rules" if self.view == "words" else "words")

    def action_mechanisms(self) -> None:
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
            self._show(f"The Lab cannot show this rule: {row.fault}.")
        else:
            self.host.to_lab(self.parameters.with_value("scale", self.cursor))

    # Export and copying

    def numbers(self, kind: Format) -> str:
        from ....core.export import rules as export

        p = self.parameters
        if self.view == "mechanisms":
            if not self._is_answered(MeasureMechanisms(_for_mechanisms(p))):
                raise InputError("Mechanisms are still being measured.")
            compared = export.MechanismsResult(_for_mechanisms(p), [*self.compared.values()], self._line(kind))
            if kind == "markdown":
                return export.mechanisms_markdown(compared, self.glyphs.say)
            return (export.mechanisms_json if kind == "json" else export.mechanisms_csv)(compared)
        if not self._is_answered(MeasureRules(_for_rules(p))):
            known = len(self._fresh) if self._fresh_for in self._wanted() else 0
            raise InputError(f"{known} of {len(RULES)} scale rules measured so far at d_k {p.d_k}.")
        if self.curves is None or not self._is_answered(MeasureRuleCurves(_for_curves(p))):
            raise InputError("Entropy over d_k is still being measured.")
        found = export.RulesResult(p, self.order, [*self.rows.values()], self.curves, self.freezing, self._line(kind))
        if kind == "markdown":
            return export.rules_markdown(found, self.glyphs.say)
        return (export.rules_json if kind == "json" else export.rules_csv)(found)

    def command(self) -> str:
        return self._line("table")

    @property
    def file_name(self) -> str:
        return "mechanisms" if self.view == "mechanisms" else f"rules-d{self.parameters.d_k}"

    def _line(self, kind: Format | Literal["table"]) -> str:
        """Return the command that prints the view in a format."""
        if self.view == "mechanisms":
            return rules_line(_for_mechanisms(self.parameters), Order(), True, kind, self.glyphs.ascii)
        return rules_line(self.parameters, self.order, False, kind, self.glyphs.ascii)


def _for_rules(p: Parameters) -> Parameters:
    """Return the parameters that rows depend on: all but the scale rule."""
    return replace(p, scale=Parameters.scale)


def _for_curves(p: Parameters) -> Parameters:
    """Return the parameters that curves depend on: all but the scale rule and d_k."""
    return replace(p, scale=Parameters.scale, d_k=Parameters.d_k)


def _for_mechanisms(p: Parameters) -> Parameters:
    """Return the parameters that mechanisms over d_k depend on."""
    usual: dict[str, Any] = {name: getattr(Parameters, name) for name in NOT_OF_MECHANISMS}
    return replace(p, **usual)
