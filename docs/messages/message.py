"""What a message is, and which texts are messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_WORD = re.compile(r"[A-Za-z]{2,}")
_PROSE = re.compile(r"(?<![\w'\"/.-])[A-Za-z][a-z]+ [a-z]{2,}(?![\w'\"/.=(-])")


@dataclass(frozen=True)
class Message:
    """A text that users read, with what a translator must know about it."""

    text: str
    path: str  # of the source file, from the root
    note: str = ""  # what it is: `STATISTICS entropy: label`
    plural: str = ""  # the text for other numbers than one

    @property
    def id(self) -> str | tuple[str, str]:
        """What the catalogue finds it by."""
        return (self.text, self.plural) if self.plural else self.text


def messages(path: str, texts: Iterable[tuple[str, str]]) -> Iterator[Message]:
    """Yield a message for each note and text of a file, without those that have no words.

    The space around a text is no part of it.
    """
    for note, text in texts:
        if has_words(text):
            yield Message(text.strip(), path, note)


def has_words(text: str) -> bool:
    """Return whether a text has a word of two letters beside its placeholders, and so may need a translation."""
    return _WORD.search(re.sub(r"\{[^{}]*\}|d_[a-z]+", "", text)) is not None


def has_prose(text: str) -> bool:
    """Return whether a text has two words in a row, so that it is more than a name."""
    return _PROSE.search(text) is not None
