"""The widget of the Softmax pane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual import events

from ....core.message import message
from ....core.questions.softmax import SoftmaxSteps
from ...language.cells import to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted
from ...views.page import section_line
from ...views.plots.axes import Axis
from ...views.results.softmax import LEFT, ScoreEntry, row_of, score_names, step_lines, word_lines
from ...views.results.softmax_page import FIRST, NARROWEST, page_height, page_lines
from ...views.results.table import COLUMN_ROLES
from ...widgets.lines import Content, ScrolledLines

_HIGHEST = 4  # lines of a chart
_AROUND = 4  # lines that are not charts: a blank one, the title, the axis and its labels
_LEAST_CELLS = 40


def curve_lines(worked: SoftmaxSteps, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return a chart for each score, one for the entropy and one for ‖J‖_F; empty if they need more lines."""
    curves, cells = worked.curves, width - LEFT - 3
    rows = len(worked.example.scores) + 2
    tall = min((height - _AROUND) // rows, _HIGHEST)
    if curves is None or tall < 1 or cells < _LEAST_CELLS:
        return []
    axis = Axis(curves.multipliers[0], curves.multipliers[-1], 2)
    at = [_cell(side.multiplier, axis, cells) for side in worked.sides]
    names = [*score_names(worked.example, glyphs), glyphs.say("entropy"), glyphs.say("‖J‖_F")]
    # No norm of the Jacobian is larger than 1/2, that of two equal weights, but for rounding.
    norms = tuple(min(2 * norm, 1.0) for norm in curves.jacobian_norm)
    values = [*curves.weights, curves.entropy_fraction, norms]
    title, legend = message("weights as the multiplier grows"), message("full: weight 1, entropy ln n, ‖J‖_F 1/2")
    lines: list[Line] = [(), section_line(title, legend, width, glyphs)]
    for name, series in zip(names, values, strict=True):
        shown = [series[_index(cell, cells, len(series))] for cell in range(cells)]
        for number, row in enumerate(_bars(shown, tall, glyphs)):
            label = to_right(name if number == tall - 1 else "", LEFT - 2)
            lines.append((*fitted(((f" {label}", "label"),), LEFT + 1), *_coloured(row, at, glyphs)))
    return [*lines, *_axis_lines(axis, at, cells, glyphs)]


def _cell(multiplier: float, axis: Axis, cells: int) -> int:
    """Return the column of a multiplier."""
    return min(max(round((axis.place(multiplier) or 0) * (cells - 1)), 0), cells - 1)


def _index(cell: int, cells: int, points: int) -> int:
    """Return the point that is shown in a cell."""
    return round(cell * (points - 1) / max(cells - 1, 1))


def _bars(values: Sequence[float], height: int, glyphs: Glyphs) -> list[str]:
    """Return the lines of a chart of values from 0 to 1, top line first; bars do not touch the chart above."""
    ramp = glyphs.bars[:-1] if height == 1 else glyphs.bars
    steps = len(ramp) - 1
    levels = [round(value * (steps * height - (height > 1))) for value in values]
    return [
        "".join(ramp[min(max(level - steps * below, 0), steps)] for level in levels)
        for below in range(height - 1, -1, -1)
    ]


def _coloured(row: str, at: Sequence[int], glyphs: Glyphs) -> Line:
    """Return a line of a chart with the columns of A and B in their colours, and marked where they are empty."""
    spans: list[Span] = []
    start = 0
    for cell, role in sorted(dict(zip(at, COLUMN_ROLES, strict=True)).items()):
        sign = row[cell] if row[cell].strip() else glyphs.uprights[0]
        spans.append((row[start:cell], "label"))
        spans.append((sign, role))
        start = cell + 1
    return (*spans, (row[start:], "label"))


def _axis_lines(axis: Axis, at: Sequence[int], cells: int, glyphs: Glyphs) -> list[Line]:
    """Return the axis with the marks of A and B at their multipliers, and its labels: powers of two."""
    ticks = axis.ticks(cells // 9)
    rule, labels = [glyphs.rule] * cells, [" "] * cells
    for value in ticks:
        cell, text = _cell(value, axis, cells), f"1/{1 / value:g}" if value < 1 else f"{value:g}"
        rule[cell] = glyphs.tick
        start = min(max(cell - len(text) // 2, 0), cells - len(text))
        labels[start : start + len(text)] = text
    spans: list[Span] = []
    start = 0
    names: dict[int, tuple[str, Role]] = {}
    for cell, mark, role in zip(at, glyphs.marks, COLUMN_ROLES, strict=False):
        names[cell] = (mark, role)
    for cell, span in sorted(names.items()):
        spans.append(("".join(rule[start:cell]), "dim"))
        spans.append(span)
        start = cell + 1
    margin: Span = (" " * (LEFT + 1), "text")
    return [(margin, *spans, ("".join(rule[start:]), "dim")), (margin, ("".join(labels), "dim"))]


_PINNED = (60, 16)  # columns and lines from which the explanation stays in place while the steps scroll


class SoftmaxText(ScrolledLines):
    """Shows the steps from scores to weights; scrolls to the selected score."""

    INDENT = " "

    undimmed = ("alert", "accent")  # the typed text and the reason why it is refused
    worked: SoftmaxSteps | None = None
    editing = ScoreEntry(0)
    steps: Content[bool] = Content(False)  # whether every step is shown, instead of the page
    _follows = False  # whether to scroll to the selected score
    _words: Sequence[Line] = ()  # the explanation, if it scrolls with the steps

    def show(self, worked: SoftmaxSteps, editing: ScoreEntry) -> None:
        """Show an example, with the selected score in sight."""
        self.worked, self.editing, self._follows = worked, editing, True
        self.redraw()

    def score_at(self, event: events.MouseEvent) -> int | None:
        """Return the index of the score under the mouse, if any."""
        if self.worked is None:
            return None
        y, (width, height) = self.place_of(event).y, self.room
        if self._has_page(width, height):
            at, rest = divmod(y - FIRST, 1 + self._is_tall(height))
            return at if 0 <= at < len(self.worked.example.scores) and rest == 0 else None
        at = y + self.top - row_of(self.worked, width, self.glyphs, replace(self.editing, at=0))
        return at if 0 <= at < len(self.worked.example.scores) else None

    def scroll_by(self, lines: int) -> None:
        self._follows = False
        super().scroll_by(lines)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        if self._has_page(width, height):
            tall = self._is_tall(height)
            page = page_lines(self.worked, width, self.glyphs, self.editing, tall)
            curves = curve_lines(self.worked, width, height - len(page), self.glyphs)
            return [*page, *(fitted(line, width) for line in curves)]
        words = word_lines(self.worked, width, self.glyphs, self.editing)
        pinned: Sequence[Line] = ()
        if width >= _PINNED[0] and height >= _PINNED[1]:
            pinned, self._words = words, ()
        else:
            self._words = [(), *words]
        room = height - len(pinned)
        if self._follows:
            self._follow(row_of(self.worked, width, self.glyphs, self.editing), room)
        steps = super().compose_lines(width, room)
        space = [fitted((), width)] if len(steps) < room else []
        return [*steps, *space, *(fitted(line, width) for line in pinned)]

    def _has_page(self, width: int, height: int) -> bool:
        """Whether the page is shown: with `steps`, or where it has no room, every step is."""
        scores = len(self.worked.example.scores) if self.worked else 0
        return not self.steps and width >= NARROWEST and height >= page_height(scores)

    def _is_tall(self, height: int) -> bool:
        """Whether the page has blank lines between scores."""
        scores = len(self.worked.example.scores) if self.worked else 0
        return height >= page_height(scores) + scores

    def _follow(self, row: int, height: int) -> None:
        """Scroll to a line; to the top if the line is visible from there."""
        if row < height - 1:
            self.top = 0
        elif not self.top <= row < self.top + height - 1:
            self.top = row - height + 2

    def write(self, width: int, height: int) -> Sequence[Line]:
        if self.worked is None:
            return ()
        forms = [
            [*step_lines(self.worked, width, self.glyphs, self.editing, tall), *self._words] for tall in (True, False)
        ]
        for lines in forms:
            if curves := curve_lines(self.worked, width, height - len(lines) - 1, self.glyphs):
                return [*lines, *curves]
        lines = next((lines for lines in forms if len(lines) < height), forms[-1])
        return lines if len(lines) <= height else [line for line in lines if line]
