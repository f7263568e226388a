"""Where figures come from: the Lab, trials, and quotients and differences of these. Does not need NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ..parameters import Parameters
from ..statistics.measurement import Estimate


class Reading(NamedTuple):
    """A quantity: the measured value, and the exact one if it is known."""

    measured: Estimate | None
    exact: float | None = None


@dataclass(frozen=True)
class FromLab:
    """A statistic of the Lab's unscaled column, or of the scaled one."""

    statistic: str
    parameters: Parameters
    scaled: bool = False


@dataclass(frozen=True)
class FromTrial:
    """The result of a measurement that the Lab does not make, by its name; or a part of it."""

    trial: str
    arguments: tuple[Any, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class Quotient:
    """One source over another that is measured in the same draws, or has no error."""

    one: FromLab | FromTrial
    other: FromLab | FromTrial


@dataclass(frozen=True)
class Difference:
    """One source minus another that is measured independently."""

    one: FromLab | FromTrial
    other: FromLab | FromTrial


Source: TypeAlias = FromLab | FromTrial | Quotient | Difference | Reading  # the last: known without a measurement


def figure_text(number: float, digits: int = 4) -> str:
    """Return a claimed, measured or exact number: whole numbers in full, others with this many digits."""
    if number == round(number) and abs(number) < 1e12:
        return f"{number:.0f}"
    mantissa, _, exponent = f"{number:.{digits}g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
