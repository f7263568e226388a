"""The screen that chooses from a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from ...core.formula import LONGEST
from ..views.fields.choice_list import ChoiceList, clicked, list_lines, page, window
from ..views.help import ALT, pressed_name
from ..views.lines import Line, Thumb
from .lines import Content, LinesWidget
from .modal import Modal

_MOVES = {"up": -1, "down": 1, "home": -10_000, "end": 10_000}
_PAGES: dict[str, Literal[-1, 1]] = {"pageup": -1, "pagedown": 1}


class ListText(LinesWidget):
    """Shows a list, in a border with its title."""

    HEADED = True
    DEFAULT_CLASSES = "modal"

    choices: Content[ChoiceList] = Content(ChoiceList("", ()))

    def __init__(
        self, choices: ChoiceList, click: Callable[[int | str], object], move: Callable[[int], object]
    ) -> None:
        """`click` is called with a row, by its index among the matches, or a key; `move` with the wheel's rows."""
        super().__init__()
        self.choices, self._click, self._move = choices, click, move

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        return list_lines(self.choices, width, height, self.glyphs)

    def heading(self, width: int) -> Line:
        return ((self.glyphs.say(self.choices.title), "heading"),)

    def thumb(self) -> Thumb:
        rows, top = window(self.choices, self.room.height)
        return Thumb(top, page(self.room.height) + 1, len(rows))

    def on_click(self, event: events.Click) -> None:
        place, (width, height) = self.place_of(event), self.room
        meaning = clicked(self.choices, width, height, self.glyphs, *place) if 0 <= place.y < height else None
        if meaning is not None:
            self._click(meaning)

    def wheel(self, event: events.MouseEvent, direction: int) -> None:
        self._move(direction)


class ChoiceScreen(Modal, ModalScreen[ChoiceList]):
    """Shows a list and returns it as it stands when a row is chosen; nothing if cancelled.

    A live list stands below what it changes, and `preview` is called with the values at the cursor whenever these
    change; of other lists, nothing is set before a row is chosen.

    Most keys are characters of the filter. `on_key` handles all of them, instead of bindings, so that they keep their
    order.
    """

    def __init__(self, choices: ChoiceList, preview: Callable[[Sequence[str]], object]) -> None:
        super().__init__(classes="live" if choices.live else "")
        self.text = ListText(choices, self._click, lambda rows: self._show(self.text.choices.moved(rows)))
        self.preview = preview

    def compose(self) -> ComposeResult:
        yield self.text

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        choices, key = self.text.choices, event.key
        if key in ("escape", "ctrl+c"):
            self.dismiss()
        elif key == "enter":
            self._choose()
        elif key in ("tab", "space") and choices.marked is not None:
            self._show(choices.toggled())
        elif key in _MOVES:
            self._show(choices.moved(_MOVES[key]))
        elif key in _PAGES:
            self._show(choices.moved(_PAGES[key] * page(self.text.room.height)))
        elif key == "backspace":
            self._show(choices.filtered(choices.words[:-1]))
        elif key == "ctrl+u":
            self._show(choices.filtered(""))
        elif event.is_printable and event.key not in ALT.values():  # those of Alt and a digit in some terminals
            self._show(choices.filtered((choices.words + (event.character or "")).lstrip()[:LONGEST]))

    def on_click(self, event: events.Click) -> None:
        """Close the list on a click beside it."""
        if event.widget is self:
            self.dismiss()

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        pasted = " ".join(event.text.split())
        self._show(self.text.choices.filtered((self.text.choices.words + pasted)[:LONGEST]))

    def _click(self, meaning: int | str) -> None:
        if isinstance(meaning, str):
            self.app.simulate_key(pressed_name(meaning))  # pyright: ignore[reportUnknownMemberType]
            return
        self._show(self.text.choices.moved(meaning - self.text.choices.cursor))
        if self.text.choices.marked is None:
            self._choose()
        else:
            self._show(self.text.choices.toggled())

    def _choose(self) -> None:
        choices = self.text.choices
        if choices.chosen is not None or choices.marked is not None:
            self.dismiss(choices)

    def _show(self, choices: ChoiceList) -> None:
        before, self.text.choices = self.text.choices.values, choices
        if choices.live and choices.values != before:
            self.preview(choices.values)
