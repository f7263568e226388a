"""Field: the declaration of one setting, which becomes an option, a line of a panel, its help and a key of JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from .errors import ParameterError
from .formula import FormulaError
from .message import message
from .scales import FORMULA_ACCEPTED

T = TypeVar("T")
Value: TypeAlias = int | float | str
_BINARY = {"k": 2**10, "M": 2**20}  # contexts are powers of two: 128k is 131072


@dataclass(frozen=True)
class Field:
    """One setting: its names, its help and the values it accepts."""

    name: str  # the attribute of the settings and the key in JSON
    label: str  # in the parameter panel
    symbol: str  # in formulas
    help: str  # a sentence or two
    kind: Literal["integer", "real", "choice", "setting"]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    group: str = ""  # fields of one group are shown together
    step: float | Literal["double"] = 1  # "double": the next power of two
    least: float = 0  # the smallest size of a number that is not 0
    beyond: Callable[[str], bool] | None = None  # whether it accepts a text that is not a choice; may raise
    applies: Callable[[Any], bool] = lambda _: True  # whether it has an effect with these settings
    called: str = ""  # its option, if that is not its name

    @property
    def option(self) -> str:
        """The command-line option, as in --d-k."""
        return self.called or "--" + self.name.replace("_", "-")

    @property
    def accepted(self) -> str:
        """The accepted values, in words."""
        if self.kind == "choice":
            choices = ", ".join(self.choices)
            if self.beyond:
                return message(
                    "one of {choices}, or a formula of {formula}", choices=choices, formula=FORMULA_ACCEPTED
                )
            return message("one of {choices}", choices=choices)
        number = message("a whole number") if self.kind == "integer" else message("a number")
        if math.isinf(self.low):
            return number
        least = message(" (0 or at least {least:g} in size)", least=self.least) if self.least else ""
        low, high = self.low, format_bound(self.high)
        return message("{number} from {low:g} to {high}{least}", number=number, low=low, high=high, least=least)

    def check(self, value: object) -> None:
        """Raise ParameterError unless this value is accepted."""
        if self.kind == "choice":
            accepted = value in self.choices
            if not accepted and self.beyond is not None and isinstance(value, str):
                accepted = self.beyond(value)
        elif isinstance(value, bool) or not isinstance(value, int if self.kind == "integer" else (int, float)):
            accepted = False
        else:
            accepted = self.low <= value <= self.high and math.isfinite(value) and not 0 < abs(value) < self.least
        if not accepted:
            raise self.refused(value)

    def parse(self, text: str) -> Value:
        """Return the value of typed text; raise ParameterError if it is not accepted."""
        text = text.strip()
        value: Value
        try:
            if self.kind in ("integer", "real") and (not text.isascii() or "_" in text):
                raise self.refused(text)  # Python reads ４２ and 1_000; neither is a number elsewhere
            if self.kind == "integer":
                value = whole_number(text)
            elif self.kind == "real":
                value = float(text)
            else:
                value = text
            self.check(value)
        except FormulaError:
            raise
        except ValueError as error:
            raise self.refused(text) from error
        return value

    def refused(self, value: object) -> ParameterError:
        """Return the error that says what is accepted instead of this value."""
        return ParameterError(
            "{label}: must be {accepted}, not {value!r}", label=self.label, accepted=self.accepted, value=value
        )

    def format(self, value: Value) -> str:
        """Return the text to type for a value; `parse` reads it back unchanged."""
        if self.kind != "real":
            return str(value)
        short = f"{value:g}"
        return short if float(short) == value else repr(value)

    def stepped(self, value: Value, direction: Literal[-1, 1]) -> Value:
        """Return the next value up or down, or the value itself at a bound. Choices wrap around."""
        if self.kind == "choice":
            return next_of(self.choices, str(value), direction)
        number = float(value)
        if self.step == "double":
            number = next_power_of_two(number, direction)
        else:
            # Decimal steps stay on their grid: 0.1 + 0.1 + 0.1 is 0.3.
            at = round(number / self.step, 6)
            number = (math.floor(at) + 1 if direction > 0 else math.ceil(at) - 1) * self.step
            number = float(f"{number:.10g}")
        number = min(max(number, self.low), self.high)
        return int(number) if self.kind == "integer" else number


def differing(fields: Iterable[Field], settings: object, usual: object) -> dict[str, Any]:
    """Return the values of settings that differ from the usual ones, by the names of their fields."""
    values = {field.name: (getattr(settings, field.name), getattr(usual, field.name)) for field in fields}
    return {name: value for name, (value, other) in values.items() if value != other}


def words_of(fields: Iterable[Field], values: Mapping[str, Value]) -> list[str]:
    """Return the options of the fields that have a value, with it."""
    return [
        word for field in fields if field.name in values for word in (field.option, field.format(values[field.name]))
    ]


def whole_number(text: str) -> int:
    """Return the number that a text such as 64, 8k (8192) or 1M (1048576) means; raise ValueError if none."""
    return int(text[:-1]) * _BINARY[text[-1]] if text[-1:] in _BINARY else int(text)


def next_of(values: Sequence[T], value: T, step: int = 1) -> T:
    """Return the value `step` places after this one, around the ends; of a value that is not there, an end."""
    at = values.index(value) + step if value in values else -(step < 0)
    return values[at % len(values)]


def format_bound(bound: float) -> str:
    """Write a bound: whole numbers in full, others in %g."""
    return f"{bound:.0f}" if bound == int(bound) else f"{bound:g}"


def next_power_of_two(number: float, direction: Literal[-1, 1]) -> float:
    """Return the nearest power of two strictly above or below a number; above 0 it is 1, and below 0."""
    if number <= 0:
        return 1.0 if direction > 0 else 0.0
    if direction > 0:
        return 2.0 ** (math.floor(math.log2(number)) + 1)
    return 2.0 ** (math.ceil(math.log2(number)) - 1)
