"""What typing into a field does: every accepted text takes effect, a refused one restores what stood before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from ....core.errors import ParameterError, did_you_mean
from ....core.field import Field
from ....core.formula import LONGEST
from ....core.parameters import UNSCALED, Value, choice_word
from ....core.scales import SCALE_RULES, scale_rule
from ....core.setting_text import is_number

LONGEST_NUMBER = 40  # characters; a held key types many
LONGEST_PATH = 4096  # characters; no system accepts a longer one


class Draft(NamedTuple):
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
        first = max(first, 0)
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


_LONGEST = {"scale": LONGEST, "against": LONGEST}  # characters of a field, if not LONGEST_NUMBER

CHARACTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-+_/()*^,= "  # those that a field takes

Say: TypeAlias = Callable[[str], str]
V = TypeVar("V")
WithValue: TypeAlias = Callable[[V, str, Value], V]

_ONCE_ACCEPTED = ("model",)  # a choice that sets many fields: each letter typed would set them all


class FieldEntry(NamedTuple, Generic[V]):
    """The text being typed into a field, and what it sets, or why it is not accepted."""

    field: str
    text: str
    before: V  # restored if typing is cancelled, or the text refused
    value: V  # what is set now
    objection: str | None = None
    pending: V | None = None  # what the text sets once it is accepted, if not at once


def typed(
    entry: FieldEntry[V] | None, now: V, field: Field, text: str, with_value: WithValue[V], say: Say = str
) -> FieldEntry[V]:
    """Return the entry after a text was typed into a field; `now` is what stands before the first one.

    A choice has its names as `say` says them, too. `with_value` sets a value, or raises ParameterError.

    A prefix that was accepted on the way to a refused text leaves no trace: nobody asked for it.
    """
    before = entry.before if entry else now
    try:
        found = with_value(before, field.name, entered(field, text, say))
    except ParameterError as error:
        return FieldEntry(field.name, text[: _longest(field.name)], before, before, str(error))
    if field.name in _ONCE_ACCEPTED:
        return FieldEntry(field.name, text, before, before, pending=found)
    return FieldEntry(field.name, text, before, found)


def entered(field: Field, text: str, say: Say = str) -> Value:
    """Return the value of a typed text; a choice may be shortened. Raises ParameterError.

    A scale may be a formula; a name that contains the text comes first.
    """
    if len(text) > _longest(field.name):
        raise ParameterError(
            "{label}: must be at most {most} characters", label=field.label, most=_longest(field.name)
        )
    if field.kind == "choice":
        return _chosen(field, text, field.choices, say)
    if field.kind == "setting" and not is_number(text) and not any(sign in text for sign in "=,"):
        with suppress(ParameterError):
            return _chosen(field, text, [UNSCALED, *SCALE_RULES], say)
    return field.parse(text)


def _chosen(field: Field, text: str, choices: Sequence[str], say: Say) -> str:
    """Return the choice that a text names, or its formula; raise ParameterError if there is none."""
    wanted = text.strip().casefold()
    names_said = {value: (*names_of(field, value), *map(say, names_of(field, value))) for value in choices}
    named = {value: [name.casefold() for name in names] for value, names in names_said.items()}
    tests = (str.startswith, str.__contains__)
    for test in tests if wanted else ():
        for value, names in named.items():
            if any(test(name, wanted) for name in names):
                return value
    if field.kind == "setting":
        return str(field.parse(text))
    if field.beyond is not None and field.beyond(text.strip()):
        return text.strip()
    meant = did_you_mean(wanted, [name for names in named.values() for name in names])
    raise ParameterError(
        "{label}: no choice contains {text!r}{meant}; ↑ and ↓ step through all",
        label=field.label,
        text=text,
        meant=meant,
    )


def _longest(name: str) -> int:
    """Return the most characters that a field takes."""
    return _LONGEST.get(name, LONGEST_NUMBER)


def names_of(field: Field, value: str) -> tuple[str, ...]:
    """Return all names of a choice: its value, its word, and for a scale rule its formula and short name."""
    if field.name not in ("scale", "against") or value == UNSCALED:
        return value, choice_word(value)
    rule = scale_rule(value)
    return (value, rule.label, rule.formula, *filter(None, [rule.short]))
