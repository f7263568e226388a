"""Tell how far off a guess is. This module does not need NumPy."""

from __future__ import annotations

from dataclasses import dataclass

from ..message import message
from .figures import Unit
from .step import Compare
from .wording import number_text

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
