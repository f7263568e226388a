"""Numbers in tables and sentences: three or four digits; in tables, of constant width and aligned at the point."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...core.statistics.measurement import Estimate
from ..language.cells import to_left
from .glyphs import Glyphs

POINT = 5  # cells before the decimal point: a sign and four digits
VALUE = POINT + 6  # cells of a value with its point and five decimals
STDERR = 6


def aligned(value: float | None, glyphs: Glyphs) -> str:
    """Return a value in VALUE cells with its point at cell POINT; out of range, with a power of ten."""
    if value is None:
        return ((glyphs.say("—")).rjust(POINT)).ljust(VALUE)
    size = abs(value)
    if size >= 9_999.5 or 0 < size < 0.000_095:
        return signed(power_of_ten(value, 3), glyphs).rjust(VALUE - 1).ljust(VALUE)
    if value == 0:
        return "0".rjust(POINT).ljust(VALUE)
    whole, _, decimals = f"{value:.{_decimals(size)}f}".partition(".")
    return signed(whole.rjust(POINT) + ("." + decimals if decimals else ""), glyphs).ljust(VALUE)


def aligned_share(value: float | None, glyphs: Glyphs) -> str:
    """Return a share in per cent in VALUE cells, aligned as `aligned` does, with its sign beside it; 0 is `none`."""
    if value == 0:
        return to_left(" " * (POINT - 1) + glyphs.say("none"), VALUE)  # where a digit stands before the point
    text = aligned(None if value is None else 100 * value, glyphs)
    if value is None or "e" in text:
        forms = (f"{text.strip()} %", f"{text.strip()}%") if value is not None else ()
        return next((form.rjust(VALUE) for form in forms if len(form) <= VALUE), text)
    whole, point, decimals = text.rstrip().partition(".")
    decimals = f"{abs(100 * value):.{min(len(decimals), VALUE - POINT - 3)}f}".partition(".")[2]
    return f"{whole}{point}{decimals} %".ljust(VALUE)


def on_the_point(values: Sequence[float | None], decimals: int, glyphs: Glyphs) -> list[str]:
    """Return the values aligned at the point, with about four digits and at most `decimals` decimals.

    If all are below 0.1, at most two decimals more.
    """
    most = decimals + 2 * (max((abs(value) for value in values if value is not None), default=1) < 0.1)
    parts = [signed(_plain(value, most), glyphs).partition(".") for value in values]
    left, right = max(len(whole) for whole, _, _ in parts), max(len(dot + rest) for _, dot, rest in parts)
    return [glyphs.say(whole).rjust(left) + (dot + rest).ljust(right) for whole, dot, rest in parts]


def lined_up(texts: Sequence[str]) -> list[str]:
    """Return the texts of numbers, padded so that their points are in one line if the column is aligned right."""
    after = [len(dot + rest) for _, dot, rest in (text.partition(".") for text in texts)]
    return [text + " " * (max(after) - count) for text, count in zip(texts, after, strict=True)]


def _plain(value: float | None, most: int) -> str:
    size = abs(value or 0)
    if value is None:
        return "—"
    if size >= 99_999.5 or 0 < size < 0.5 * 10**-most:
        return power_of_ten(value, 2)
    return f"{value:.{min(max(3 - math.floor(math.log10(size)), 0), most)}f}" if size else "0"


def short(value: float | None, glyphs: Glyphs) -> str:
    """Return a value with three digits in as few cells as possible, for sentences, axes and status lines."""
    if value is None:
        return glyphs.say("—")
    size = abs(value)
    if size >= 9_999.5 or 0 < size < 0.000_95:
        return signed(power_of_ten(value, 2), glyphs)
    decimals = max(0, 2 - (math.floor(math.log10(size)) if size else 0)) if size < 100 else 0
    text = f"{value:.{min(decimals, 4)}f}"
    return signed(text.rstrip("0").rstrip(".") if "." in text else text, glyphs)


def short_in_unit(value: float, unit: str, glyphs: Glyphs) -> str:
    """Return a value as `short` does; a share as a short percentage, 0 as `none`."""
    if unit != "share":
        return short(value, glyphs)
    return percent(value) if value else glyphs.say("none")


def error(stderr: float | None, glyphs: Glyphs) -> str:
    """Return a standard error with two digits in STDERR cells; blank for None."""
    if stderr is None:
        return " " * STDERR
    if stderr == 0:
        return "0".ljust(STDERR)
    if stderr >= 9_950 or stderr < 0.000_95:
        text = power_of_ten(stderr, 1)
        return signed(text if len(text) <= STDERR else power_of_ten(stderr, 0), glyphs).ljust(STDERR)
    if stderr < 0.001:
        return "0.0010"
    decimals = max(0, 1 - math.floor(math.log10(stderr)))
    return f"{stderr:.{decimals}f}"[:STDERR].ljust(STDERR)


def spread(estimate: Estimate, factor: int, glyphs: Glyphs) -> str:
    """Return ` ±` and `factor` times the standard error; `±≥` if it is at least that, blank if there is none.

    In ASCII that is ` +-` or `+->`.
    """
    sign = glyphs.say("±")
    if estimate.stderr is None:
        return " " * (1 + len(sign)) + error(None, glyphs)
    rough = ">" if glyphs.ascii else "≥"
    return (f"{sign}{rough}" if estimate.is_rough else f" {sign}") + error(factor * estimate.stderr, glyphs)


def percent(share: float) -> str:
    """Return a share as a short percentage: `12 %`, `0.3 %`; `0 %` and `100 %` only if exact."""
    value = 100 * share
    if value in (0, 100):
        return f"{value:.0f} %"
    if value < 0.1:
        return "< 0.1 %"
    if value > 99.9:
        return "> 99.9 %"
    return f"{value:.1f} %" if value < 9.95 or value > 99 else f"{value:.0f} %"


def power_of_ten(value: float, digits: int) -> str:
    """Return `1.234e7` or `-5.6e-9`, with the shortest exponent."""
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def power(exponent: float, glyphs: Glyphs) -> str:
    """Return a power of ten: `10⁻¹²`, or `1e-12` in ASCII."""
    if exponent == 0:
        return "1"
    number = f"{exponent:g}"
    if glyphs.ascii:
        return f"1e{number}"
    return "10" + number.translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _decimals(size: float) -> int:
    """Return how many decimals, at most five, show about four digits."""
    if size < 0.095:
        return 5
    return 4 if size < 1 else 3 - math.floor(math.log10(size))


def minus_signs(text: str, glyphs: Glyphs) -> str:
    """Return a sentence with minus signs instead of the hyphens before its numbers; unchanged in ASCII."""
    return text if glyphs.ascii else re.sub(r"(?<!\S)-(?=\d)", "−", text)


def signed(text: str, glyphs: Glyphs) -> str:
    """Return a number's text with minus signs instead of hyphens; unchanged in ASCII."""
    return text if glyphs.ascii else text.replace("-", "−")
