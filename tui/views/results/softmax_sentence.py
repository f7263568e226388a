"""Sentences that explain the results of a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.attention.formats import FORMATS
from ....core.attention.worked_example import Example
from ....core.message import joined, message
from ....core.statistics.catalogue import DEAD, UNIFORM
from ..glyphs import Glyphs
from ..numbers import percent, short

if TYPE_CHECKING:  # which loads NumPy
    from ....core.attention.worked_example import WorkedExample

_SMALL = 0.1  # norm of the Jacobian below which gradients are small; the largest norm is 1/2


def softmax_sentence(
    example: Example, names: Sequence[str], sides: Sequence[WorkedExample], remark: str, glyphs: Glyphs
) -> str:
    """Return "Unscaled, the largest weight is > 99.9 % and p(1−p) at most 8.32e−7: gradients vanish. …"."""
    a, b = sides
    parts = [remark] if remark else []
    size = short(a.multiplier, glyphs)
    parts.append(
        message("Unscaled, the largest weight is {facts}.", facts=_facts(a, True, glyphs))
        if names[0] == "unscaled"
        else message("With × {size}, the largest weight is {facts}.", size=size, facts=_facts(a, True, glyphs))
    )
    if a.multiplier != b.multiplier:
        size = short(b.multiplier, glyphs)
        parts.append(message("With × {size}, they are {facts}.", size=size, facts=_facts(b, False, glyphs)))
    elif b.multiplier == 1:
        parts.append(message("A scale of 1 changes nothing."))
    else:
        parts.append(message("With both scales they are the same."))
    if example.temperature != 1:
        parts.append(_of_temperature(example.temperature, b.multiplier, glyphs))
    if example.shift:
        parts.append(_of_shift(example.shift, max(a.moved, b.moved), glyphs))
    return joined(parts)


def naive_note(number_format: str) -> str:
    """Return what naive means, and where it overflows."""
    form = FORMATS[number_format]
    return message(
        "naive: exp(x), unshifted; {format} overflows above x = {limit:.2f}.", format=form.word, limit=form.exp_limit
    )


def _facts(s: WorkedExample, named: bool, glyphs: Glyphs) -> str:
    """Return the largest weight, the largest p(1−p), by its name if `named`, and what that means for gradients."""
    if s.jacobian_norm == 0:
        then = message("gradients are zero")
    elif s.jacobian_norm < DEAD:
        then = message("gradients vanish")
    else:
        then = message("gradients are small") if s.jacobian_norm < _SMALL else message("gradients flow")
    if s.entropy_fraction > UNIFORM:
        then = message("{then}, and weights are nearly uniform", then=then)
    values = {"weight": percent(s.max_weight), "complement": short(max(s.complement), glyphs), "then": then}
    if named:
        return message("{weight} and p(1−p) at most {complement}: {then}", **values)
    return message("{weight} and {complement}: {then}", **values)


def _of_temperature(temperature: float, multiplier: float, glyphs: Glyphs) -> str:
    if math.isclose(temperature * multiplier, 1, rel_tol=1e-12):
        return message(
            "T {temperature} changes the unscaled logits as the scale alone does.",
            temperature=short(temperature, glyphs),
        )
    size = short(temperature, glyphs)
    if temperature > 1:
        return message("T {temperature} brings all logits closer to each other.", temperature=size)
    return message("T {temperature} brings all logits further apart.", temperature=size)


def _of_shift(shift: float, moved: float, glyphs: Glyphs) -> str:
    """Return that a shift changes no weight, and by how much rounding does."""
    what = message("Adding {shift} to every logit", shift=short(shift, glyphs))
    if moved == 0:
        return message("{what} changes no weight: the factor e^shift cancels.", what=what)
    return message(
        "{what} changes weights by at most {change}, through rounding.", what=what, change=short(moved, glyphs)
    )
