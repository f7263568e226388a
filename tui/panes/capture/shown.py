"""The parts of the Capture pane, and which of them are on screen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Size
from textual.layout import Layout
from textual.widget import Widget

from ....core.field import next_of
from ...views.bars import NARROW
from ...views.results.table import Contents
from ...widgets.placed import PLACED
from ...widgets.results import Results, View
from ..pane import Host, Pane
from .arrangement import PaneView, Part, arrangement
from .parts import AttentionBars, AttentionMatrix, HeadList
from .replay import ReplayList
from .verdict_line import VerdictLine
from .widget import HeadMapWidget

_VIEWS: Mapping[Part, PaneView] = {
    "list": "attention", "matrix": "attention", "row": "attention", "results": "statistics", "replay": "replay",
}  # fmt: skip
ViewState: TypeAlias = tuple[PaneView, View]
_NEXT: Mapping[PaneView, PaneView] = {"attention": "statistics", "statistics": "replay", "replay": "attention"}


class ShownParts(Pane):
    """A verdict over a map at the left and one of three views at the right; on narrow screens one part at a time."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.verdict = VerdictLine()
        self.map = HeadMapWidget()
        self.list = HeadList()
        self.matrix = AttentionMatrix()
        self.bars = AttentionBars()
        self.results = Results(host.glyphs)
        self.replay = ReplayList()
        self.parts: Mapping[Part, Widget] = {
            "verdict": self.verdict, "map": self.map, "list": self.list, "matrix": self.matrix, "row": self.bars,
            "results": self.results, "replay": self.replay,
        }  # fmt: skip
        self.chosen: PaneView = "attention"  # the view
        self.front: Part = "map"  # the part shown alone on narrow screens
        self.problem = ""  # why the selected head cannot be shown

    @property
    def layout(self) -> Layout:
        return PLACED

    def compose(self) -> ComposeResult:
        yield from self.parts.values()

    def on_mount(self) -> None:
        self.show_parts()

    @property
    def one_at_a_time(self) -> bool:
        """Whether the screen is too narrow for two parts side by side."""
        return self.size.width < NARROW

    @property
    def shown(self) -> PaneView:
        """The view on screen."""
        return "statistics" if self.problem else self.chosen

    def arranged(self, size: Size) -> Mapping[Part, Region]:
        """Return where the parts stand in this size."""
        capture = self.map.capture
        heads = max((layer.heads for layer in capture.layers), default=0) if capture is not None else 0
        front: Part = "results" if self.problem and size.width < NARROW else self.front
        return arrangement(size, self.shown, front, heads, self.verdict.draft is not None)

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        return [(self.parts[part], region) for part, region in self.arranged(size).items()]

    def show_parts(self) -> None:
        """Display the parts of the view; on narrow screens all, because the focus brings one to the front."""
        if not self.is_mounted:
            return
        focused = self.screen.focused
        for part, view in _VIEWS.items():
            widget = self.parts[part]
            display = self.one_at_a_time or self.shown == view
            if not display and focused is not None and widget in focused.ancestors_with_self:
                self.focus()
            widget.display = display
        self.arrange_parts()

    def arrange_parts(self) -> None:
        """Place the parts again, and request what they need."""
        self.verdict.refresh(layout=True)  # of a part: only that makes the pane arrange its parts again
        self.ask_view()

    def bring(self, part: Part) -> None:
        """Bring a part to the front of a narrow screen, or of a low one."""
        if part != self.front:
            self.front = part
            self.chosen = _VIEWS.get(part, self.chosen)
            self.arrange_parts()

    def on_resize(self) -> None:
        self.show_parts()

    def action_view(self) -> None:
        if self.one_at_a_time:
            if self.front == "results" and not self.results.next_view():
                return
            order: Sequence[Part] = ("map", "list", "matrix", "row", "results", "replay")
            self.front = next_of(order, self.front)
            self.chosen = _VIEWS.get(self.front, "attention")
            self.results.first_view()
        elif self.chosen == "statistics" and not self.results.next_view():
            return
        else:
            self.chosen = _NEXT[self.chosen]
            self.results.first_view()
            self.front = "map"
        self.show_parts()

    @property
    def view_state(self) -> ViewState:
        """The view, and what is shown of the statistics, which undo restores."""
        return self.chosen, self.results.view

    def restore_view(self, view: PaneView, statistics: View) -> None:
        """Restore what undo keeps of the views; a narrow screen shows the map if its part is of another view."""
        self.chosen = view
        self.results.turn(statistics)
        if _VIEWS.get(self.front, view) != view:
            self.front = "map"
        self.show_parts()

    def set_problem(self, reason: str) -> None:
        """Set why the selected head cannot be shown; the statistics, which say so, stand instead of it."""
        if reason:
            self.results.show(Contents(()))  # not the numbers of another head
            self.results.show_stale(reason)
        if reason != self.problem:
            self.problem = reason
            self.show_parts()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        for part, widget in self.parts.items():
            if part != "verdict" and widget in event.widget.ancestors_with_self:
                self.bring(part)

    @property
    def focused_part(self) -> Part | None:
        """The part of the view that has the focus, if one has."""
        return next((part for part in _VIEWS if part != "row" and self.parts[part].has_focus_within), None)

    def ask_view(self) -> None:
        """Request what the view on screen needs."""
