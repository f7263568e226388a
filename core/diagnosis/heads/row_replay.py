"""What scale rules make of some rows of a head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...arrays import FloatArray
from ...attention.softmax import Softmax, softmax_of
from ...captures.rules import Rule, computation
from ...scales import Normalise
from ..fitting.model import dot
from .rows import Rows, factors, scores, terms, variance


@dataclass(frozen=True, eq=False)
class RowReplay:
    """What a rule makes of each row; arrays are [rows], of the rows that see a key."""

    lse: FloatArray
    entropy: FloatArray  # of the weights, nats
    largest: FloatArray  # weight
    deviation: FloatArray  # of the logits
    divergence: FloatArray  # of the original weights from these, nats


# Return what becomes of rows with q and k normalised and these multipliers, which broadcast to [texts, rows, 1].
Replays: TypeAlias = Callable[[Normalise, FloatArray], RowReplay]


def under_rules(part: Rows, original: Rule) -> Replays:
    """Return a function that replays a rule on these rows; divergences are from the original rule."""
    used, first = part.used, factors(part, original)
    c, of_rows = computation(original, part.layer, part.data), terms(part, first)
    known: dict[Normalise, FloatArray] = {}

    def replayed(how: Normalise, by: FloatArray) -> tuple[FloatArray, Softmax]:
        if how not in known:
            known[how] = scores(part, how)
        z = c.logits(known[how], of_rows._replace(multiplier=by))
        found = softmax_of(z, of_rows.hidden, part.data.sink)
        shown = z if part.seen is None else np.where(part.seen, z, 0)
        return shown, found._replace(lse=np.where(used, found.lse, 0))

    before, base = replayed(original.normalise, first)
    heat = dot(base.weights, before)

    def under(how: Normalise, by: FloatArray) -> RowReplay:
        z, now = replayed(how, by)
        p = now.weights
        return RowReplay(
            lse=now.lse[used],
            entropy=(now.lse * p.sum(axis=-1) - dot(p, z))[used],
            largest=p.max(axis=-1)[used],
            deviation=np.sqrt(variance(z, part)[used]),
            divergence=(now.lse - base.lse - dot(base.weights, z) + heat)[used],
        )

    return under
