"""Every scale rule replayed on the selected head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.binding import Binding, BindingType

from ....core.message import message
from ....core.scales import SCALE_RULES
from ....core.tables.heads import replay_grid, replay_remarks
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, fitted, middle_cut, wrapped
from ...views.numbers import lined_up, signed
from ...widgets.lines import Content, LinesWidget

if TYPE_CHECKING:
    from ....core.diagnosis.results import Replay

_PAGE = 8
_RULES = 20  # cells of rules below which columns are left out
_SHORT: dict[str, str] = {
    "multiplier": "×",
    "one-hot %": message("1-hot %"),
    "saturation": message("satur"),
    "change": "Δ",
}


class ReplayList(LinesWidget, can_focus=True):
    """Shows what every scale rule would have done to the selected head."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll(-1)", "line up"),
        Binding("down,j", "scroll(1)", "line down"),
        Binding("pageup", f"scroll({-_PAGE})", "page up"),
        Binding("pagedown", f"scroll({_PAGE})", "page down"),
        Binding("escape", "leave", "back"),
    ]
    HEADED = True
    TITLE = message("every rule replayed on this head")
    DEFAULT_CLASSES = "region"

    table: Content[Replay | None] = Content(None)
    top = 0

    def show(self, table: Replay) -> None:
        """Show a head under every rule."""
        self.table = table
        self.dim(False)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.table is None:
            return ()
        lines = replay_lines(self.table, width, self.glyphs)
        self.top = min(max(self.top, 0), max(len(lines) - height, 0))
        shown = [lines[0], *lines[1 + self.top :]] if lines else []
        return [fitted(line, width) for line in shown[:height]]

    def action_scroll(self, lines: int) -> None:
        self.top += lines
        self.redraw()

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self.action_scroll(direction)


def replay_lines(found: Replay, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a header, a line for each rule, and what is said below.

    On narrow screens columns are left out; rules without room are counted.
    """
    titles, rows, _ = replay_grid([found])
    header = [glyphs.say(_SHORT.get(cell, cell)) for cell in titles]
    columns = [lined_up([signed(glyphs.say(row[at]), glyphs) for row in rows]) for at in range(1, len(header))]
    wide = [max(map(cells, (title, *column))) for title, column in zip(header[1:], columns, strict=True)]
    shown, room = range(len(columns)), 0
    for left_out in ((), (2,), (2, 5), (2, 3, 5), (2, 3, 4, 5)):
        shown = [at for at in range(len(columns)) if at not in left_out]
        room = width - 1 - sum(wide[at] + 2 for at in shown)
        if room >= _RULES:
            break
    lines = [_line(header[0], [to_right(header[at + 1], wide[at]) for at in shown], room, "dim")]
    for number, row in enumerate(rows):
        figures = [to_right(columns[at][number], wide[at]) for at in shown]
        role: Role = "scaled" if number == 0 else "text"
        lines.append(_line(_rules(row[0].split(" = "), room, glyphs), figures, room, role))
    for text in replay_remarks([found]):
        lines.append(())
        for line in wrapped(glyphs.say(text), width - 1):
            lines.append(((" ", "text"), *line))
    return lines


def _line(name: str, figures: Sequence[str], room: int, role: Role) -> Line:
    return ((" " + "  ".join([to_left(name, max(room, 0)), *figures]), role),)


def _rules(names: Sequence[str], room: int, glyphs: Glyphs) -> str:
    """Return rules with the same multiplier, as many as fit, and how many more there are."""
    labels = [glyphs.say(SCALE_RULES[name].label if name in SCALE_RULES else name) for name in names]

    def said(rules: str, count: int) -> str:
        more = len(labels) - count
        return glyphs.say("{rules}, {count} more", rules=rules, count=more) if more else rules

    forms = (said(" = ".join(labels[:count]), count) for count in range(len(labels), 0, -1))
    cut = middle_cut(labels[0], max(room - cells(said("", 1)), 0), glyphs.say("…"))
    return next((form for form in forms if cells(form) <= room), said(cut, 1))
