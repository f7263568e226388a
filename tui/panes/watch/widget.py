"""The parts of the Watch pane: the map of heads, and the ranked list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events

from ....core.message import joined, message
from ...views.glyphs import Glyphs
from ...views.lines import Line, fitted, wrapped
from ...views.results.watch_page import head_at_page, page_lines
from ...views.results.watching import (
    LABELS,
    LOGITS,
    figures,
    head_lines,
    map_lines,
    ranked_lines,
    shown_part,
    step_line,
    summary,
)
from ...widgets.lines import ChoosingLines, Content

if TYPE_CHECKING:
    from ....core.watching.snapshot import RunSnapshot

EXAMPLE = message("An example: a small model, trained at a learning rate that is too high.")
HINT = message("To watch yours: attn-tui watch RUN; ? says how to make one.")
FROM_PYTORCH = ("attn-tui record -o run/ --every 100 -- python train.py", "attn-tui watch run/")
LINE = '{"step": 100, "max_logit": [[20.5, 9.1], [8.3, 12.4]]}'
FROM_LINES = "attn-tui watch run.jsonl"


def how_to_watch(width: int, glyphs: Glyphs) -> list[Line]:
    """Return how a run is made that can be watched."""
    return [
        *_with_commands(message("To watch a PyTorch program, from another terminal:"), FROM_PYTORCH, width, glyphs),
        *_with_commands(
            message("Or let any program write lines, with the largest |logit| of each head by layer, to run.jsonl:"),
            (LINE, FROM_LINES), width, glyphs,
        ),
    ]  # fmt: skip


def about_sample(width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return what is said below the example, in at most `height` lines."""
    example = wrapped(glyphs.say(EXAMPLE), width - 2, "accent")
    forms = (
        [*example, *how_to_watch(width - 2, glyphs)],
        wrapped(glyphs.say(joined([EXAMPLE, HINT])), width - 2, "accent"),
    )
    lines = next((form for form in (*forms, example) if len(form) <= height), ())
    return [((" ", "text"), *line) for line in lines]


def _with_commands(text: str, commands: Sequence[str], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a sentence, and commands below it."""
    lines: list[Line] = [((f"  {command}", "text"),) for command in commands]
    return [*wrapped(glyphs.say(text), width, "dim"), *lines]


_ABOVE = 2  # lines above the map
_LOW = 14  # lines below which little is said over the list


class HeadsWidget(ChoosingLines):
    """Shows heads of a run, of which a click chooses one, by its layer and its number."""

    shown: Content[RunSnapshot | None] = Content(None)
    cursor: Content[tuple[int, int]] = Content((0, 0))


class RunPage(HeadsWidget):
    """Shows the largest logit, and every head over the steps; before there is a step, how to make one."""

    waiting: Content[str] = Content("")
    is_sample = False  # whether the run is the one shipped with the program

    def _about(self, lines: int) -> list[Line]:
        return about_sample(self.size.width, lines, self.glyphs) if self.is_sample else []

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.shown is not None:
            return page_lines(self.shown, self.cursor, self._about, width, height, self.glyphs)
        if not self.waiting:
            return [fitted((), width)] * height
        label: Line = ((" ", "text"), (f" {self.glyphs.say('WAITING')} ", "selected"))
        said = wrapped(self.glyphs.say(self.waiting), width - 2)
        below = how_to_watch(width - 2, self.glyphs)
        lines: list[Line] = [label, (), *(((" ", "text"), *line) if line else () for line in [*said, (), *below])]
        return [fitted(line, width) for line in lines]

    def on_click(self, event: events.Click) -> None:
        if self.shown is not None:
            at = self.place_of(event)
            head = head_at_page(self.shown, self.cursor, self._about, self.size, at, self.glyphs)
            if head is not None:
                self._choose(*head)


class RunMap(HeadsWidget):
    """Shows a value of every head at one step."""

    TITLE = message("heads")
    DEFAULT_CLASSES = "region"
    LEADS = True

    statistic: Content[str] = Content(LOGITS)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        shown = self.shown
        if shown is None:
            return [fitted((), width)] * height
        label = LABELS.get(self.statistic, self.statistic)
        title = (
            message("{label}, by head", label=label)
            if shown.baseline is None
            else message("change of {label}", label=label)
        )
        lines: list[Line] = [
            fitted(((self.glyphs.say(title), "heading"),), width),
            fitted(step_line(shown, width, self.glyphs), width),
        ]
        lines += map_lines(shown, self.statistic, self.cursor, self._map_size(width, height), self.glyphs)
        size = width, height - len(lines) - 1
        return [*lines, fitted((), width), *head_lines(shown, self.cursor, size, self.glyphs)]

    def _map_size(self, width: int, height: int) -> tuple[int, int]:
        """Return the cells of the map: what the head below leaves, but at least half of the height."""
        below = figures(self.shown) + 5 if self.shown else 0
        return width, max(height - _ABOVE - below, height // 2)

    def on_click(self, event: events.Click) -> None:
        if self.shown is not None:
            size = self._map_size(*self.size)
            x, y = self.place_of(event)
            head = shown_part(self.shown, self.cursor, size).place_at(x, y - _ABOVE)
            if head is not None:
                self._choose(*head)


class RankedHeadsWidget(HeadsWidget):
    """Shows what the step says, and its heads, worst first."""

    DEFAULT_CLASSES = "region"

    top = 0
    _listed = 0  # lines for heads

    def heading(self, width: int) -> Line:
        changed = self.shown is not None and self.shown.changes is not None
        title = message("largest change first") if changed else message("worst first")
        return ((self.glyphs.say(title), "heading"),)

    def note(self) -> Line:
        heads = len(self.shown.ranked) if self.shown is not None else 0
        return ((self.glyphs.say("{heads} heads", heads=heads), "dim"),) if heads else ()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        above = self._above(width, height)
        if self.shown is None:
            return [fitted(line, width) for line in above]
        room = self._listed = max(height - len(above) - 1, 1)
        at = next((n for n, head in enumerate(self.shown.ranked) if (head.layer, head.head) == self.cursor), 0)
        self.top = min(max(self.top, at - room + 1), at)
        lines = ranked_lines(self.shown, width, self.glyphs, self.top, room, self.cursor)
        lines += [fitted((), width)] * (room + 1 - len(lines))
        return [*(fitted(line, width) for line in above), *lines]

    def _above(self, width: int, height: int) -> list[Line]:
        if self.shown is None:
            return []
        said_scale = self.glyphs.say(self.shown.says_scale)
        scale = message("{scale}.", scale=said_scale[:1].upper() + said_scale[1:])
        said = wrapped(self.glyphs.say(joined([summary(self.shown, height < _LOW), scale])), width)
        return [*said, ()]

    def on_click(self, event: events.Click) -> None:
        if self.shown is not None:
            at = self.top + self.place_of(event).y - len(self._above(*self.size)) - 1
            if self.top <= at < min(self.top + self._listed, len(self.shown.ranked)):
                self._choose(self.shown.ranked[at].layer, self.shown.ranked[at].head)
