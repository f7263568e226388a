"""What the numbers of a softmax mean, in sentences that are computed from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.attention.formats import FORMATS
from ...core.attention.handful import Handful
from ...core.statistics.catalogue import DEAD
from .glyphs import Glyphs
from .numbers import percent, short
from .verdict import UNIFORM

if TYPE_CHECKING:  # which loads NumPy
    from ...core.attention.steps import Steps

_LITTLE = 0.1  # below this norm of the Jacobian little gradient passes; the largest there is is 1/2


def softmax_sentence(handful: Handful, sides: Sequence[Steps], remark: str, glyphs: Glyphs) -> str:
    """Unscaled, the largest weight is > 99.9 % and p(1−p) at most 8.32e−7: almost no gradient passes. …"""
    unscaled, scaled = sides
    parts = [remark] if remark else []
    parts.append(f"Unscaled, the largest weight is {_facts(unscaled, glyphs, 'p(1−p) at most ')}.")
    if scaled.multiplier == 1:
        parts.append("A scale of 1 leaves that as it is.")
    else:
        parts.append(f"Scaled × {short(scaled.multiplier, glyphs)}, they are {_facts(scaled, glyphs)}.")
    if handful.temperature != 1:
        parts.append(_of_temperature(handful.temperature, scaled.multiplier, glyphs))
    if handful.shift:
        parts.append(_of_shift(handful.shift, max(unscaled.moved, scaled.moved), glyphs))
    return " ".join(parts)


def naive_note(number_format: str) -> str:
    """What is meant by naive, and where it ends."""
    form = FORMATS[number_format]
    return f"naive: exp(x) with nothing subtracted; {form.word} overflows above x = {form.exp_limit:.2f}."


def _facts(s: Steps, glyphs: Glyphs, name: str = "") -> str:
    """The largest weight, the largest p(1−p), and what that means for a gradient."""
    if s.jacobian_norm == 0:
        then = "no gradient passes"
    elif s.jacobian_norm < DEAD:
        then = "almost no gradient passes"
    else:
        then = "little gradient passes" if s.jacobian_norm < _LITTLE else "gradient passes"
    even = ", with weights nearly uniform" if s.entropy_fraction > UNIFORM else ""
    return f"{percent(s.max_weight)} and {name}{short(float(s.complement.max()), glyphs)}: {then}{even}"


def _of_temperature(temperature: float, multiplier: float, glyphs: Glyphs) -> str:
    if math.isclose(temperature * multiplier, 1, rel_tol=1e-12):
        return f"T {short(temperature, glyphs)} does to the unscaled logits what the scale alone does."
    effect = "closer to each other" if temperature > 1 else "further apart"
    return f"T {short(temperature, glyphs)} brings all logits {effect}."


def _of_shift(shift: float, moved: float, glyphs: Glyphs) -> str:
    """That no weight follows a shift, and how exactly that is so."""
    what = f"{short(abs(shift), glyphs)} {'more' if shift > 0 else 'less'} in every logit"
    if moved == 0:
        return f"{what} moves no weight: e to that power divides out."
    return f"{what} moves no weight by more than {short(moved, glyphs)}, which is rounding."
