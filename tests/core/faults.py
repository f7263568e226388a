"""FAULTS: every cause of a diagnosis, injected into a healthy head."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from injection import Case, Head, case_of, normed, rounded, turned

Array: TypeAlias = npt.NDArray[Any]
Fault: TypeAlias = Callable[[Case], None]

YARN = (1 + 0.1 * math.log(8)) ** 2


def _multiplied(rule: Callable[[Case], float]) -> Fault:
    def inject(case: Case) -> None:
        case.multiplier = rule(case)

    return inject


def _root(case: Case) -> float:
    return case.facts.d_k**-0.5


def _not_the_models(case: Case) -> None:
    case.say(scale=256**-0.5)
    case.multiplier = 224**-0.5


def _prescaled_twice(case: Case) -> None:
    root = _root(case)
    case.q = case.used_q = case.q * root
    case.say(scale=1.0, prescaled=root)
    case.multiplier = root


def _yarn_twice(case: Case) -> None:
    case.say(scale=_root(case) * YARN)
    case.multiplier = _root(case) * YARN**2


def _by_position(case: Case) -> None:
    tokens = len(case.positions)
    case.row_factors = np.log(case.positions + 2) / math.log(tokens)


def _by_block(case: Case) -> None:
    blocks = np.arange(len(case.k)) // 32
    case.extra_scores = lambda q, k: (q @ k.T) * math.log2(math.e) ** blocks


def _by_part(case: Case) -> None:
    half = case.facts.d_k // 2
    case.extra_scores = lambda q, k: q[:, :half] @ k[:, :half].T + YARN * (q[:, half:] @ k[:, half:].T)


def _softcap(said: float | None, used: float | None) -> Fault:
    def inject(case: Case) -> None:
        case.say(softcap=None if said is None else said * case.largest)
        case.softcap = None if used is None else used * case.largest

    return inject


def _sink(said: float | None, used: float | None) -> Fault:
    def inject(case: Case) -> None:
        case.say(sink=said)
        case.sink = used

    return inject


def _bias(factor: Callable[[Case], float]) -> Fault:
    def inject(case: Case) -> None:
        tokens = len(case.k)
        by_distance = np.random.default_rng(3).normal(size=2 * tokens)
        case.bias = by_distance[np.arange(tokens) - case.positions[:, np.newaxis] + tokens]
        case.used_bias = factor(case) * case.bias

    return inject


def _alibi(case: Case) -> None:
    case.used_bias = -0.1 * np.abs(np.arange(len(case.k)) - case.positions[:, np.newaxis])


def _causal(case: Case) -> Array:
    """Say that attention is causal; return the distance of each key from the query's own."""
    away = np.arange(len(case.k)) - case.positions[:, np.newaxis]
    case.seen = case.used_seen = away <= 0
    return away


def _mask(visible: Callable[[Array], Array]) -> Fault:
    def inject(case: Case) -> None:
        case.used_seen = visible(_causal(case))

    return inject


def _mask_as_number(case: Case) -> None:
    away = _causal(case)
    case.used_seen = np.ones_like(case.seen)
    case.used_bias = (away <= 0).astype(np.float64)


def _shifted(case: Case) -> None:
    tokens = len(case.k)
    rows = 2 * tokens // 3
    case.q = case.used_q = case.q[:rows]
    case.shift = tokens - rows
    case.positions = np.arange(rows) + case.shift
    away = _causal(case)
    case.used_seen = away <= -case.shift


def _padded(case: Case) -> None:
    case.present = np.arange(len(case.k)) < 4 * len(case.k) // 5
    case.used_seen = case.seen
    case.seen = case.seen & case.present


def _window(case: Case) -> None:
    away, window = _causal(case), len(case.k) // 4
    case.say(window=window)
    case.seen = (away <= 0) & (away > -window)


