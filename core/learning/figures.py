"""Figures: the numbers that texts speak of, each with where it is measured. This module does not need NumPy.

A figure is data: `compute.read` measures it, with fixed seeds, and adds the exact value where theory has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..claims.claim import FromLab, FromTrial
from ..parameters import Parameters

Unit: TypeAlias = Literal["number", "share", "count"]  # a share is shown in per cent


@dataclass(frozen=True)
class Quotient:
    """One source over another that is measured in the same draws, or has no error."""

    one: FromLab | FromTrial
    other: FromLab | FromTrial


Source: TypeAlias = FromLab | FromTrial | Quotient


@dataclass(frozen=True)
class Figure:
    """One number: its label in tables, its source and its unit."""

    label: str
    source: Source
    unit: Unit = "number"
    digits: int = 3  # in texts


def lab(label: str, statistic: str, parameters: Parameters, scaled: bool = False, unit: Unit = "number") -> Figure:
    """Return the figure of a statistic of the Lab."""
    return Figure(label, FromLab(statistic, parameters, scaled), unit)


def trial(label: str, name: str, *arguments: Any, part: str = "", unit: Unit = "number") -> Figure:
    """Return the figure of a trial."""
    return Figure(label, FromTrial(name, arguments, part), unit)
