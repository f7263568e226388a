"""Replay every scale rule on a captured head: what its attention would have been.

The divergence of the original weights p from those replayed needs only each rule's log-sum-exp:
KL = (lse_r − lse_0) − Σ p (z_r − z_0). Soft-cap, bias, mask and sink stay as they are; factors that are inside the
stored q and k are divided out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..captures.capture import NOTHING, HeadContext, Layer
from ..captures.files import CaptureError
from ..captures.head import CaptureFile, read_head
from ..captures.rules import Rule, file_rule, named_rule, shown_multiplier
from ..errors import InputError
from ..plain import plain
from ..scales import SCALE_RULES, Normalise, ScaleName
from .heads.row_replay import RowReplay, under_rules
from .heads.rows import Rows, factors, strips_of
from .subject import Indices

ROWS = 64  # of a head that are replayed
_ONE_HOT = 0.95
_SATURATED, _HEALTHY = 1.0, math.sqrt(0.5)  # σ of a row's logits over √(2 ln n)


@dataclass(frozen=True)
class Replayed:
    """One rule, or several that give the same weights at this head; means over rows."""

    rules: tuple[str, ...]
    multiplier: float  # of q·k without stored factors; for the last query, if rows differ
    divergence: float  # KL(original ‖ replayed), nats
    entropy: float  # nats
    entropy_change: float  # nats, from the original
    one_hot_rows: float  # share of the rows that see at least two keys
    saturation: float | None  # σ of a row's logits over √(2 ln n); None if no row sees two keys


@dataclass(frozen=True)
class Replay:
    """A head under every rule; the original, the file's own scale, comes first."""

    layer: Layer
    head: int
    replayed: tuple[Replayed, ...] = field(repr=False)
    left_out: tuple[str, ...]  # rules that need what the file does not say, or have no multiplier here

    @property
    def remedy(self) -> Replayed | None:
        """The rule of least divergence that makes a saturated head healthy; None if none does or it is not."""
        original, *others = self.replayed
        if original.saturation is None or original.saturation < _SATURATED:
            return None
        able = [each for each in others if each.saturation is not None and each.saturation < _HEALTHY]
        return min(able, key=lambda each: each.divergence, default=None)


def replay(
    capture: CaptureFile,
    layer: Layer,
    head: int,
    told: HeadContext = NOTHING,
    rows: int = ROWS,
    formulas: Sequence[ScaleName] = (),
) -> Replay:
    """Replay every rule of SCALE_RULES and these formulas on some rows of a head.

    Raise CaptureError if the head cannot be read, or if no query sees a key.
    """
    data = read_head(capture, layer, head)
    rules, left_out = _rules(layer, told, formulas)
    strips = strips_of(data, layer, rows)
    every = [under_rules(strip, rules[0]) for strip in strips]
    counts = np.concatenate([strip.counts[strip.used] for strip in strips])
    if not counts.size:
        raise CaptureError(
            "{path}: {place}, head {head}: no query sees a key",
            path=plain(capture.path),
            place=layer.place,
            head=head,
        )
    several = counts > 1
    known: dict[bytes, tuple[RowReplay, ...]] = {}
    found: dict[tuple[float, ...], Replayed] = {}
    for rule in rules:
        how, by = _with_unit_vectors(rule, layer.d_k, strips)
        same = b"".join([how.encode(), *(_rounded(each) for each in by)])
        if same not in known:
            by = by * len(strips) if len(by) == 1 else by
            known[same] = tuple(under(how, each) for under, each in zip(every, by, strict=True))
        parts = known[same]
        divergence = _mean(each.divergence for each in parts)
        key = (round(divergence, 12), *(float(f"{number:.10g}") for number in parts[0].lse[:3]))
        if key in found and rule.name != "file":
            found[key] = replace(found[key], rules=(*found[key].rules, rule.name))
            continue
        entropy = _mean(each.entropy for each in parts)
        first = next(iter(found.values()), None)
        found[key] = Replayed(
            rules=(rule.name,),
            multiplier=shown_multiplier(rule, layer, data),
            divergence=max(divergence, 0.0),
            entropy=entropy,
            entropy_change=0.0 if first is None else entropy - first.entropy,
            one_hot_rows=_mean([np.concatenate([each.largest for each in parts])[several] > _ONE_HOT]),
            saturation=_saturation(np.concatenate([each.deviation for each in parts]), counts),
        )
    return Replay(layer, head, tuple(found.values()), left_out)


def _with_unit_vectors(rule: Rule, d_k: int, strips: Sequence[Rows]) -> tuple[Normalise, list[FloatArray]]:
    """Return how a rule normalises, and its multipliers of each strip, or one number for all.

    Vectors of root mean square 1 have length √d_k: they are taken for vectors of length 1 with other multipliers.
    """
    first = factors(strips[0], rule)
    by = [first, *(factors(each, rule) for each in strips[1:])] if first.size > 1 else [first]
    return ("l2", [each * d_k for each in by]) if rule.normalise == "rms" else (rule.normalise, by)


def _rounded(multipliers: FloatArray) -> bytes:
    """Return multipliers, rounded so that rules that give the same are alike."""
    mantissas, exponents = np.frexp(multipliers)
    return np.ldexp(np.round(mantissas, 11), exponents).tobytes()


def _mean(parts: Iterable[FloatArray | BoolArray]) -> float:
    values = np.concatenate([*parts])
    return float(np.mean(values)) if values.size else 0.0


def _rules(layer: Layer, told: HeadContext, formulas: Sequence[ScaleName]) -> tuple[list[Rule], tuple[str, ...]]:
    """Return the file's rule and every other that this layer has a multiplier for, and the names of the rest."""
    found, left_out = [file_rule(layer)], list[str]()
    for name in (*SCALE_RULES, *formulas):
        if name == "custom":
            continue
        try:
            found.append(named_rule(name, layer, told=told))
        except InputError:
            left_out.append(name)
    return found, tuple(left_out)


def _saturation(deviation: FloatArray, counts: Indices) -> float | None:
    """Return the mean of σ/√(2 ln n) over rows that see at least two keys."""
    wide = counts > 1
    return float(np.mean(deviation[wide] / np.sqrt(2 * np.log(counts[wide])))) if wide.any() else None


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
