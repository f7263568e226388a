"""Which language users read: of the option `--lang`, the environment, the settings, or else the locale."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from ...core.errors import InputError

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
OPTION, VARIABLE, SETTING = "--lang", "ATTN_TUI_LANG", "language"


class LanguageError(InputError):
    """A language that the program does not have."""


def chosen(environment: Mapping[str, str], option: str | None = None, setting: str | None = None) -> Language:
    """Return the language: the first of option, environment and setting that is given, otherwise the locale's.

    Raise LanguageError if the one that decides is not one of LANGUAGES.
    """
    for name, text in ((OPTION, option), (VARIABLE, environment.get(VARIABLE) or None), (SETTING, setting)):
        if text is not None:
            return parse_language(text, name)
    return of_locale(environment)


def parse_language(text: str, name: str) -> Language:
    """Return the language of a text; raise LanguageError, which names the option or setting, if it is unknown."""
    for language in LANGUAGES:
        if text.strip().lower() == language:
            return language
    raise LanguageError(f"{name}: must be {' or '.join(LANGUAGES)}, not {text!r}")


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
