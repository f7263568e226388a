"""The top bar, the key bar, the headline of a pane, a paragraph, and notices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from textual import events
from textual.widget import Widget

from ..language.cells import cells
from ..views.bars import Key, Views, key_at, key_line, pane_at, top_line
from ..views.help import pressed_name
from ..views.lines import Line, Role, fitted, shortened, unsplit, wrapped
from ..views.page import LOW, headline_lines, picture_columns, words_at
from .lines import Content, LinesWidget


class TopBar(LinesWidget):
    """Shows the tabs, the views of the active one, and a status."""

    panes: tuple[str, ...] = ()
    active: Content[str] = Content("")
    statuses: Content[Sequence[Line]] = Content(())  # forms of one, of which the longest that fits is shown
    views: Content[Views] = Content(((), ""))

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return [top_line(self.panes, self.active, self.statuses, width, self.glyphs, self.views)]

    async def on_click(self, event: events.Click) -> None:
        """Show the tab or the view that was clicked, or the next or previous tab."""
        name = pane_at(self.panes, self.active, self.size.width, event.x, self.glyphs, self.views)
        if name is not None:
            kind = "view" if name in self.views[0] else "tab"
            action = f"turn({name})" if isinstance(name, int) else f"{kind}('{name}')"
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
        if (text, role) != (self.text, self.role):
            self.text, self.role = text, role
            self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        lines = shortened(
            wrapped(self.glyphs.say(self.text), width - 1, self.role), width - 1, height, self.glyphs.say("…")
        )
        return [fitted(((" ", "text"), *line), width) for line in lines]


class Notice(LinesWidget):
    """Shows the lines that `write` returns for a width, until hidden."""

    def __init__(self) -> None:
        super().__init__()
        self._write: Callable[[int], Sequence[Line]] = lambda _: ()

    def show(self, write: Callable[[int], Sequence[Line]]) -> None:
        """Show a message in as many lines as it needs."""
        self._write = write
        self._arrange()
        self.display = True
        self.redraw()

    def hide(self) -> None:
        """Hide the message."""
        if self.display:
            self.display = False

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        edges = _edges([widget for widget in self._others() if widget.region.overlaps(self.region)])
        return [fitted(unsplit(line, edges), width) for line in self._broken(width)]

    def on_resize(self) -> None:
        self._arrange()

    def _arrange(self) -> None:
        self.styles.height = len(self._broken(self.screen.size.width))

    def _broken(self, width: int) -> Sequence[Line]:
        """Return the message, with room to move its wide characters away from the edges of other widgets."""
        lines = self._write(width)
        wide = any(cells(text) > len(text) for line in lines for text, _ in line)
        return self._write(width - len(_edges(self._others()))) if wide else lines

    def _others(self) -> list[Widget]:
        return [widget for widget in self.screen.query(Widget) if widget is not self and widget.region]


def _edges(widgets: Iterable[Widget]) -> set[int]:
    """Return the columns at which Textual splits the lines over these widgets, and wide characters in two."""
    edges = {edge for widget in widgets for edge in (widget.region.x, widget.region.right)}
    return edges - {0, max(edges, default=0)}


class Headline(LinesWidget):
    """Shows a label, a number and lines of words, at the bottom of its lines."""

    undimmed = ("heading", "accent", "alert")
    label: Content[str] = Content("")
    number: Content[str] = Content("")
    role: Content[Role] = Content("heading")  # of the number
    words: Content[Sequence[Line]] = Content(())

    @property
    def room_for_words(self) -> int:
        """The cells of a line of words, also before the first layout: a headline is as wide as the screen."""
        width = self.app.size.width  # pyright: ignore[reportUnknownMemberType]
        return max(width - words_at(width) - 1, 1)

    def lines_beside(self) -> Sequence[Line]:
        """Return the lines of words."""
        return self.words

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        words = self.lines_beside()
        at, beside = picture_columns(width).name if width >= 70 else 6, words_at(width)
        lines = headline_lines(self.label, self.number, words, width, self.glyphs, at, self.role, beside=beside)
        blank: Line = ((" " * width, "text"),)
        return [*[blank] * (height - max(LOW, len(lines))), *lines[:height]]
