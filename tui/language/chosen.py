"""Which language users read: that of `--lang`, of the environment or the settings, or else the locale's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, TypeAlias, get_args

from ...core.errors import InputError, not_one_of

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
AUTO = "auto"  # the locale's language
CHOICES = (AUTO, *LANGUAGES)
OPTION, VARIABLE = "--lang", "ATTN_TUI_LANG"


class LanguageError(InputError):
    """A language that the program does not have."""


def of_words(words: Sequence[str], environment: Mapping[str, str]) -> Language:
    """Return the language of a command line: of its option, of the environment, or else the locale's.

    Raise LanguageError if the one that decides is not one of CHOICES.
    """
    for word, after in pairwise([*words, ""]):
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name == OPTION:
            return chosen(value if equals else after, environment, OPTION)
    return chosen(environment.get(VARIABLE) or AUTO, environment, VARIABLE)


def chosen(text: str, environment: Mapping[str, str], name: str = OPTION) -> Language:
    """Return the language of one of CHOICES; raise LanguageError, which names where it stood, for another text."""
    for language in LANGUAGES:
        if text == language:
            return language
    if text == AUTO:
        return of_locale(environment)
    raise LanguageError("{option}: {reason}", option=name, reason=not_one_of(text, CHOICES))


def of_locale(environment: Mapping[str, str]) -> Language:
    """Return the language of the locale, read as gettext does: Chinese of any region is Simplified Chinese.

    LC_ALL, LC_MESSAGES and LANG name the locale, the first that is set; LANGUAGE lists languages, unless it is C.
    """
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), "C")
    if re.fullmatch(r"(C|POSIX)(\..*)?", locale):
        return "en"
    for wanted in (*environment.get("LANGUAGE", "").split(":"), locale):
        for language in LANGUAGES:
            if re.split(r"[_.@-]", wanted.lower())[0] == language:
                return language
    return "en"
