"""The parts of the Capture pane: where they stand in every size, and which view is on screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias

from textual.geometry import Region, Size
from textual.widget import Widget

from ....core.field import next_of
from ...views.bars import NARROW
from ...views.results.table import TableContents
from ...widgets.results import Results, View
from ..pane import Pane
from .heads import Heads
from .heatmap import wanted_width
from .verdict_line import VerdictLine

Part: TypeAlias = Literal["verdict", "page", "map", "list", "matrix", "row", "results", "replay"]
PaneView: TypeAlias = Literal["verdict", "attention", "statistics", "replay"]
ViewState: TypeAlias = tuple[PaneView, View]

_VIEWS: Mapping[Part, PaneView] = {
    "page": "verdict", "list": "attention", "matrix": "attention", "row": "attention", "results": "statistics",
    "replay": "replay",
}  # fmt: skip
_PARTS: tuple[Part, ...] = ("page", "map", "list", "matrix", "row", "results", "replay")  # in the order of v
_WIDE, _ROOMY = 100, 150  # from these widths the parts have borders, and a map may be very wide
_LEAST_MAP, _LEAST_ROW, _LEAST_MATRIX = 24, 30, 22
_BORDER, _RULE = 3, 2  # columns of a border, or of a line at the right, and what it keeps free
_VERDICT, _NARROW_VERDICT = 12, 9  # lines from which the verdict is shown
_VERDICT_PAGE = 24  # lines of the page of the verdict without its map, where attention stands below it
_LOW = 14  # lines below which list and matrix do not both fit


class HeadViews:
    """A verdict over a map at the left and one of three views at the right; on narrow screens one part at a time."""

    def __init__(
        self,
        pane: Pane,
        heads: Heads,
        parts: Mapping[Part, Widget],
        results: Results,
        verdict: VerdictLine,
        request: Callable[[], object],
    ) -> None:
        """Arrange the parts of a pane; `request` requests what the view on screen needs."""
        self.pane, self.heads, self.parts, self.results, self.verdict = pane, heads, parts, results, verdict
        self._request = request
        self.chosen: PaneView = "verdict"  # the view
        self.front: Part = "page"  # the part shown alone on narrow screens
        self.problem = ""  # why the selected head cannot be shown

    @property
    def one_at_a_time(self) -> bool:
        """Whether the screen is too narrow for two parts side by side."""
        return self.pane.screen.size.width < NARROW

    @property
    def shown(self) -> PaneView:
        """The view on screen."""
        if self.problem:
            return "statistics"
        return "attention" if self.chosen == "verdict" and not self.heads.is_judged else self.chosen

    def arranged(self, size: Size) -> Mapping[Part, Region]:
        """Return where the parts stand in this size."""
        capture = self.heads.capture
        layers = capture.layers if capture is not None else ()
        heads = max((layer.heads for layer in layers), default=0)
        front: Part = "results" if self.problem and size.width < NARROW else self.front
        front = "map" if front == "page" and not self.heads.is_judged else front
        return arrangement(size, self.shown, front, heads, len(layers), self.verdict.draft is not None)

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        """Return each widget with its region."""
        return [(self.parts[part], region) for part, region in self.arranged(size).items()]

    def show_parts(self) -> None:
        """Display the parts of the view; on narrow screens all, because the focus brings one to the front."""
        if not self.pane.is_mounted:
            return
        focused = self.pane.screen.focused
        for part, view in _VIEWS.items():
            widget = self.parts[part]
            display = self.one_at_a_time or self.shown == view or part in self.arranged(self.pane.size)
            if not display and focused is not None and widget in focused.ancestors_with_self:
                self.pane.focus()
            widget.display = display
        self.arrange_parts()

    def arrange_parts(self) -> None:
        """Place the parts again, and request what they need."""
        self.verdict.refresh(layout=True)  # of a part: only that makes the pane arrange its parts again
        self._request()

    def bring(self, part: Part) -> None:
        """Bring a part to the front of a narrow screen, or of a low one."""
        if part != self.front:
            self.front = part
            self.chosen = _VIEWS.get(part, "attention" if self.chosen == "verdict" else self.chosen)
            self.show_parts()

    def focus(self, widget: Widget) -> None:
        """Bring the part that contains a focused widget to the front."""
        for part, each in self.parts.items():
            if part != "verdict" and each in widget.ancestors_with_self:
                self.bring(part)

    def turn(self) -> None:
        """Show the next view, or the next part of a narrow screen."""
        at_statistics = self.front == "results" if self.one_at_a_time else self.chosen == "statistics"
        if at_statistics and not self.results.next_view():
            return
        if self.one_at_a_time:
            parts: list[Part] = [each for each in _PARTS if each != "page" or self.heads.is_judged]
            self.front = next_of(parts, self.front if self.front in parts else "map")
            self.chosen = _VIEWS.get(self.front, "attention")
        else:
            views: list[PaneView] = ["verdict"] if self.heads.is_judged else []
            self.chosen = next_of([*views, "attention", "statistics", "replay"], self.shown)
            self.front = "page" if self.chosen == "verdict" else "map"
        self.results.first_view()
        self.show_parts()

    @property
    def state(self) -> ViewState:
        """The view, and what is shown of the statistics, which undo restores."""
        return self.chosen, self.results.view

    def restore(self, state: ViewState) -> None:
        """Restore a state; a narrow screen shows the map if its part is of another view."""
        self.chosen, statistics = state
        self.results.turn(statistics)
        if _VIEWS.get(self.front, self.chosen) != self.chosen:
            self.front = "map"
        self.show_parts()

    def set_problem(self, reason: str) -> None:
        """Set why the selected head cannot be shown; the statistics, which say so, stand instead of it."""
        if reason:
            self.results.show(TableContents(()))  # not the numbers of another head
            self.results.show_stale(reason)
        if reason != self.problem:
            self.problem = reason
            self.show_parts()

    @property
    def focused(self) -> Part | None:
        """The part of the view that has the focus, if one has."""
        return next((part for part in _VIEWS if part != "row" and self.parts[part].has_focus_within), None)


def arrangement(
    size: Size, view: PaneView, front: Part, heads: int, layers: int, asking: bool = False
) -> Mapping[Part, Region]:
    """Return the region of each part on screen.

    `heads` is the largest number of heads of a layer, for which the map is made wide; the map on the page of the
    verdict has a line for each of the `layers` where there is room. Below NARROW columns only the part in front is
    shown under the verdict, which low screens leave out unless it is `asking` what to find.
    """
    width, height = size
    if height < 3 or width < 1:
        return {front: Region(0, 0, width, height)}
    top = int(asking or height >= (_NARROW_VERDICT if width < NARROW else _VERDICT))
    parts: dict[Part, Region] = {"verdict": Region(0, 0, width, 1)} if top else {}
    if view == "verdict" and front == "page":  # which says the verdict itself
        return {
            **({"verdict": Region(0, 0, width, 1)} if asking else {}),
            **_verdict_parts(size, layers, int(asking)),
        }
    if width < NARROW:
        return {**parts, front: Region(0, top, width, height - top)}
    boxed = width >= _WIDE
    roomy = width >= _ROOMY  # elsewhere narrow cells leave room for the reasons
    least, most = (36, width * 2 // 5 if roomy else 44) if boxed else (_LEAST_MAP, 32)
    left = min(max(wanted_width(heads, roomy) + (_BORDER if boxed else _RULE), least), most)
    right = Region(left, top, width - left, height - top)
    parts["map"] = Region(0, top, left, height - top)
    if view != "attention":
        return {**parts, "results" if view == "statistics" else "replay": right}
    if right.height < _LOW:
        return {**parts, front if front in ("list", "matrix", "row") else "list": right}
    listed = max(right.height * 2 // 5, 7)
    under = Region(right.x, right.y + listed, right.width, right.height - listed)
    bars = min(max(right.width * 9 // 20, _LEAST_ROW), right.width - _LEAST_MATRIX)
    return {
        **parts,
        "list": Region(right.x, right.y, right.width, listed),
        "matrix": Region(under.x, under.y, under.width - bars, under.height),
        "row": Region(under.right - bars, under.y, bars, under.height),
    }


def _verdict_parts(size: Size, layers: int, top: int) -> Mapping[Part, Region]:
    """Return where the page of the verdict stands, and on a large screen the attention of the head below it."""
    width, height = size.width, size.height - top
    if width < _WIDE or height < _VERDICT_PAGE + _LOW:
        return {"page": Region(0, top, width, height)}
    page = min(_VERDICT_PAGE + layers, height - _LOW)
    under = Region(0, top + page, width, height - page)
    bars = max(width * 9 // 20, _LEAST_ROW)
    return {
        "page": Region(0, top, width, page),
        "matrix": Region(0, under.y, width - bars, under.height),
        "row": Region(width - bars, under.y, bars, under.height),
    }
