"""The map of all heads of a capture, with a cursor, and facts on the file and the selected head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from textual import events
from textual.message import Message

from ....core.diagnosis.comparing.results import STAGES, in_words_of_baseline
from ....core.diagnosis.heads.reasons import has_evidence, head_word
from ....core.message import message
from ....core.statistics.catalogue import ALWAYS, STATISTIC, Statistic
from ....core.statistics.measurement import Estimate
from ...views.lines import Line, fitted
from ...widgets.lines import LinesWidget
from .heatmap import HeadMap, head_at, map_lines, mark_lines
from .ranked import RankedHead
from .view import capture_lines, statistic_lines

if TYPE_CHECKING:
    from ....core.captures.capture import Capture
    from ....core.diagnosis.comparing.results import HeadComparison
    from ....core.diagnosis.heads.reasons import HeadReasons, HeadVerdict

_LEAST_FACTS = 2  # lines of facts and the blank one before them that a low screen keeps from the legend
Place: TypeAlias = tuple[int, int]  # position of the layer, head

RATIO = Statistic(
    "multiplier_ratio", message("multiplier ÷ expected"), "logits", "number", "m / m₀",
    message("The multiplier that the file's weights, log-sum-exps or outputs show, over the expected one."),
    "docs/diagnose.md", message("÷ expected"),
)  # fmt: skip
CHANGE = Statistic(
    "change", message("change from the baseline"), "attention", "number", "KL(baseline ‖ this)",
    message("How far the weights are from those of the baseline; of different texts, the change of entropy / ln n."),
    "docs/diagnose.md", message("change"),
)  # fmt: skip
_LEAST_STATISTICS = 8  # lines below the facts from which statistics of the head are shown there
_FACTS = 7  # lines reserved for the facts


class HeadMapWidget(LinesWidget):
    """Shows one statistic of every head. The cursor is (position of the layer, head)."""

    TITLE = message("heads")
    LEADS = True
    DEFAULT_CLASSES = "region"

    class Moved(Message):
        """Another head is selected."""

    capture: Capture | None = None
    statistic: Statistic = STATISTIC["saturation"]
    cursor: tuple[int, int] = (0, 0)

    def __init__(self) -> None:
        super().__init__()
        self._top = 0  # first line shown of the facts
        self.measured: dict[Place, Mapping[str, Estimate] | None] = {}
        self.explained: dict[Place, HeadReasons] = {}
        self.compared: dict[Place, HeadComparison] = {}  # with a baseline
        self.rough: set[Place] = set()  # heads of which only a few rows were measured

    def open(self, capture: Capture) -> None:
        """Show another file; the cursor stays if its head exists."""
        self.capture = capture
        for known in (self.measured, self.explained, self.rough, self.compared):
            known.clear()
        self.select(*self.cursor)
        if self.statistic not in self.choices:
            self.statistic = STATISTIC["saturation"]
        self.redraw()

    def learn(
        self,
        heads: Mapping[Place, Mapping[str, Estimate] | None],
        explained: Mapping[Place, HeadReasons],
        rough: bool,
    ) -> None:
        """Add statistics of heads; rough ones do not replace others."""
        for place, measured in heads.items():
            if not rough:
                self.rough.discard(place)
            elif place in self.measured and place not in self.rough:
                continue
            else:
                self.rough.add(place)
            self.measured[place] = measured
        self.explained.update(explained)
        self.redraw()

    @property
    def choices(self) -> Sequence[Statistic]:
        """What the map can show; the multiplier if the file has evidence of it, the change if there is a baseline."""
        layers = self.capture.layers if self.capture is not None else ()
        ratio = (RATIO,) if any(map(has_evidence, layers)) else ()
        return (*ALWAYS, *ratio, *((CHANGE,) if self.compared else ()))

    @property
    def verdicts(self) -> Mapping[Place, HeadVerdict]:
        """What the evidence says of heads that have some."""
        return {place: each.verdict for place, each in self.explained.items() if each.verdict is not None}

    def value(self, place: Place) -> float | None:
        """Return the statistic of a head; None if it has none."""
        if self.statistic is RATIO:
            found = self.explained.get(place)
            return None if found is None or found.verdict is None else found.verdict.ratio
        if self.statistic is CHANGE:
            return self.compared[place].change if place in self.compared else None
        measured = self.measured[place]
        return None if measured is None else measured[self.statistic.name].value

    def is_of_note(self, place: Place) -> bool:
        """Return whether a head differs from the baseline; without one, whether it is not healthy or is wrong."""
        if self.compared:
            return place in self.compared and self.compared[place].first is not None
        measured, found = self.measured[place], self.explained.get(place)
        return measured is None or head_word(measured, found and found.verdict) not in ("healthy", None)

    def is_contradicted(self, place: Place) -> bool:
        """Return whether a head differs from the baseline; without one, whether its scale is in doubt."""
        if self.compared:
            return place in self.compared and self.compared[place].first is not None
        verdict = self.verdicts.get(place)
        return verdict is not None and (verdict.is_wrong or verdict.is_unusual)

    def ranked_head(self, place: Place) -> RankedHead:
        """Return a head for the list."""
        assert self.capture is not None
        measured, found = self.measured[place], self.explained.get(place)
        if measured is not None and self.statistic in (RATIO, CHANGE):
            measured = {**measured, self.statistic.name: Estimate(self.value(place), None)}
        because = found.because if found is not None else ()
        first = self.compared[place].first if place in self.compared else None
        if first is not None:
            because = (
                in_words_of_baseline(message("{stage} differs: {says}", stage=STAGES[first.name], says=first.says)),
                *because,
            )
        index = self.capture.layers[place[0]].index
        verdict = found.verdict if found is not None else None
        return RankedHead(index, place[1], measured, because, place in self.rough, verdict=verdict)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.capture is None:
            return ()
        layers = self.capture.layers
        values = {where: self.value(where) for where in self.measured}
        verdicts = self.verdicts
        words = {where: head_word(found, verdicts.get(where)) for where, found in self.measured.items() if found}
        head_map = HeadMap([layer.index for layer in layers], [layer.heads for layer in layers], values, words)
        room = self._map_height(height)
        lines = [*map_lines(head_map, self.statistic, self.cursor, width, room, self.glyphs)]
        legend = mark_lines(head_map, width, self.glyphs)[: max(height - len(lines) - _LEAST_FACTS, 1)]
        lines += [*legend, fitted((), width)]
        layer, head = self.cursor
        because = self.ranked_head(self.cursor).because if self.cursor in self.measured else ()
        facts = capture_lines(
            self.capture,
            layers[layer],
            head,
            self.measured,
            self.cursor,
            width - 1,
            self.glyphs,
            because,
            verdicts,
        )
        room = height - len(lines)
        measured = self.measured.get(self.cursor)
        if measured and room - len(facts) > _LEAST_STATISTICS:
            facts += [(), *statistic_lines(measured, width - 1, room - len(facts) - 1, self.glyphs)]
        self._top = min(self._top, max(len(facts) - room, 0))
        shown = facts[self._top : self._top + room]
        if len(shown) > 1 and self._top + room < len(facts):
            more = len(facts) - self._top - room + 1
            shown[-1] = ((self.glyphs.say("{count} more lines (PgDn)", count=more), "dim"),)
        return [*lines, *(fitted(line, width) for line in shown)]

    def _map_height(self, height: int) -> int:
        """Return the lines of the map and its legend."""
        layers = len(self.capture.layers) if self.capture is not None else 0
        return min(layers + 3, max(height - _FACTS, 6))

    def read(self, lines: int) -> None:
        """Scroll the facts down by `lines`; up if negative."""
        self._top = max(self._top + lines, 0)
        self.redraw()

    def move(self, down: int, right: int) -> None:
        """Move the cursor, at most to the edges of the map."""
        if self.capture is None:
            return
        before = self.cursor
        self.select(before[0] + down, before[1] + right)
        if self.cursor != before:
            self.redraw()
            self.post_message(self.Moved())

    def select(self, layer: int, head: int) -> None:
        """Put the cursor on a head, or on the nearest one that exists."""
        if self.capture is not None:
            layers = self.capture.layers
            layer = min(max(layer, 0), len(layers) - 1)
            head = min(max(head, 0), layers[layer].heads - 1)
        self.cursor = (layer, head)

    async def on_click(self, event: events.Click) -> None:
        if self.capture is None:
            return
        if self.place_of(event).y == 0:  # on the name of the statistic
            await self.app.run_action("options", self.parent)  # pyright: ignore[reportUnknownMemberType]
            return
        layers = self.capture.layers
        head_map = HeadMap([layer.index for layer in layers], [layer.heads for layer in layers], {}, {})
        width, height = self.size
        room = self._map_height(height)
        found = head_at(head_map, self.cursor, width, room, *self.place_of(event))
        if found is not None:
            self.move(found[0] - self.cursor[0], found[1] - self.cursor[1])

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.move(direction, 0)
