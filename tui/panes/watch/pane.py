"""The Watch pane: the heads of a training run, step by step, while it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.widget import Widget

from ....core.errors import InputError
from ....core.field import next_of
from ....core.message import counted, message
from ....core.questions.request import Failed, Request
from ....core.watching.limits import LIMIT
from ....core.watching.snapshot import sample_run
from ...views.bars import Key
from ...views.lines import Line
from ...views.results.watching import LABELS, LOGITS, wanted_width
from ..fields import TwoParts
from ..lists import choose_of
from ..pane import FileHead, Host
from .requests import LookAtRun, RunNews
from .widget import RankedHeadsWidget, RunMap, RunPage

if TYPE_CHECKING:
    from textual.timer import Timer

    from ....core.watching.snapshot import RunSnapshot

_VERY_WIDE, _LARGEST_MAP, _BORDER = 150, 0.5, 4  # columns from which the map may have this part of them
_AGAIN = 1.0  # seconds from one look to the next
# What undo restores: the statistic, the step, the baseline and the cursor, the latter two None until they are chosen.
UndoState: TypeAlias = tuple[str, int | None, int | None, tuple[int, int] | None]


class WatchPane(TwoParts):
    """Every head over the steps; or of one step a map at the left, what it says and the worst heads at the right."""

    NAME = "Watch"
    LEFT = (32, 46)
    KEYS: ClassVar[tuple[Key, ...]] = (
        ("←→ ↑↓", "head"), ("Enter", "open head"), ("v", "numbers"), (", .", "other step"), ("?", "help"),
        ("q", "quit"), (">", "next tab"), ("m", "statistic"), ("b", "baseline"), ("n", "next worst"),
    )  # fmt: skip
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right,l", "move(0, 1)", "next head", id="watch.next_head"),
        Binding("left,h", "move(0, -1)", "previous head", id="watch.previous_head"),
        Binding("down,j", "move(1, 0)", "next layer", id="watch.next_layer"),
        Binding("up,k", "move(-1, 0)", "previous layer", id="watch.previous_layer"),
        Binding("n", "worst(1)", "the next head of the list, worst first", id="watch.next_worst"),
        Binding("N", "worst(-1)", "the previous head of the list", id="watch.previous_worst"),
        Binding("comma", "step(-1)", "the step before", id="watch.earlier"),
        Binding("full_stop", "step(1)", "the step after; after the last, follow the run", id="watch.later"),
        Binding("home", "first", "the first step", id="watch.first"),
        Binding("end", "newest", "the newest step; follow the run", id="watch.last"),
        Binding("enter", "open", "open the head in the capture view", id="watch.open"),
        Binding("b", "baseline", "compare other steps with this one; again: with none", id="watch.baseline"),
        Binding("m", "choose_statistic", "choose the statistic on the map", id="watch.statistic"),
        Binding("M", "statistic", "next statistic on the map", id="watch.next_statistic"),
        Binding("v", "view", "heads over the steps, or the numbers of one step, then the next view", id="watch.view"),
    ]

    def __init__(self, host: Host, run: Path | None = None, max_logit: float = LIMIT) -> None:
        super().__init__(host)
        self.run, self.limit = sample_run() if run is None else run, max_logit
        self.page = RunPage(self._choose)
        self.shows_numbers = False  # whether a map and a list of one step are shown instead of the page
        self.map = self.left = RunMap(self._choose)
        self.ranking = self.right = self.in_front = RankedHeadsWidget(self._choose)
        self.at: int | None = None  # the step on screen; None: the newest
        self.baseline: int | None = None  # the step compared with
        self._known: tuple[int, int | None, int | None] | None = None  # the looks, step and baseline on screen
        self._over: frozenset[tuple[int, int]] | None = None  # heads over the limit at the newest step seen
        self._passed: frozenset[tuple[int, int]] = frozenset()  # those that were over it at any step
        self._timer: Timer | None = None

    @property
    def shown(self) -> RunSnapshot | None:
        """The step on screen."""
        return self.map.shown

    def follow(self) -> None:
        self.page.is_sample = self.run == sample_run()
        self._look()
        if self._timer is None and not self.page.is_sample:  # which is finished
            self._timer = self.set_interval(_AGAIN, self._look)  # other panes on screen do not stop it

    def _look(self) -> None:
        self.ask(replace(self.question, known=self._known))

    def compose(self) -> ComposeResult:
        yield self.page
        yield from super().compose()

    @property
    def on_page(self) -> bool:
        """Whether the page is shown: it has the largest logits alone, without changes since a baseline."""
        if self.shown is None:
            return True
        plain = self.map.statistic == LOGITS and self.baseline is None and LOGITS in self.shown.values
        return plain and not self.shows_numbers

    def regions(self, size: Size) -> Iterable[tuple[Widget, Region]]:
        if self.on_page:
            return [(self.page, Region(0, 0, *size))]
        return super().regions(size)

    def action_view(self) -> None:
        """Turn from the page to the numbers of the step, and after them to the next view of the tab."""
        if self.on_page:
            self._show_numbers(True)
        elif self.one_at_a_time and self.in_front is self.right:
            self.bring(self.left)
        else:
            self._show_numbers(False)
            self.host.next_view()

    def _show_numbers(self, numbers: bool) -> None:
        self.shows_numbers, self.in_front = numbers, self.right
        self.map.refresh(layout=True)  # of a part: only that makes the pane arrange its parts again
        self._choose(*self.map.cursor)

    def columns(self, size: Size) -> tuple[int, int]:
        left, right = super().columns(size)
        if left and right and self.shown is not None:
            wanted = min(wanted_width(self.shown) + _BORDER, int(size.width * _LARGEST_MAP))
            left = max(left, wanted if size.width >= _VERY_WIDE else left)
        return left, size.width - left if right else right

    def statuses(self) -> Sequence[Line]:
        if self.shown is None:
            return ()
        if self.on_page:  # which has the step
            alone: Line = ((self.run.name, "text"),)
            return [alone]
        over = message("{count} over {limit:g}", count=self.shown.over, limit=self.limit)
        if self.shown.came_back:
            over = counted("{over}, {number} was", "{over}, {number} were", self.shown.came_back, over=over)
        words = self.glyphs.say("step {step}", step=self.shown.step), self.glyphs.say(over)
        return [((text, "text"),) for text in ("  ".join(words), words[1], words[0])]

    @property
    def is_current(self) -> bool:
        return self.shown is not None

    @property
    def question(self) -> LookAtRun:
        return LookAtRun(run=self.run, limit=self.limit, at=self.at, baseline=self.baseline, head=self.map.cursor)

    def answered(self) -> RunSnapshot:
        if self.shown is None:
            raise InputError("No step of a run is on screen.")
        return self.shown

    @property
    def file_name(self) -> str:
        return "watch" if self.shown is None else f"watch-step{self.shown.step}"

    @property
    def undo_state(self) -> UndoState:
        return self.map.statistic, self.at, self.baseline, None if self.shown is None else self.map.cursor

    def restore_state(self, state: UndoState) -> None:
        self.map.statistic, self.at, self.baseline, cursor = state
        if cursor is None and self.shown is not None:  # of a time before the run was read
            cursor = self._worst(self.shown)
        self._choose(*(cursor or (0, 0)))

    def show_answer(self, request: Request, answer: object) -> None:
        match answer:
            case RunNews(shown, changes, notes, waiting):
                if self.display:
                    for note in notes[-1:]:
                        self.host.say(message("{note}.", note=note))
                if waiting and self.shown is None:
                    self.page.waiting = message("Waiting: {waiting}.", waiting=waiting)
                if shown is not None and isinstance(request, LookAtRun):
                    wanted = self.at, self.baseline
                    if (request.at, request.baseline) == wanted:
                        self._known = changes, *wanted
                        self._show(shown)
            case Failed(reason):
                self.host.say(message("{reason}.", reason=reason))
            case _:
                pass

    def _worst(self, shown: RunSnapshot) -> tuple[int, int]:
        return (shown.ranked[0].layer, shown.ranked[0].head) if shown.ranked else (0, 0)

    def _show(self, shown: RunSnapshot) -> None:
        if self.shown is None:
            self.map.cursor = self._worst(shown)
        heads_before = self.shown.heads if self.shown is not None else ()
        self.map.shown = self.ranking.shown = self.page.shown = shown
        if shown.heads != heads_before:
            self.map.refresh(layout=True)  # of a part: only that makes the pane arrange its parts again
        if self.map.statistic not in shown.values:
            self.map.statistic = next(iter(shown.values))
        self._choose(*self.map.cursor)
        self.host.show_status()
        if self.at is None:
            self._alert(shown)

    def _alert(self, shown: RunSnapshot) -> None:
        """Tell of a head that passed the limit since the last look, even if it came back."""
        over = frozenset((head.layer, head.head) for head in shown.ranked if head.over)
        first = {(head.layer, head.head): head.first_over for head in shown.ranked if head.first_over is not None}
        if self._over is not None:
            new, gone = over - self._over, first.keys() - over - self._passed
            for layer, head in sorted(new)[:1] or sorted(gone)[:1]:
                place = message("Layer {layer} head {head}", layer=shown.layers[layer], head=head)
                if new:
                    said = message(
                        "{place} is over {limit:g} at step {step}.", place=place, limit=self.limit, step=shown.step
                    )
                else:
                    said = message(
                        "{place} was over {limit:g}, first at step {step}.",
                        place=place,
                        limit=self.limit,
                        step=first[layer, head],
                    )
                self.host.alert(said)
        self._over, self._passed = over, frozenset(first)

    def _choose(self, layer: int, head: int) -> None:
        """Select a head, or the last one of a run with fewer."""
        if self.shown is not None:
            layer = min(layer, len(self.shown.heads) - 1)
            head = min(head, self.shown.heads[layer] - 1)
        for part in (self.page, self.map, self.ranking):
            part.cursor = (layer, head)

    def action_move(self, down: int, right: int) -> None:
        if self.shown is None:
            return
        layer = (self.map.cursor[0] + down) % len(self.shown.heads)
        self._choose(layer, min(self.map.cursor[1] + right, self.shown.heads[layer]) % self.shown.heads[layer])

    def action_worst(self, direction: int) -> None:
        ranked = self.shown.ranked if self.shown else ()
        places = [(head.layer, head.head) for head in ranked]
        if places:
            at = places.index(self.map.cursor) if self.map.cursor in places else -1
            self._choose(*places[(at + direction) % len(places)])

    def action_step(self, direction: int) -> None:
        """Show the step before or after; beyond the last one, follow the run."""
        if self.shown is None:
            return
        steps = self.shown.steps
        at = steps.index(self.shown.step) if self.shown.step in steps else 0
        place = min(max(at + direction, 0), len(steps) - 1)
        self.at = None if place == len(steps) - 1 else steps[place]
        self._look()

    def action_first(self) -> None:
        if self.shown is not None:
            self.at = self.shown.steps[0]
            self._look()

    def action_newest(self) -> None:
        self.at = None
        self._look()

    def action_baseline(self) -> None:
        """Compare other steps with the one on screen; if that is the baseline, with none."""
        if self.shown is None:
            return
        self.baseline = None if self.baseline == self.shown.step else self.shown.step
        if self.baseline is not None:
            self.host.say(
                message(
                    "Other steps are compared with step {baseline}: , and . step, b ends this.",
                    baseline=self.baseline,
                )
            )
        self._look()

    def action_open(self) -> None:
        """Open the selected head in the capture view, beside the baseline if there is one."""
        shown = self.shown
        if shown is None:
            return
        if shown.file is None:
            self.host.say(
                message(
                    "This run is numbers only. A folder of captures, as attn-tui record --every N writes it, "
                    "has heads to open."
                )
            )
        elif not Path(shown.file).exists():
            self.host.say(message("The file of step {step} is gone: {file}.", step=shown.step, file=shown.file))
        else:
            other = shown.baseline_file if shown.baseline != shown.step else None
            baseline = Path(other) if other is not None and Path(other).exists() else None
            self.host.to_pane("Capture", FileHead(Path(shown.file), self.map.cursor, baseline, self.NAME))

    def action_statistic(self) -> None:
        if self.shown is not None:
            self._show_statistic(next_of([*self.shown.values], self.map.statistic))

    def action_choose_statistic(self) -> None:
        """Choose the statistic on the map from a list."""
        if self.shown is not None:
            statistics = [(name, LABELS.get(name, name)) for name in self.shown.values]
            choose_of(self.host, message("statistic"), statistics, self.map.statistic, self._show_statistic)

    def _show_statistic(self, name: str) -> None:
        self.map.statistic = name
        self.map.refresh(layout=True)
