"""Texts with their numbers filled in. This module does not need NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..claims.claim import Reading, figure_text
from ..message import message
from .figures import Figure, Unit

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
    if reading.measured is None or reading.measured.value is None:
        return "–"
    value, stderr = reading.measured
    if not stderr or value is None:
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
    figures: Mapping[str, Figure] | None = None,
    readings: Mapping[str, Reading] | None = None,
) -> str:
    """Return a text with its placeholders replaced; those of figures without a reading become `PENDING`."""
    values = {name: value if isinstance(value, str) else number_text(value) for name, value in given.items()}
    for name, figure in (figures or {}).items():
        found = (readings or {}).get(name)
        values[name] = PENDING if found is None else number_text(best(found), figure.unit, figure.digits)
    return message(text, **values)
