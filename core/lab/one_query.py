"""The attention weights of one query, the largest first: what saturation looks like from inside a row."""

from __future__ import annotations

import numpy as np

from ..against import settings, share_scores
from ..parameters import ROUNDED, Parameters
from ..scales import multiplier
from ..statistics.measurement import RowWeights
from .sampling import Draws, drawn_from
from .scoring import RuleColumn, computation, fits, kept_draws, learned_weights, sides, vectors_of

LARGEST = 256  # weights kept, more than a line of a terminal can show


def row_weights(p: Parameters, draws: Draws) -> tuple[RowWeights, ...]:
    """Return the weights of the last query of the first draw under A and B, from the draws of a finished run.

    The last query is one that sees the most keys, and components of a draw are nested, so a row changes little from
    one d_k to the next. Empty if the components are too many to keep.
    """
    a, b = settings(p)
    if not (fits(a) and fits(b)):
        return ()
    same = share_scores(p) or drawn_from(a, sides(a)) == drawn_from(b, sides(b))
    return _of_setting(a, draws if same else draws.other), _of_setting(b, draws)


def _of_setting(p: Parameters, draws: Draws) -> RowWeights:
    c = computation(p, RuleColumn(p.scale, multiplier(p.scale, p.setting), p.setting), learned_weights(p))
    query, *others = kept_draws(p, sides(p), draws, slice(0, 1))
    if p.precision not in ROUNDED:  # in float8, the scale of a vector depends on the other ones
        query = query[:, :, -1:]
    q, k = c.vectors(*vectors_of(p, [query, *others]))
    scores, last = c.scores(q[:, -1:], k), slice(p.n_queries - 1, p.n_queries)
    terms = c.terms(scores.shape, slice(0, 1), last)
    weights = c.weights(c.logits(scores, terms), terms.hidden).weights[0, 0].astype(np.float64)
    weights = np.sort(weights if terms.hidden is None else weights[~terms.hidden[0, 0]])[::-1]
    some = weights[weights > 0]
    entropy = -float(some @ np.log(some)) if np.isfinite(weights).all() and some.size else None
    return RowWeights(
        len(weights), tuple(weights[:LARGEST].tolist()), None if entropy is None else np.exp(entropy).item()
    )
