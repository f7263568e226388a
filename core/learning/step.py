"""What steps of the tour and questions consist of: texts, figures, numbers in words and guesses. Needs no NumPy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

from ..errors import InputError, ParameterError
from ..formula import function_of, parse
from ..message import joined, message
from ..parameters import Parameters
from ..training.settings import Race
from .sources import FromLab, FromTrial, Quotient, Reading, Source, figure_text

Unit: TypeAlias = Literal["number", "share", "count"]  # a share is shown in per cent


@dataclass(frozen=True)
class TourFigure:
    """One number: its label in tables, its source and its unit."""

    label: str
    source: Source
    unit: Unit = "number"
    digits: int = 3  # in texts


def enough(d_k: int, n_keys: int = 128, **others: float | str) -> Parameters:
    """Return parameters with enough draws for three digits within a tenth of a second or two."""
    rows = max(8, min(64, 2**22 // (32 * max(d_k, n_keys))))
    return Parameters(d_k, n_keys, rows, 128, **others)  # pyright: ignore[reportArgumentType]


def lab(
    label: str, statistic: str, parameters: Parameters, scaled: bool = False, unit: Unit = "number"
) -> TourFigure:
    """Return the figure of a statistic of the Lab."""
    return TourFigure(label, FromLab(statistic, parameters, scaled), unit)


def trial(label: str, name: str, *arguments: Any, part: str = "", unit: Unit = "number") -> TourFigure:
    """Return the figure of a trial."""
    return TourFigure(label, FromTrial(name, arguments, part), unit)


def threshold(label: str, n_keys: int) -> TourFigure:
    """Return √(2 ln n), the standard deviation of logits at which softmax over n keys saturates (Derrida 1981)."""
    return TourFigure(label, Reading(None, math.sqrt(2 * math.log(n_keys))))


def over_scaled(label: str, statistic: str, parameters: Parameters) -> TourFigure:
    """Return the figure of a statistic, unscaled over scaled."""
    scaled = FromLab(statistic, parameters, scaled=True)
    return TourFigure(label, Quotient(replace(scaled, scaled=False), scaled))


Compare = Literal["ratio", "difference"]


@dataclass(frozen=True)
class UsualGuess:
    """A wrong answer that many give, and what it would mean."""

    value: str  # as it would be typed: a number, or a formula of the step's `given`
    meaning: str  # a sentence; may hold {guess}, and names of `given` and `figures`


@dataclass(frozen=True)
class Guess:
    """A question that has a number for its answer, asked before the answer is shown."""

    question: str
    figure: str  # the name of the figure that answers it
    usual: tuple[UsualGuess, ...]
    compare: Compare = "ratio"  # how the distance of a guess is told


# Where the app shows a pane: its tab, and the view of that tab if it has several (tui/panes/catalogue.py).
PLACES = {
    "Rules": joined(["Scales", message("rules")], " · "),
    "Capture": joined(["Model", message("capture")], " · "),
}


@dataclass(frozen=True)
class PaneState:
    """A pane in a certain state, which shows what a text says."""

    pane: str  # its title
    what: str  # what to look at there, a sentence
    parameters: Parameters = field(default_factory=Parameters)
    scores: tuple[float, ...] = ()  # the row of the Softmax pane
    head: tuple[int, int] | None = None  # layer and head in the Capture pane, of the sample
    item: str = ""  # the item of the Learn pane
    race: Race | None = None  # of the Train pane
    statistic: str = ""  # the row of the Lab's table to select

    @property
    def place(self) -> str:
        """The tab that shows it, and the view of that tab."""
        return PLACES.get(self.pane, self.pane)


@dataclass(frozen=True)
class TourStep:
    """One step of the tour: an introduction, a question, and after a guess the answer, a table and an explanation.

    Texts hold placeholders, such as {d_k}: names of `given`, the values that the step chooses, or of `figures`, which
    are measured.
    """

    id: str
    title: str
    source: str  # the sentence of a study note that it is about, or a paper
    introduction: tuple[str, ...]  # paragraphs; only values of `given` in them
    guess: Guess
    explanation: tuple[str, ...]
    figures: Mapping[str, TourFigure]
    table: tuple[str, ...]  # the names of the figures in the table, in order
    shown: PaneState
    given: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])


@dataclass(frozen=True)
class InterviewQuestion:
    """A question, the answer in 30 seconds, the long one, and the pane that shows the evidence.

    Texts hold placeholders as those of `Step`; `given` and `figures` may be used in all of them but the question.
    """

    id: str
    question: str
    short: str
    long: tuple[str, ...]
    figures: Mapping[str, TourFigure]
    shown: PaneState
    usual: str = ""  # the usual answer, if it is wrong or half right
    verdict: str = ""  # what is wrong with it
    given: Mapping[str, float | str] = field(default_factory=dict[str, "float | str"])


PENDING = "…"  # for a number that is being measured


def number_text(value: float | None, unit: Unit = "number", digits: int = 3) -> str:
    """Return a number with three digits: a share in per cent, a count with separators between thousands."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{number_text(100 * value, 'number', digits)} %"
    if abs(value) >= 1000 and (unit == "count" or abs(value) < 1e6):
        return f"{value:,.0f}".replace("-", "−")
    return figure_text(value, digits).replace("-", "−")


