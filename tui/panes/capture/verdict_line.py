"""The line on top of the Capture pane: the verdict on the file, or what is being looked for."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.message import Message

from ...views.draft import Draft, edited
from ...views.lines import Line, Role, Span, ends, fitted
from ...widgets.lines import LinesWidget

_LONGEST = 80  # characters to look for
_HINT = "a head (3/7), a query (12) or a token"


class VerdictLine(LinesWidget):
    """Shows a sentence; `find` makes it a field, whose text is posted when it is accepted."""

    class Find(Message):
        """This text is looked for."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    forms: Sequence[str] = ()
    role: Role = "text"
    draft: Draft | None = None  # what is being typed
    objection = ""  # why it was not found

    def show(self, *forms: str, role: Role = "text") -> None:
        """Show the first of these forms of a sentence that fits; the last one is cut if none does."""
        self.forms, self.role = forms, role
        self.redraw()

    def find(self) -> None:
        """Ask what to look for."""
        self.draft, self.objection = Draft.of(""), ""
        self.can_focus = True
        self.focus()
        self.refresh(layout=True)  # a low screen has no place for it otherwise
        self.redraw()

    def refuse(self, reason: str) -> None:
        """Say why the text was not found."""
        self.objection = reason
        self.redraw()

    def close(self) -> None:
        """Show the sentence again."""
        self.draft = None
        self.leave()
        self.can_focus = False
        self.refresh(layout=True)
        self.redraw()

    def compose_lines(self, width: int, height: int) -> Sequence[Line]:
        if self.draft is None:
            sign = self.glyphs.say("…")
            forms = [self.glyphs.say(form) for form in self.forms] or [""]
            text = next((form for form in forms if len(form) < width), forms[-1])
            shown = text if len(text) <= width - 1 else f"{text[: max(width - 2, 0)]}{sign}"
            return [fitted(((" ", "text"), (shown, self.role)), width)]
        before, after = self.draft.text[: self.draft.at], self.draft.text[self.draft.at :]
        typed: list[Span] = [
            (" / ", "key"),
            (before, "accent"),
            ((after or " ")[:1], "cursor"),
            (after[1:], "accent"),
        ]
        why: Line = ((self.glyphs.say(self.objection), "alert"),) if self.objection else ((_HINT, "dim"),)
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
            self.post_message(self.Find(self.draft.text.strip()))
        elif event.is_printable and event.character and len(self.draft.text) < _LONGEST:
            self.draft, self.objection = self.draft.typed(event.character), ""
            self.redraw()
        elif (changed := edited(self.draft, event.key)) is not None:
            self.draft, self.objection = changed, ""
            self.redraw()

    def focus_changed(self) -> None:
        if not self.has_focus and self.draft is not None:
            self.draft = None
            self.can_focus = False
        super().focus_changed()
