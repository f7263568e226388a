"""The top bar, the key bar, and the paragraph under a table."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from ..views.bars import Key, key_at, key_line, pane_at, top_line
from ..views.help.keys import pressed_name
from ..views.lines import Line, Role, fitted, shortened, wrapped
from .lines import LinesWidget


class TopBar(LinesWidget):
    """Shows the panes and a status."""

    panes: Sequence[str] = ()
    active = ""
    statuses: Sequence[Line] = ()

    def show(self, active: str, statuses: Sequence[Line]) -> None:
        """Show the active pane and the longest status that fits."""
        self.active, self.statuses = active, statuses
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return [top_line(self.panes, self.active, self.statuses, width, self.glyphs)]

    async def on_click(self, event: events.Click) -> None:
        """Show the pane that was clicked, or the next or previous one."""
        pane = pane_at(self.panes, self.active, self.size.width, event.x, self.glyphs)
        if pane is not None:
            action = f"turn({pane})" if isinstance(pane, int) else f"pane('{pane}')"
            await self.app.run_action(action)  # pyright: ignore[reportUnknownMemberType]


class KeyBar(LinesWidget):
    """Shows the keys of the active pane."""

    keys: Sequence[Key] = ()

    def show(self, keys: Sequence[Key]) -> None:
        """Show these keys, as many as fit."""
        if keys != self.keys:
            self.keys = keys
            self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return [key_line(self.keys, width, self.glyphs)]

    def on_click(self, event: events.Click) -> None:
        """Press the key that was clicked."""
        word = key_at(self.keys, self.size.width, self.glyphs, event.x)
        if word is not None and word not in ("0-9", "a-z"):  # those stand for many keys
            self.app.simulate_key(pressed_name(word))  # pyright: ignore[reportUnknownMemberType]


class Paragraph(LinesWidget):
    """Shows a sentence or two, cut with … if they do not fit."""

    text = ""
    role: Role = "text"

    def show(self, text: str, role: Role = "text") -> None:
        """Show this text."""
        self.text, self.role = text, role
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = shortened(
            wrapped(self.glyphs.say(self.text), width - 1, self.role), width - 1, height, self.glyphs.say("…")
        )
        return [fitted(((" ", "text"), *line), width) for line in lines]
