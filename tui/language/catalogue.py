"""The messages of a language: the program is written in English, and catalogues translate it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from gettext import GNUTranslations, NullTranslations
from io import BytesIO
from pathlib import Path
from string import Formatter
from typing import Any

from ...core.message import Message, Plain, name, plain
from .cells import WIDE, to_left, to_middle, to_right
from .chosen import Language

_AROUND = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)
_PADDED = re.compile(r"([<>^]?)(\d+)")
_COLUMNS = re.compile(r":[<>^]?\d+\}")  # in a template with columns
_JOINT = re.compile(  # a space stands between Chinese and a number, a word or a formula
    "(?<=[\u4e00-\u9fff])(?=[-−]?[0-9]|[|‖]?[A-Za-z\u0370-\u03ff∂√]|×)"
    "|(?:(?<=[A-Za-z0-9\u0370-\u03ff%²)])|(?<=[A-Za-z][|‖]))(?=[\u4e00-\u9fff])"
)
# The placeholders of what was typed, of files and of what is to be typed.
_FROM_OUTSIDE = ("path", "file", "folder", "command", "commands", "option", "near", "known", "typed")
_PAD = {"": to_left, "<": to_left, ">": to_right, "^": to_middle}
_NUMBER = re.compile(r"[a-z]?\d{1,2}\. (?=\S)")
_LABEL = re.compile(r"[^:：]*(?:：|: )")
_STOPS = str.maketrans(",.;:?!", "，。；：？！")
_WIDE_STOPS = (*"，。；：？！",)
_BLANK = re.compile("(?<=[，。；：？！]) (?! )|(?<! ) (?=[（，。；：？！）])")  # no space is beside one of these
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_STOP = re.compile(r"\{[^{}]*\}|([,.;:?!])(?: (?! )|$|(?=  ))")  # a column may follow two spaces
_INSIDE = "\uffff"  # between the characters of a text that stays as it is, such as a file name; no text has it
_HAS_WIDE = re.compile(f"[{WIDE}]")
_BESIDE_WIDE = re.compile(rf"(?<=[{WIDE}])([,.;:?!])(?: +|$|(?=[{WIDE}]))|([,.;:]) (?=[{WIDE}])")


def translated(text: str, language: Language) -> str:
    """Return a message in a language, and any other text as it is.

    A message of a template is translated whole; its values are translated if they are messages themselves. Spaces
    around a text are kept, and so are values that no catalogue has: what a user typed, and names of files.
    """
    return _translator(language).text(text).replace(_INSIDE, "")


@lru_cache
def _translator(language: Language) -> _Translator:
    if language == "en":
        return _Translator(NullTranslations())
    po = Path(__file__).parent / language / "LC_MESSAGES" / "attn_tui.po"
    if po.exists():  # in a clone
        from .po import compiled

        return _Translator(GNUTranslations(BytesIO(compiled(po.read_text("utf-8")))))
    with po.with_suffix(".mo").open("rb") as file:
        return _Translator(GNUTranslations(file))


class _Translator(Formatter):
    """Fills in the placeholders of translated templates."""

    def __init__(self, catalogue: NullTranslations) -> None:
        self._catalogue = catalogue

    def text(self, text: str) -> str:
        if isinstance(text, Plain):
            return text
        if not isinstance(text, Message):
            return self._found(text)
        if not text.values:
            found = self._found(text.template)
            return found if found != text.template else text
        if text.plural is not None:
            template = self._catalogue.ngettext(text.template, *text.plural)
        else:
            template = self._found(text.template)
        said = self.vformat(template, (), text.values)
        if template == text.template and _HAS_WIDE.search(said):
            said = self.vformat(_wide_stops(template), (), text.values)
        said = _typeset(said)
        return said if _COLUMNS.search(template) else _JOINT.sub(" ", said)

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return a value as text; one that is a text or an error is translated, and padded in cells."""
        if not isinstance(value, str | Exception):
            return _as_it_is(plain(super().format_field(value, format_spec)))
        text = self.text(value if isinstance(value, Plain) else str(value))
        if not format_spec and text == value and not isinstance(value, Message):
            return _as_it_is(plain(text))
        if format_spec == "reason":  # of core.message.reason_of: what follows the label
            return _LABEL.sub("", text)
        if match := _PADDED.fullmatch(format_spec):
            return _PAD[match[1]](text.replace(_INSIDE, ""), int(match[2]))
        return super().format_field(text, format_spec)

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a value; a text from outside is a name, even if it is a word of the catalogue."""
        value = kwargs[str(key)]
        outside = key in _FROM_OUTSIDE and isinstance(value, str) and not isinstance(value, Message)
        return name(value) if outside else value

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A translation may leave out a value."""

    def _found(self, template: str) -> str:
        before, inner, after = _AROUND.fullmatch(template).groups()  # pyright: ignore
        said = self._catalogue.gettext(inner) if inner else ""
        return f"{before}{said}{'' if after == ' ' and said.endswith(_WIDE_STOPS) else after}"


def _as_it_is(text: str) -> str:
    """Return a text in which nothing is typeset; what stands beside it still is."""
    return _INSIDE.join(text) if _HAS_WIDE.search(text) else text


def _wide_stops(template: str) -> str:
    """Return a template of placeholders without words, such as `{one} ({other}).`, with Chinese punctuation."""
    if any(character.isalpha() for character in _PLACEHOLDER.sub("", template)):
        return template
    stopped = _STOP.sub(lambda match: match[1].translate(_STOPS) if match[1] else match[0], template)
    return stopped.replace("(", "（").replace(")", "）")


def _typeset(text: str) -> str:
    """Return a text in which stops beside wide characters are wide too, without a space after them.

    The stop after a number at the beginning, as in `1. ` or `q1. `, stays.
    """
    number = _NUMBER.match(text)
    if number is not None:
        return number[0] + _typeset(text[number.end() :])
    return _BLANK.sub("", _BESIDE_WIDE.sub(lambda stop: (stop[1] or stop[2]).translate(_STOPS), text))
