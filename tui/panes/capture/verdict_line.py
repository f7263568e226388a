"""The line on top of the Capture pane: the verdict on the file, or a question to the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from rich.cells import set_cell_size
from textual import events

from ....core.message import message
from ...language.cells import cells
from ...views.fields.entry import LONGEST_PATH, Draft, edited
from ...views.lines import Line, Role, Span, ends, fitted, line_width
from ...widgets.lines import Content, LinesWidget
from ...widgets.typing import pasted_line

Question: TypeAlias = Literal["find", "baseline"]

# What is asked, and what is accepted.
_ASKED: dict[Question, tuple[str, str]] = {
    "find": ("/", message("a head (3/7), a query (12) or a token")),
    "baseline": (message("baseline:"), message("a file to compare with; empty: none")),
}


class VerdictLine(LinesWidget):
    """Shows a sentence; `ask` makes it a field, whose text the pane gets when it is accepted."""

    def __init__(self, answer: Callable[[Question, str], object]) -> None:
        """Call `answer` with a question and its accepted text."""
        super().__init__()
        self._answer = answer

    forms: Content[Sequence[str]] = Content(())
    role: Content[Role] = Content("text")
    label: Content[str] = Content("")  # before the sentence
    draft: Content[Draft | None] = Content(None)  # what is being typed
    question: Question = "find"
    objection: Content[str] = Content("")  # why the answer is refused

    def show(self, *forms: str, role: Role = "text", label: str = "") -> None:
        """Show a label, and the first of these forms of a sentence that fits; the last one is cut if none does."""
        self.forms, self.role, self.label = forms, role, label

    def ask(self, question: Question, text: str = "") -> None:
        """Ask a question; `text` is the answer to begin with."""
        self.question, self.draft, self.objection = question, Draft.of(text), ""
        self.can_focus = True
        self.focus()
        self.refresh(layout=True)  # a low screen has no place for it otherwise

    def close(self) -> None:
        """Show the sentence again."""
        self.draft = None
        self.action_leave()
        self.can_focus = False
        self.refresh(layout=True)

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.draft is None:
            label: Line = ((f" {self.glyphs.say(self.label)} ", "cursor"), ("  ", "text")) if self.label else ()
            sign, room = self.glyphs.say("…"), width - 1 - line_width(label)
            text = self.glyphs.fitting(self.forms or [""], room)
            shown = text if cells(text) <= room else set_cell_size(text, max(room - 1, 0)) + sign
            return [fitted(((" ", "text"), *label, (shown, self.role)), width)]
        before, after = self.draft.text[: self.draft.at], self.draft.text[self.draft.at :]
        asked, hint = map(self.glyphs.say, _ASKED[self.question])
        typed: list[Span] = [
            (f" {asked} ", "key"),
            (before, "accent"),
            ((after or " ")[:1], "cursor"),
            (after[1:], "accent"),
        ]
        why: Line = ((self.glyphs.say(self.objection), "alert"),) if self.objection else ((hint, "dim"),)
        return [ends(tuple(typed), (*why, (" ", "text")), width)]

    def on_key(self, event: events.Key) -> None:
        """Edit the text; bindings would not keep the order of typed characters."""
        if self.draft is None or event.key in ("ctrl+p", "f1"):
            return
        event.stop()
        event.prevent_default()
        if event.key in ("escape", "tab", "shift+tab", "up", "down"):
            self.close()
        elif event.key == "enter":
            self._answer(self.question, self.draft.text.strip())
        elif event.is_printable and event.character and len(self.draft.text) < LONGEST_PATH:
            self.draft, self.objection = self.draft.typed(event.character), ""
        elif (changed := edited(self.draft, event.key)) is not None:
            self.draft, self.objection = changed, ""

    def on_paste(self, event: events.Paste) -> None:
        event.stop()
        if self.draft is not None:
            pasted = self.draft.typed(pasted_line(event)[: LONGEST_PATH - len(self.draft.text)])
            self.draft, self.objection = pasted, ""

    def focus_changed(self) -> None:
        if not self.has_focus and self.draft is not None:
            self.draft = None
            self.can_focus = False
        super().focus_changed()
