"""Sentences that explain the results of a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.attention.formats import FORMATS
from ....core.attention.worked_example import Example
from ....core.statistics.catalogue import DEAD, UNIFORM
from ...views.glyphs import Glyphs
from ...views.numbers import percent, short

if TYPE_CHECKING:  # which loads NumPy
    from ....core.attention.worked_example import WorkedExample

_SMALL = 0.1  # norm of the Jacobian below which gradients are small; the largest norm is 1/2


def softmax_sentence(
    example: Example, names: Sequence[str], sides: Sequence[WorkedExample], remark: str, glyphs: Glyphs
) -> str:
    """Return "Unscaled, the largest weight is > 99.9 % and p(1−p) at most 8.32e−7: gradients vanish. …"."""
    a, b = sides
    who = "Unscaled" if names[0] == "unscaled" else f"With × {short(a.multiplier, glyphs)}"
    parts = [remark] if remark else []
    parts.append(f"{who}, the largest weight is {_facts(a, glyphs, 'p(1−p) at most ')}.")
    if a.multiplier == b.multiplier:
        parts.append("A scale of 1 changes nothing." if b.multiplier == 1 else "With both scales they are the same.")
    else:
        parts.append(f"With × {short(b.multiplier, glyphs)}, they are {_facts(b, glyphs)}.")
    if example.temperature != 1:
        parts.append(_of_temperature(example.temperature, b.multiplier, glyphs))
    if example.shift:
        parts.append(_of_shift(example.shift, max(a.moved, b.moved), glyphs))
    return " ".join(parts)


def naive_note(number_format: str) -> str:
    """Return what naive means, and where it overflows."""
    form = FORMATS[number_format]
    return f"naive: exp(x), unshifted; {form.word} overflows above x = {form.exp_limit:.2f}."


def _facts(s: WorkedExample, glyphs: Glyphs, name: str = "") -> str:
    """Return the largest weight, the largest p(1−p), and what that means for gradients."""
    if s.jacobian_norm == 0:
        then = "gradients are zero"
    elif s.jacobian_norm < DEAD:
        then = "gradients vanish"
    else:
        then = "gradients are small" if s.jacobian_norm < _SMALL else "gradients flow"
    even = ", and weights are nearly uniform" if s.entropy_fraction > UNIFORM else ""
    return f"{percent(s.max_weight)} and {name}{short(max(s.complement), glyphs)}: {then}{even}"


def _of_temperature(temperature: float, multiplier: float, glyphs: Glyphs) -> str:
    if math.isclose(temperature * multiplier, 1, rel_tol=1e-12):
        return f"T {short(temperature, glyphs)} changes the unscaled logits as the scale alone does."
    effect = "closer to each other" if temperature > 1 else "further apart"
    return f"T {short(temperature, glyphs)} brings all logits {effect}."


def _of_shift(shift: float, moved: float, glyphs: Glyphs) -> str:
    """Return that a shift changes no weight, and by how much rounding does."""
    what = f"Adding {short(shift, glyphs)} to every logit"
    if moved == 0:
        return f"{what} changes no weight: the factor e^shift cancels."
    return f"{what} changes weights by at most {short(moved, glyphs)}, through rounding."
