"""Replay every scale rule on a captured head: what its attention would have been.

The divergence of the original weights p from those replayed needs only each rule's log-sum-exp:
KL = (lse_r − lse_0) − Σ p (z_r − z_0). Soft-cap, bias, mask and sink stay as they are; factors that are inside the
stored q and k are divided out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray
from ..attention.softmax import Softmax, softmax_of
from ..captures.capture import NOTHING, HeadContext, Layer
from ..captures.files import CaptureError
from ..captures.head import CaptureFile, read_head
from ..captures.rules import Rule, computation, file_rule, named_rule, shown_multiplier
from ..errors import InputError
from ..message import plain
from ..scales import SCALE_RULES, Normalise, ScaleName
from ..statistics.catalogue import ONE_HOT
from .fitting.model import dot
from .heads.rows import Rows, factors, require_logits, scores, strips_of, variance
from .results import Replay, RuleReplay

ROWS = 64  # of a head that are replayed


def replay(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    context: HeadContext = NOTHING,
    rows: int = ROWS,
    formulas: Sequence[ScaleName] = (),
) -> Replay:
    """Replay every rule of SCALE_RULES and these formulas on some rows of a head.

    Raise CaptureError if the head cannot be read, or if no query sees a key.
    """
    data = read_head(capture, layer, head)
    rules, left_out = _rules(layer, context, formulas)
    strips = strips_of(data, layer, rows)
    under = [_under_rules(strip, rules[0], lambda z: require_logits(z, capture, layer, head)) for strip in strips]
    counts = np.concatenate([strip.counts[strip.used] for strip in strips])
    if not counts.size:
        raise CaptureError(
            "{path}: {place}, head {head}: no query sees a key",
            path=plain(capture.path),
            place=layer.place,
            head=head,
        )
    wide = counts > 1
    saturated = np.sqrt(2 * np.log(counts[wide]))
    known: dict[tuple[str, ...], _OfRows] = {}
    replays: dict[tuple[float, ...], RuleReplay] = {}
    for rule in rules:
        by = [factors(strip, rule) for strip in strips]
        alike = (rule.normalise, *(f"{number:.9g}" for factor in by for number in factor.flat))
        if alike not in known:
            parts = [replayed(rule.normalise, rows) for replayed, rows in zip(under, by, strict=True)]
            known[alike] = _OfRows(*map(np.concatenate, zip(*parts, strict=True)))
        now = known[alike]
        divergence, entropy = float(now.divergence.mean()), float(now.entropy.mean())
        key = (round(divergence, 12), *(float(f"{number:.10g}") for number in now.lse[:3]))
        if key in replays:
            replays[key] = replace(replays[key], rules=tuple(dict.fromkeys([*replays[key].rules, rule.name])))
            continue
        first = next(iter(replays.values()), None)
        replays[key] = RuleReplay(
            rules=(rule.name,),
            multiplier=shown_multiplier(rule, layer, data),
            divergence=max(divergence, 0.0),
            entropy=entropy,
            entropy_change=0.0 if first is None else entropy - first.entropy,
            one_hot_rows=float(np.mean(now.largest[wide] > ONE_HOT)) if wide.any() else 0.0,
            saturation=float(np.mean(now.deviation[wide] / saturated)) if wide.any() else None,
        )
    return Replay(layer, head, tuple(replays.values()), left_out)


class _OfRows(NamedTuple):
    """What a rule makes of each row that sees a key."""

    lse: FloatArray
    entropy: FloatArray  # of the weights, nats
    largest: FloatArray  # weight
    deviation: FloatArray  # of the logits
    divergence: FloatArray  # of the original weights from these, nats


def _under_rules(
    part: Rows, original: Rule, require: Callable[[FloatArray], None]
) -> Callable[[Normalise, FloatArray], _OfRows]:
    """Return a function of how q and k are normalised, and of multipliers that broadcast to [texts, rows, 1].

    It calls `require` with the visible logits.
    """
    used, first = part.used, factors(part, original)
    c, of_rows = computation(original, part.layer, part.data), part.terms._replace(multiplier=first)
    known: dict[Normalise, FloatArray] = {}

    def replayed(how: Normalise, by: FloatArray) -> tuple[FloatArray, Softmax]:
        if how not in known:
            known[how] = scores(part, how)
        with np.errstate(over="ignore", invalid="ignore"):
            z = c.logits(known[how], of_rows._replace(multiplier=by))
        shown = z if part.seen is None else np.where(part.seen, z, 0)
        require(shown)
        weights = softmax_of(z, of_rows.hidden, part.data.sink)
        return shown, weights._replace(lse=np.where(used, weights.lse, 0))

    before, base = replayed(original.normalise, first)
    heat = dot(base.weights, before)

    def under(how: Normalise, by: FloatArray) -> _OfRows:
        z, now = replayed(how, by)
        p = now.weights
        return _OfRows(
            lse=now.lse[used],
            entropy=(now.lse * p.sum(axis=-1) - dot(p, z))[used],
            largest=p.max(axis=-1)[used],
            deviation=np.sqrt(variance(z, part.seen)[used]),
            divergence=(now.lse - base.lse - dot(base.weights, z) + heat)[used],
        )

    return under


def _rules(layer: Layer, context: HeadContext, formulas: Sequence[ScaleName]) -> tuple[list[Rule], tuple[str, ...]]:
    """Return the file's rule and every other that this layer has a multiplier for, and the names of the rest."""
    found, left_out = [file_rule(layer)], list[str]()
    for name in (*SCALE_RULES, *formulas):
        if name == "custom":
            continue
        try:
            found.append(named_rule(name, layer, context=context))
        except InputError:
            left_out.append(name)
    return found, tuple(left_out)


def average(replays: Sequence[Replay]) -> list[tuple[str, float, float, float]]:
    """Return for each rule its name and the means over heads of divergence, entropy change and one-hot rows."""
    sums: dict[str, list[tuple[float, float, float]]] = {}
    for each in replays:
        for result in each.replayed:
            for name in result.rules:
                sums.setdefault(name, []).append((result.divergence, result.entropy_change, result.one_hot_rows))
    means: list[tuple[str, float, float, float]] = []
    for name, found in sums.items():
        divergence, change, one_hot = (sum(part) / len(found) for part in zip(*found, strict=True))
        means.append((name, divergence, change, one_hot))
    return means
