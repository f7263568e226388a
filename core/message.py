"""Messages: texts in English that keep their template, so that an interface can say them in another language.

Texts from outside are names and values in files, names of files, what a configuration says. A terminal obeys control
characters, and in a program a comment ends with its line. So every reader cleans what it reads, and the type says so:
a field of type `Plain` has text from outside that is safe to print, and that is never translated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from string import Formatter
from typing import Any, NamedTuple, Self


class Plain(str):
    """Text on one line, of printable characters, that no language has; only `plain` and `short` make one."""

    __slots__ = ()


_LONGEST = 120  # characters of a value in a message


def plain(text: object) -> Plain:
    """Return the text on one line; what is not printable is escaped: control characters, bidi marks, line ends."""
    line = str(text)
    return Plain(line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line))


def short(text: object, most: int = _LONGEST) -> Plain:
    """Return the text as `plain` does, cut to `most` characters."""
    line = plain(text)
    return line if len(line) <= most else Plain(line[: most - 1] + "…")


# What the runner of a build obeys in its log: `::error::` where a line begins, and `##[error]` anywhere.
_COMMAND = re.compile(r"(?:^[^\S\n]*:(?=:)|#(?=#\w*\[))", re.MULTILINE)


def without_commands(text: str, annotates: bool = False) -> str:
    """Return lines with escapes for what the runner of a build would obey, unless they are to be annotations.

    The escapes are those of strings in JSON and in Python: what a program reads stays the same.
    """
    return _COMMAND.sub(lambda match: match[0] if annotates and match[0] == ":" else _escaped(match[0]), text)


def _escaped(text: str) -> str:
    return f"{text[:-1]}\\u{ord(text[-1]):04x}"


def quoted(text: object) -> str:
    """Return a name from a file, quoted and short enough for a message."""
    return f"'{short(text, 80)}'"


SENSE = "|"  # between a text and its sense, in the template of `in_sense`


class Message(str):
    """An English text, and the template and the values it was made of; `message` and `counted` make one.

    It is a text like any other. What is cut out of it or joined to it is a plain text, which no language has:
    a sentence is one message, its parts are values.
    """

    template: str
    values: dict[str, object]
    plural: tuple[str, int] | None = None  # the template for other numbers than one, and the number

    def __new__(cls, text: str) -> Self:
        """Return the message that is its own template."""
        made = super().__new__(cls, text)
        made.template, made.values = text, {}
        return made

    def __str__(self) -> str:
        """Return the message itself: an error of this message is said in any language."""
        return self


def message(template: str, /, **values: object) -> Message:
    """Return a template with its placeholders replaced: `{width}` by `width=…`.

    Without values, braces stand for themselves. Values may be messages; all others are cleaned, as `plain` does.
    """
    text = template.format(**values) if values else template
    made = Message(_CLEAN.vformat(template, (), values) if values and not text.isprintable() else text)
    made.template, made.values = template, values
    return made


class _Clean(Formatter):
    """Fills in a template; values that are not messages are cleaned."""

    def format_field(self, value: Any, format_spec: str) -> str:
        text = format(value, format_spec)
        return text if isinstance(value, Message) else plain(text)


_CLEAN = _Clean()


def counted(one: str, many: str, number: int, /, **values: object) -> Message:
    """Return the template for a number of things: `one` for 1; `{number}` may be in both."""
    made = message(one if number == 1 else many, number=number, **values)
    made.template, made.plural = one, (many, number)
    return made


def in_sense(text: str, sense: str) -> Message:
    """Return a text that another language says differently in another sense: `saturation`, a status or a ratio."""
    made = Message(text)
    made.template = f"{text}{SENSE}{sense}"
    return made


_SYMBOL = re.compile(r"[okpqvz]\b|[a-z]_")  # where a text begins with the symbol of a quantity


def sentence_case(text: str) -> Message:
    """Return the text with a capital first letter, unless that is a symbol; other languages have it as it is."""
    made = Message(text if _SYMBOL.match(text) else text[:1].upper() + text[1:])
    made.template, made.values = "{text}", {"text": text}
    return made


def reason_of(text: str, label: str) -> Message:
    """Return what a text says after `label: `, or the whole text; of a message, also in another language."""
    made = Message(text.removeprefix(f"{label}: "))
    if isinstance(text, Message):
        made.template, made.values = "{text}" if made == text else "{text:reason}", {"text": text}
    return made


def name(text: str) -> Message:
    """Return a name, which is the same in every language even if it is a word."""
    made = Message(text)
    made.template, made.values = "{name}", {"name": _Name(text)}
    return made


class _Name(NamedTuple):
    """A name as a value of a message: no text, so that no language has it."""

    text: str

    def __str__(self) -> str:
        return self.text


def joined(parts: Iterable[str], between: str = " ") -> Message:
    """Return texts as one message; in another language, each is said by itself."""
    values = {f"part{number}": part for number, part in enumerate(parts)}
    return message(between.join(f"{{{name}}}" for name in values), **values)
