"""A line of text that is being edited."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Draft:
    """The text, and the place before which the next character goes."""

    text: str
    at: int

    @classmethod
    def of(cls, text: str) -> Draft:
        """This text with the cursor at its end."""
        return cls(text, len(text))

    def typed(self, text: str) -> Draft:
        """With this text put in, of which only what can be seen on a line is taken."""
        line = "".join(c for c in text if c.isprintable())
        return Draft(self.text[: self.at] + line + self.text[self.at :], self.at + len(line))

    def moved(self, to: int) -> Draft:
        """With the cursor there, or at the nearer end."""
        return Draft(self.text, min(max(to, 0), len(self.text)))

    def without(self, first: int, last: int) -> Draft:
        """Without the characters between these places, as far as there are any."""
        first, last = max(first, 0), min(last, len(self.text))
        return Draft(self.text[:first] + self.text[last:], first)

    @property
    def word_start(self) -> int:
        """Where the part of a path begins that ends at the cursor; Ctrl+W erases back to it."""
        before = self.text[: self.at].rstrip("/ .-_")
        return max((before.rfind(c) for c in "/ .-_"), default=-1) + 1


def edited(draft: Draft, key: str) -> Draft | None:
    """What a key does to a draft, by the library's name of the key; None if it does nothing to drafts."""
    at, end = draft.at, len(draft.text)
    match key:
        case "left":
            return draft.moved(at - 1)
        case "right":
            return draft.moved(at + 1)
        case "home" | "ctrl+a":
            return draft.moved(0)
        case "end" | "ctrl+e":
            return draft.moved(end)
        case "backspace":
            return draft.without(at - 1, at)
        case "delete":
            return draft.without(at, at + 1)
        case "ctrl+u":
            return draft.without(0, at)
        case "ctrl+k":
            return draft.without(at, end)
        case "ctrl+w":
            return draft.without(draft.word_start, at)
        case _:
            return None
