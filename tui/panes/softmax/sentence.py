"""Sentences that explain the results of a softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....core.attention.formats import FORMATS
from ....core.attention.worked_example import Example
from ....core.message import message
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
    who = "Unscaled" if names[0] == "unscaled" else message("With × {glyphs}", glyphs=short(a.multiplier, glyphs))
    parts = [remark] if remark else []
    parts.append(
        message("{who}, the largest weight is {facts}.", who=who, facts=_facts(a, glyphs, "p(1−p) at most "))
    )
    if a.multiplier == b.multiplier:
        parts.append("A scale of 1 changes nothing." if b.multiplier == 1 else "With both scales they are the same.")
    else:
        parts.append(
            message("With × {glyphs}, they are {facts}.", glyphs=short(b.multiplier, glyphs), facts=_facts(b, glyphs))
        )
    if example.temperature != 1:
        parts.append(_of_temperature(example.temperature, b.multiplier, glyphs))
    if example.shift:
        parts.append(_of_shift(example.shift, max(a.moved, b.moved), glyphs))
    return " ".join(parts)


def naive_note(number_format: str) -> str:
    """Return what naive means, and where it overflows."""
    form = FORMATS[number_format]
    return message(
        "naive: exp(x), unshifted; {word} overflows above x = {exp_limit:.2f}.",
        word=form.word,
        exp_limit=form.exp_limit,
    )


def _facts(s: WorkedExample, glyphs: Glyphs, name: str = "") -> str:
    """Return the largest weight, the largest p(1−p), and what that means for gradients."""
    if s.jacobian_norm == 0:
        then = "gradients are zero"
    elif s.jacobian_norm < DEAD:
        then = "gradients vanish"
    else:
        then = "gradients are small" if s.jacobian_norm < _SMALL else "gradients flow"
    even = ", and weights are nearly uniform" if s.entropy_fraction > UNIFORM else ""
    return message(
        "{max_weight} and {name}{glyphs}: {then}{even}",
        max_weight=percent(s.max_weight),
        name=name,
        glyphs=short(max(s.complement), glyphs),
        then=then,
        even=even,
    )


def _of_temperature(temperature: float, multiplier: float, glyphs: Glyphs) -> str:
    if math.isclose(temperature * multiplier, 1, rel_tol=1e-12):
        return message(
            "T {glyphs} changes the unscaled logits as the scale alone does.", glyphs=short(temperature, glyphs)
        )
    effect = "closer to each other" if temperature > 1 else "further apart"
    return message("T {glyphs} brings all logits {effect}.", glyphs=short(temperature, glyphs), effect=effect)


def _of_shift(shift: float, moved: float, glyphs: Glyphs) -> str:
    """Return that a shift changes no weight, and by how much rounding does."""
    what = message("Adding {glyphs} to every logit", glyphs=short(shift, glyphs))
    if moved == 0:
        return message("{what} changes no weight: the factor e^shift cancels.", what=what)
    return message(
        "{what} changes weights by at most {glyphs}, through rounding.", what=what, glyphs=short(moved, glyphs)
    )
