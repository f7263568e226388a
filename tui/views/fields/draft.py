"""A line of text that is being edited."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_NUMBER = 40  # characters; a held key types many
LONGEST_PATH = 4096  # characters; no system accepts a longer one


@dataclass(frozen=True)
class Draft:
    """A text and the position of its cursor."""

    text: str
    at: int

    @classmethod
    def of(cls, text: str) -> Draft:
        """Return a draft of this text with the cursor at its end."""
        return cls(text, len(text))

    def typed(self, text: str) -> Draft:
        """Insert the printable characters of this text at the cursor."""
        line = "".join(c for c in text if c.isprintable())
        return Draft(self.text[: self.at] + line + self.text[self.at :], self.at + len(line))

    def moved(self, to: int) -> Draft:
        """Move the cursor to this position, or to the nearer end."""
        return Draft(self.text, min(max(to, 0), len(self.text)))

    def without(self, first: int, last: int) -> Draft:
        """Delete the characters between two positions, which may lie outside the text."""
        first, last = max(first, 0), min(last, len(self.text))
        return Draft(self.text[:first] + self.text[last:], first)

    @property
    def word_start(self) -> int:
        """The start of the path component before the cursor, to which Ctrl+W erases."""
        before = self.text[: self.at].rstrip("/ .-_")
        return max((before.rfind(c) for c in "/ .-_"), default=-1) + 1


def edited(draft: Draft, key: str) -> Draft | None:
    """Return the draft after a key, named as in Textual; None if the key does not edit."""
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
