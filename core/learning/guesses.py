"""Read guesses as people type them: `8`, `sqrt(d_k)`, `12 %`, `none`. This module does not need NumPy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from ..errors import InputError, ParameterError
from ..formula import function_of, parse
from ..message import message
from .step import Compare, Unit, number_text

LONGEST = 40  # characters of a guess

_ACCEPTED: dict[Unit, str] = {
    "number": message("a number or a formula, such as 20, 1/3 or sqrt(2)"),
    "share": message("a percentage, such as 12, 12 % or 100/8"),
    "count": message("a number or a formula, such as 20, 1000000 or 2^10"),
}
_WORDS = {message("none"): 0.0, message("zero"): 0.0}
_WORDS_OF_SHARES = {message("half"): 0.5, message("all"): 1.0}
_CONSTANTS = {"pi": math.pi, "e": math.e}
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: " "}
_SPELLINGS = (  # other ways to write what a formula has
    (re.compile(r"(?<=\d)[ ,_](?=\d{3}(?!\d))"), ""),  # between thousands
    (re.compile(r"^\s*[~≈=]+"), ""),
    (re.compile("π"), "pi"),
    (re.compile("²"), "^2"),
    (re.compile("³"), "^3"),
)
_PERCENT = re.compile(r"\s*(%|per ?cent)\s*$")


class GuessError(InputError):
    """A text that is not a guess."""


def accepted(unit: Unit) -> str:
    """Return what a guess of this unit may look like, in words."""
    return _ACCEPTED[unit]


def parse_guess(
    text: str, unit: Unit, given: Mapping[str, float | str] | None = None, say: Callable[[str], str] = str
) -> float:
    """Return the number that a text means; percentages become shares. Raise GuessError if it means none.

    A formula may contain the numbers of `given` by their names. Words count in English and as `say` says them.
    """
    words = text.strip().translate(_FULL_WIDTH)
    named = _WORDS | (_WORDS_OF_SHARES if unit == "share" else {})
    for word, value in named.items():
        if words.casefold() in (word, say(word).casefold()):
            return value
    words, percent = _PERCENT.subn("", words)
    names = _CONSTANTS | {name: float(value) for name, value in (given or {}).items() if not isinstance(value, str)}
    for pattern, spelling in _SPELLINGS:
        words = pattern.sub(spelling, words)
    try:
        number = _value(words, names) if len(text) <= LONGEST and not (percent and unit == "count") else math.nan
    except (ParameterError, ArithmeticError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise GuessError("must be {accepted}, not {text!r}", accepted=accepted(unit), text=text.strip())
    return number / 100 if percent or unit == "share" else number


def parse_choice(text: str, choices: Sequence[str], say: Callable[[str], str] = str) -> int:
    """Return the number, from 1, of the choice that a text gives or whose words contain it; raise GuessError."""
    wanted = text.strip().translate(_FULL_WIDTH).casefold()
    if wanted.isdecimal():
        found = [int(wanted)] if 1 <= int(wanted) <= len(choices) else []
    else:
        found = [place for place, choice in enumerate(choices, 1) if wanted and wanted in say(choice).casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(map(str, found))
        raise GuessError(
            "{text!r} could be {numbers}; type more of it, or a number", text=text.strip(), numbers=numbers
        )
    raise GuessError(
        "must be a number from 1 to {count}, or words of a cause, not {text!r}", count=len(choices), text=text.strip()
    )


def _value(text: str, names: Mapping[str, float]) -> float:
    """Return the value of a formula of these names."""
    tree = parse(text, [*names], "guess")
    return float(function_of(tree, {name: name for name in names})(SimpleNamespace(**names)))


CLOSE = 0.05  # relative: a guess this near is close
NEAR_SHARE = 0.02  # of shares: two percentage points


@dataclass(frozen=True)
class Grade:
    """How far a guess is off."""

    close: bool
    sentence: str


def grade(guess: float, answer: float, compare: Compare, unit: Unit = "number") -> Grade:
    """Tell how far a guess is off: as a ratio, or as a difference where a ratio would mean nothing."""
    values = {"guess": number_text(guess, unit), "answer": number_text(answer, unit)}
    if compare == "ratio" and guess * answer > 0:
        factor = max(guess / answer, answer / guess)
        if factor == 1:
            return Grade(True, message("Your guess, {guess}, is exact.", **values))
        values["factor"] = number_text(factor)
        values["percent"] = number_text(factor - 1, "share", 2)
        if factor <= 1 + CLOSE:
            return Grade(True, message("Your guess, {guess}, is within {percent} of the answer.", **values))
        if guess > answer:
            return Grade(False, message("Your guess, {guess}, is {factor} times the answer.", **values))
        return Grade(False, message("Your guess, {guess}, is too low: the answer is {factor} times that.", **values))
    off = guess - answer
    if off == 0:
        return Grade(True, message("Your guess, {guess}, is exact.", **values))
    if unit == "share":
        values["off"] = number_text(100 * abs(off))
        close = abs(off) <= NEAR_SHARE
        if off > 0:
            return Grade(close, message("Your guess, {guess}, is {off} percentage points too high.", **values))
        return Grade(close, message("Your guess, {guess}, is {off} percentage points too low.", **values))
    values["off"] = number_text(abs(off))
    close = abs(off) <= CLOSE * abs(answer)
    if off > 0:
        return Grade(close, message("Your guess, {guess}, is {off} too high.", **values))
    return Grade(close, message("Your guess, {guess}, is {off} too low.", **values))