def _other_window(case: Case) -> None:
    _window(case)
    case.used_seen = case.used_seen & (np.arange(len(case.k)) > case.positions[:, np.newaxis] - len(case.k) // 3)


def _tiled(case: Case) -> None:
    rng = np.random.default_rng(5)
    k, v = (rounded(rng.permutation(side), "bfloat16") for side in (case.k, case.v))
    case.say(kv_heads=4)
    case.tiled, case.used_k, case.used_v = (k, v), k, v


def _changed(change: Callable[[Array], Array], stored: bool = False) -> Fault:
    def inject(case: Case) -> None:
        if stored:
            case.q, case.k = change(case.q), change(case.k)
        else:
            case.used_q, case.used_k = change(case.q), change(case.k)

    return inject


def _gained(stored: bool) -> Fault:
    """Normalise with a learned gain of each component, either what is stored or what is multiplied."""

    def inject(case: Case) -> None:
        gain = 1 + 0.3 * np.random.default_rng(6).normal(size=case.facts.d_k)
        _changed(lambda side: normed(side) * gain, stored)(case)

    return inject


def _weighted(case: Case) -> None:
    """Multiply each component by the weight of a norm that the stored ones lack."""
    gain = 1 + 0.3 * np.random.default_rng(8).normal(size=case.facts.d_k)
    _changed(lambda side: side * gain)(case)


def _in_steps(case: Case) -> None:
    """Grow as the temperature of Llama 4 does, with the whole part of (position + 1) / 16."""
    case.row_factors = 1 + 0.3 * np.log1p((case.positions + 1) // 16)


def _swapped(case: Case) -> None:
    case.used_q, case.used_k = case.k, case.q


def _softmax_axis(case: Case) -> None:
    case.axis = -2


def _dropout(case: Case) -> None:
    case.dropout = 0.1


def _lse(factor: float) -> Fault:
    def inject(case: Case) -> None:
        case.lse_factor = factor

    return inject


# Each fault: what it is called in a verdict, and how it is injected.
FAULTS: dict[str, tuple[str, Fault]] = {
    "missing": ("scale-missing", _multiplied(lambda case: 1.0)),
    "twice": ("scale-twice", _multiplied(lambda case: 1 / case.facts.d_k)),
    "1/d": ("scale-1-over-d", _multiplied(lambda case: 1 / case.facts.d_k)),
    "inverted": ("scale-inverted", _multiplied(lambda case: case.facts.d_k**0.5)),
    "d_model": ("scale-d-model", _multiplied(lambda case: (case.facts.d_model or 1) ** -0.5)),
    "n_heads": ("scale-n-heads", _multiplied(lambda case: case.facts.heads**-0.5)),
    "padded": ("scale-padded", _multiplied(lambda case: (1 << case.facts.d_k.bit_length()) ** -0.5)),
    "fixed": ("scale-fixed", _not_the_models),
    "layer": ("scale-layer", _multiplied(lambda case: _root(case) / (case.facts.layer + 1))),
    "yarn": ("scale-yarn", _multiplied(lambda case: _root(case) * YARN)),
    "yarn twice": ("scale-yarn-twice", _yarn_twice),
    "log2 e": ("scale-base2", _multiplied(lambda case: _root(case) * math.log2(math.e))),
    "lse base 2": ("scale-base2", _lse(math.log2(math.e))),
    "lse ln 2": ("scale-base2", _lse(math.log(2))),
    "quarter": ("scale-quarter", _multiplied(lambda case: case.facts.d_k**-0.25)),
    "temperature": ("scale-other", _multiplied(lambda case: _root(case) * 1.0617)),
    "prescaled twice": ("scale-twice", _prescaled_twice),
    "by position": ("scale-by-position", _by_position),
    "by steps of positions": ("scale-by-position", _in_steps),
    "by block": ("scale-by-block", _by_block),
    "by part": ("scale-by-part", _by_part),
    "softcap missing": ("softcap-missing", _softcap(0.7, None)),
    "softcap extra": ("softcap-extra", _softcap(None, 0.5)),
    "softcap other": ("softcap-other", _softcap(1.5, 0.5)),
    "sink missing": ("sink-missing", _sink(1.5, None)),
    "sink extra": ("sink-extra", _sink(None, 1.5)),
    "bias missing": ("bias-missing", _bias(lambda case: 0.0)),
    "bias scaled": ("bias-scaled", _bias(_root)),
    "bias doubled": ("bias-scaled", _bias(lambda case: 2.0)),
    "alibi": ("bias-extra", _alibi),
    "causal lost": ("causal-lost", _mask(lambda away: away <= len(away))),
    "mask as number": ("mask-added", _mask_as_number),
    "shifted": ("causal-shifted", _shifted),
    "own key hidden": ("own-key-hidden", _mask(lambda away: away < 0)),
    "future key": ("future-key", _mask(lambda away: away <= 1)),
    "padding": ("padding-attended", _padded),
    "window of another length": ("window-ignored", _other_window),
    "window extra": ("window-extra", _mask(lambda away: (away <= 0) & (away > -11))),
    "window": ("window-ignored", _window),
    "tiled": ("gqa-tiled", _tiled),
    "not rotated": ("rope-missing", _changed(lambda side: turned(side, -1))),
    "rotated twice": ("rope-twice", _changed(turned)),
    "stored unrotated": ("rope-missing", _changed(turned)),
    "norm extra": ("qk-norm-extra", _changed(normed)),
    "norm extra with gain": ("qk-norm-extra", _gained(stored=False)),
    "norm missing with gain": ("qk-norm-missing", _gained(stored=True)),
    "norm missing": ("qk-norm-missing", _changed(normed, stored=True)),
    "norm weight": ("qk-norm-weight", _weighted),
    "swapped": ("qk-swapped", _swapped),
    "axis": ("softmax-axis", _softmax_axis),
    "dropout": ("dropout-on", _dropout),
}

# What a kind of evidence does not show: dropout is after lse, and lse has too few numbers for a factor per key.
UNSEEN = {
    ("dropout", "lse"),
    *((f"norm {what}", "lse") for what in ("missing", "missing with gain", "extra with gain", "weight")),
} | {(fault, kind) for fault in ("lse base 2", "lse ln 2") for kind in ("weights", "o")}


def injected(head: Head, number_format: str, fault: str) -> Case:
    """The head with one of FAULTS."""
    case = case_of(head, number_format)
    FAULTS[fault][1](case)
    return case