def best(reading: Reading) -> float | None:
    """Return the exact value if it is known, otherwise the measured one."""
    return reading.exact if reading.exact is not None or reading.measured is None else reading.measured.value


def measured_text(reading: Reading, unit: Unit) -> str:
    """Return the measured value with its standard error: `63.9 ± 0.4`; a dash if nothing was measured."""
    if reading.measured is None:
        return "–"
    value, stderr = reading.measured
    if value is None or not stderr:
        return number_text(value, unit, 4)
    factor, sign = (100, " %") if unit == "share" else (1, "")
    decimals = min(max(1 - math.floor(math.log10(factor * stderr)), 0), 9)  # two digits of the error
    return f"{factor * value:,.{decimals}f} ± {factor * stderr:,.{decimals}f}{sign}".replace("-", "−")


def exact_text(reading: Reading, unit: Unit, digits: int = 4) -> str:
    """Return the exact value; a dash if it is not known."""
    return number_text(reading.exact, unit, digits)


def filled(
    text: str,
    given: Mapping[str, float | str],
    figures: Mapping[str, TourFigure] | None = None,
    readings: Mapping[str, Reading] | None = None,
) -> str:
    """Return a text with its placeholders replaced; those of figures without a reading become `PENDING`."""
    values = {name: value if isinstance(value, str) else number_text(value) for name, value in given.items()}
    for name, figure in (figures or {}).items():
        reading = (readings or {}).get(name)
        values[name] = PENDING if reading is None else number_text(best(reading), figure.unit, figure.digits)
    return message(text, **values)


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
        places = [int(wanted)] if 1 <= int(wanted) <= len(choices) else []
    else:
        places = [place for place, choice in enumerate(choices, 1) if wanted and wanted in say(choice).casefold()]
    if len(places) == 1:
        return places[0]
    if places:
        numbers = ", ".join(map(str, places))
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


def usual_guesses(step: TourStep, readings: Mapping[str, Reading] | None = None) -> Mapping[float, str]:
    """Return what each usual wrong answer of a step means, by its value."""
    unit = step.figures[step.guess.figure].unit
    meanings: dict[float, str] = {}
    for usual in step.guess.usual:
        value = parse_guess(usual.value, unit, step.given)
        given = {**step.given, "guess": number_text(value, unit)}
        meanings[value] = filled(usual.meaning, given, step.figures, readings)
    return meanings


def graded(step: TourStep, guess: float, readings: Mapping[str, Reading]) -> Grade | None:
    """Tell how far a guess is off, and what it would mean if many give it; None if there is no answer."""
    figure, answer = step.figures[step.guess.figure], best(readings[step.guess.figure])
    if answer is None:
        return None
    how_far = grade(guess, answer, step.guess.compare, figure.unit)
    for value, meaning in usual_guesses(step, readings).items():
        if not how_far.close and abs(guess - value) <= CLOSE / 2 * abs(value):
            return Grade(False, joined([how_far.sentence, meaning]))
    return how_far
