"""The messages of a language: the program is written in English, and catalogues translate it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Protocol

from .chosen import Language

DOMAIN = "attn_tui"  # the name of the file: zh/LC_MESSAGES/attn_tui.mo


class Translations(Protocol):
    """What a catalogue needs of gettext."""

    def gettext(self, message: str, /) -> str:
        """Return the translation of a message; the message itself if there is none."""
        ...

    def ngettext(self, one: str, many: str, number: int, /) -> str:
        """Return the translation of the form for a number."""
        ...


class Catalogue:
    """The messages of one language. `catalogue` returns the same object for a language every time."""

    def __init__(self, language: Language, translations: Translations | None = None) -> None:
        self.language = language
        self._translations = translations  # None: messages are said as they are written

    def text(self, message: str, **values: object) -> str:
        """Return a message in this language, with its placeholders replaced: `{width}` by `width=…`.

        Without values, braces stand for themselves.
        """
        found = self._translations.gettext(message) if self._translations and message else message
        return found.format(**values) if values else found

    def count(self, one: str, many: str, number: int, **values: object) -> str:
        """Return the message for a number of things: `one` if it is 1 in English; `{number}` may be in both."""
        if self._translations is None:
            found = one if number == 1 else many
        else:
            found = self._translations.ngettext(one, many, number)
        return found.format(number=number, **values)


@lru_cache
def catalogue(language: Language) -> Catalogue:
    """Return the messages of a language."""
    if language == "en":
        return Catalogue(language)
    from gettext import translation  # English needs none of it

    return Catalogue(language, translation(DOMAIN, Path(__file__).parent, [language]))
