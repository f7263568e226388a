"""How often a diagnosis accuses a healthy head, and how often it names a fault, by kind, on simulated heads.

Heads of many families are computed in many arithmetics from a seed, healthy, with every fault alone, and with two.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from attn_tui.core.arrays import FloatArray
from attn_tui.core.captures.capture import Layer
from attn_tui.core.diagnosis.check import HeadFigures, Limits, findings
from attn_tui.core.diagnosis.heads.ranking import variety
from attn_tui.core.diagnosis.results import Verdict
from attn_tui.core.diagnosis.subject import Evidence, Kind, StatedFacts, Subject, places
from attn_tui.core.diagnosis.verdict import diagnose

Array: TypeAlias = npt.NDArray[Any]
KINDS: tuple[Kind, ...] = ("lse", "weights", "o")
_DTYPES: dict[str, Any] = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


@dataclass(frozen=True, eq=False)
class Head:
    """What the file says of a head, and what was really done: `done` has what differs."""

    q: Array
    k: Array
    v: Array
    scale: float
    seen: Array  # [rows, keys]
    positions: Array
    softcap: float | None = None
    sink: float | None = None
    bias: Array | None = None
    row_factors: Array | None = None
    present: Array | None = None
    window: int | None = None
    shift: int = 0
    lse_factor: float = 1.0
    dropout: float = 0.0
    axis: int = -1


@dataclass(frozen=True)
class Arithmetic:
    """How a head is computed: the formats of q and k, of the scores, and of what is returned."""

    name: str
    sides: str = "float32"
    scores: str = "float32"
    returned: str = "float32"
    prescaled: bool = False  # whether q is multiplied by the scale and rounded before it meets k
    tf32: bool = False


ARITHMETICS = (
    Arithmetic("float32"),
    Arithmetic("tf32", tf32=True),
    *(Arithmetic(f"stored {name}", returned=name) for name in ("float16", "bfloat16")),
    *(Arithmetic(f"fused {name}", name, "float32", name) for name in ("float16", "bfloat16")),
    *(Arithmetic(f"eager {name}", name, name, name) for name in ("float16", "bfloat16")),
    *(Arithmetic(f"prescaled {name}", name, name, name, True) for name in ("float16", "bfloat16")),
    *(Arithmetic(f"prescaled fused {name}", name, "float32", name, True) for name in ("float16", "bfloat16")),
)


def rounded(values: Array, to: str) -> Array:
    """Return float64 values after rounding to a format."""
    return np.asarray(values, np.float32).astype(_DTYPES[to]).astype(np.float64)


def _tf32(values: Array) -> Array:
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(1 << 12)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


# Families of healthy heads.


def _plain(rng: np.random.Generator, spread: float | None = None, tokens: int | None = None) -> Head:
    """A head as trained ones are: aligned q and k, few directions that matter, a first key that attracts."""
    tokens = tokens or int(rng.choice([24, 48, 64, 96, 128]))
    d_k = int(rng.choice([16, 32, 48, 64, 80, 96, 128]))
    spread = spread or float(rng.uniform(0.5, 3))
    common, basis = rng.normal(size=(tokens, d_k)), rng.normal(size=(4, d_k))
    q, k = (rng.normal(size=(tokens, d_k)) + 0.3 * common + 0.4 * rng.normal(size=(tokens, 4)) @ basis for _ in "qk")
    q = q + 0.3
    k[0] += 0.6
    size = math.sqrt(spread * math.sqrt(d_k) / float(np.std(q @ k.T)))
    positions = np.arange(tokens)
    return Head(
        q * size, k * size, rng.normal(size=(tokens, d_k)), d_k**-0.5, np.ones((tokens, tokens), np.bool_), positions
    )


def _causal(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    return replace(head, seen=np.arange(len(head.k)) <= head.positions[:, np.newaxis])


def _windowed(rng: np.random.Generator) -> Head:
    head = _causal(rng)
    window = int(rng.integers(4, len(head.k) // 2))
    near = np.arange(len(head.k)) > head.positions[:, np.newaxis] - window
    return replace(head, seen=head.seen & near, window=window)


def _padded(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    present = np.arange(len(head.k)) < rng.integers(len(head.k) // 2, len(head.k))
    return replace(head, present=present, seen=head.seen & present)


def _cross(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    rows = int(rng.integers(8, len(head.q)))
    return replace(head, q=head.q[:rows], seen=head.seen[:rows], positions=head.positions[:rows])


def _bottom_right(rng: np.random.Generator) -> Head:
    head = _causal(rng)
    shift = int(rng.integers(2, len(head.k) // 2))
    return replace(head, q=head.q[shift:], seen=head.seen[shift:], positions=head.positions[shift:], shift=shift)


def _last(head: Head) -> Head:
    return replace(head, q=head.q[-1:], seen=head.seen[-1:], positions=head.positions[-1:])


def _largest(head: Head) -> float:
    return float(np.abs(np.where(head.seen, head.q @ head.k.T, 0)).max()) * head.scale


def _softcapped(rng: np.random.Generator) -> Head:
    head = _causal(rng)
    return replace(head, softcap=_largest(head) * float(rng.uniform(0.7, 2)))


def _with_sink(rng: np.random.Generator) -> Head:
    return replace(_causal(rng), sink=float(rng.normal(1, 1)))


def _by_distance(rng: np.random.Generator, head: Head) -> Array:
    of = rng.normal(size=2 * len(head.k))
    return of[np.arange(len(head.k)) - head.positions[:, np.newaxis] + len(head.k)]


def _biased(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    return replace(head, bias=_by_distance(rng, head))


def _normed(x: Array) -> Array:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def _qk_norm(rng: np.random.Generator) -> Head:
    head = _causal(rng)
    return replace(head, q=_normed(head.q), k=_normed(head.k), scale=float(rng.choice([head.scale, 1.0, 0.3])))


def _of_rows(rng: np.random.Generator) -> Head:
    head = _causal(rng)
    return replace(head, row_factors=np.log(head.positions + 2) / math.log(len(head.k)))


def _repeated(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    tokens = rng.integers(0, 6, len(head.k))
    return replace(head, q=head.q[tokens], k=head.k[tokens])


def _long_tailed(rng: np.random.Generator) -> Head:
    head = _plain(rng)
    return replace(
        head, q=head.q * rng.standard_t(3, size=(len(head.q), 1)), k=head.k * rng.standard_t(3, size=(len(head.k), 1))
    )


FAMILIES: dict[str, Callable[[np.random.Generator], Head]] = {
    "plain": _plain,
    "causal": _causal,
    "window": _windowed,
    "padding": _padded,
    "cross": _cross,
    "bottom right": _bottom_right,
    "soft-cap": _softcapped,
    "sink": _with_sink,
    "bias": _biased,
    "QK-norm": _qk_norm,
    "rows": _of_rows,
    "repeated": _repeated,
    "long-tailed": _long_tailed,
    "tiny logits": lambda rng: _plain(rng, 1e-3),
    "nearly uniform": lambda rng: _plain(rng, 0.03),
    "one-hot": lambda rng: _plain(rng, 30),
    "short": lambda rng: _plain(rng, tokens=8),
    "one row": lambda rng: _last(_causal(rng)),
}


# Faults: what was done instead, given what the file says; None if the head does not have what is lost.

Fault: TypeAlias = "Callable[[Head, np.random.Generator], Head | None]"
YARN = (0.1 * math.log(8) + 1) ** 2
D_MODEL, HEADS, LAYER = 1536, 12, 5


def _scaled(rule: Callable[[Head], float]) -> Fault:
    return lambda head, _: replace(head, scale=rule(head))


def _is_causal(head: Head) -> bool:
    away = np.arange(len(head.k)) - head.positions[:, np.newaxis]
    return bool((away > 0).any()) and not bool((head.seen & (away > 0)).any())


def _masked(visible: Callable[[Array], Array]) -> Fault:
    """Return the fault of another causal mask, given the distances of keys after the query's own."""

    def fault(head: Head, _: np.random.Generator) -> Head | None:
        away = np.arange(len(head.k)) - head.positions[:, np.newaxis]
        return replace(head, seen=visible(away)) if _is_causal(head) and head.window is None else None

    return fault


def _turned(x: Array, positions: Array, sign: int) -> Array:
    half = x.shape[-1] // 2
    angles: FloatArray = sign * positions[:, np.newaxis] * 10_000.0 ** (-np.arange(half, dtype=np.float64) / half)
    a, b = x[:, :half], x[:, half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], -1)


def _rotated(sign: int) -> Fault:
    return lambda head, _: replace(
        head, q=_turned(head.q, head.positions, sign), k=_turned(head.k, np.arange(len(head.k)), sign)
    )


def _swapped(head: Head, _: np.random.Generator) -> Head | None:
    return replace(head, q=head.k, k=head.q) if head.q.shape == head.k.shape else None


def _window_ignored(head: Head, _: np.random.Generator) -> Head | None:
    if head.window is None:
        return None
    return replace(head, seen=np.arange(len(head.k)) <= head.positions[:, np.newaxis])


def _shifted(head: Head, _: np.random.Generator) -> Head | None:
    away = np.arange(len(head.k)) - head.positions[:, np.newaxis]
    return replace(head, seen=away <= -head.shift) if head.shift else None


# What a fault is called, the fault, and the evidence that cannot show it.
FAULTS: dict[str, tuple[str, Fault, tuple[Kind, ...]]] = {
    "scale missing": ("scale-missing", _scaled(lambda _: 1.0), ()),
    "scale twice": ("scale-twice", _scaled(lambda head: head.scale**2), ()),
    "1/d": ("scale-1-over-d", _scaled(lambda head: 1 / head.q.shape[1]), ()),
    "inverted": ("scale-inverted", _scaled(lambda head: head.q.shape[1] ** 0.5), ()),
    "d_model": ("scale-d-model", _scaled(lambda _: D_MODEL**-0.5), ()),
    "heads": ("scale-n-heads", _scaled(lambda _: HEADS**-0.5), ()),
    "quarter": ("scale-quarter", _scaled(lambda head: head.scale**0.5), ()),
    "log2 e": ("scale-base2", _scaled(lambda head: head.scale * math.log2(math.e)), ()),
    "layer": ("scale-layer", _scaled(lambda head: head.scale / (LAYER + 1)), ()),
    "yarn": ("scale-yarn", _scaled(lambda head: head.scale * YARN), ()),
    "temperature": ("scale-other", _scaled(lambda head: head.scale * 1.0617), ()),
    "by position": (
        "scale-by-position",
        lambda head, _: replace(head, row_factors=np.log(head.positions + 2) / math.log(len(head.k)))
        if head.row_factors is None and len(head.q) > 8 else None, (),
    ),
    "rows alike": (
        "scale-by-position",
        lambda head, _: None if head.row_factors is None else replace(head, row_factors=None), (),
    ),
    "soft-cap missing": (
        "softcap-missing", lambda head, _: replace(head, softcap=None) if head.softcap else None, (),
    ),
    "soft-cap extra": (
        "softcap-extra", lambda head, _: None if head.softcap else replace(head, softcap=0.5 * _largest(head)), (),
    ),
    "sink missing": (
        "sink-missing", lambda head, _: None if head.sink is None else replace(head, sink=None), (),
    ),
    "sink extra": ("sink-extra", lambda head, _: replace(head, sink=1.5) if head.sink is None else None, ()),
    "bias missing": ("bias-missing", lambda head, _: None if head.bias is None else replace(head, bias=None), ()),
    "bias scaled": (
        "bias-scaled", lambda head, _: None if head.bias is None else replace(head, bias=head.bias * head.scale), (),
    ),
    "alibi": (
        "bias-extra",
        lambda head, _: replace(head, bias=-0.1 * np.abs(np.arange(len(head.k)) - head.positions[:, np.newaxis]))
        if head.bias is None else None, (),
    ),
    "causal lost": ("causal-lost", _masked(lambda away: away < np.inf), ()),
    "future key": ("future-key", _masked(lambda away: away <= 1), ()),
    "own key hidden": ("own-key-hidden", _masked(lambda away: (away < 0) | (places(away.shape[1]) == 0)), ()),
    "window extra": ("window-extra", _masked(lambda away: (away <= 0) & (away > -11)), ()),
    "window ignored": ("window-ignored", _window_ignored, ()),
    "shifted": ("causal-shifted", _shifted, ()),
    "padding": (
        "padding-attended",
        lambda head, _: None if head.present is None else replace(head, seen=np.ones_like(head.seen)), (),
    ),
    "not rotated": ("rope-missing", _rotated(-1), ()),
    "rotated twice": ("rope-twice", _rotated(1), ()),
    "norm extra": ("qk-norm-extra", lambda head, _: replace(head, q=_normed(head.q), k=_normed(head.k)), ()),
    "swapped": ("qk-swapped", _swapped, ()),
    "axis": (
        "softmax-axis", lambda head, _: replace(head, axis=-2) if head.q.shape == head.k.shape and head.sink is None
        and head.seen.all() else None, (),
    ),
    "lse base 2": ("scale-base2", lambda head, _: replace(head, lse_factor=math.log2(math.e)), ("weights", "o")),
    "dropout": ("dropout-on", lambda head, _: replace(head, dropout=0.1), ("lse",)),
}  # fmt: skip
SCALES = [name for name, (cause, _, _) in FAULTS.items() if cause.startswith("scale-") and "-by-" not in cause]


def subject_of(
    said: Head, done: Head, how: Arithmetic, kind: Kind, declared: bool, rng: np.random.Generator
) -> Subject:
    """Return the subject whose file says one thing and whose evidence comes from another."""
    q, k, v = (rounded(each, how.sides) for each in (done.q, done.k, done.v))
    stored_q, stored_k = (rounded(each, how.sides) for each in (said.q, said.k))
    if how.tf32:
        q, k = _tf32(q), _tf32(k)
    scale = done.scale
    if how.prescaled:
        q, scale = rounded(q * done.scale, how.sides), 1.0
    s = rounded(q.astype(np.float32) @ k.astype(np.float32).T, how.scores)
    if done.row_factors is not None:
        scale = scale * done.row_factors[:, np.newaxis]
    z = rounded(s * scale, how.scores)
    if done.softcap is not None:
        z = rounded(done.softcap * np.tanh(z / done.softcap), how.scores)
    if done.bias is not None:
        z = rounded(z + done.bias, how.scores)
    z = np.where(done.seen, z, -np.inf)
    top = np.maximum(z.max(axis=done.axis, keepdims=True), -1e30)
    e = np.exp(z - top)
    total = e.sum(axis=done.axis, keepdims=True)
    if done.sink is not None:
        total = total + np.exp(done.sink - top)
    p: Array = e / np.maximum(total, 1e-300)
    lse = (np.log(np.maximum(total, 1e-300)) + top).reshape(-1) * done.lse_factor
    if done.dropout:
        p = p * (rng.random(p.shape) >= done.dropout) / (1 - done.dropout)
    if kind == "o":
        values = rounded(rounded(p, how.sides).astype(np.float32) @ v.astype(np.float32), how.returned)
    else:
        values = rounded(lse, "float32") if kind == "lse" else rounded(p, how.returned)
    evidence = Evidence(
        kind, values[np.newaxis], "float32" if kind == "lse" else how.returned,
        v[np.newaxis] if kind == "o" else None, how.sides,
    )  # fmt: skip
    d_k = said.q.shape[1]
    facts = StatedFacts(
        d_k, scale=said.scale, softcap=said.softcap, sink=said.sink, window=said.window, layer=LAYER, heads=HEADS,
        kv_heads=HEADS, d_model=D_MODEL, n_heads=HEADS, scores=how.scores if declared else None,
    )  # fmt: skip

    def one(array: Array | None) -> Array | None:
        return None if array is None else np.asarray(array)[np.newaxis]

    return Subject(
        stored_q[np.newaxis], stored_k[np.newaxis], how.sides, facts, (evidence,), said.positions.astype(np.intp),
        None if said.seen.all() else one(said.seen), one(said.present), one(said.bias), one(said.row_factors),
        said.shift,
    )  # fmt: skip


def causes_of(verdict: Verdict) -> set[str]:
    """Return every cause that a verdict names, or says to be near."""
    return {*verdict.maybe, *(name for finding in verdict.findings for name in (finding.cause, *finding.also))}


@dataclass
class Rates:
    """What was found, by kind: trials, and how many of them."""

    trials: Counter[str]
    found: Counter[str]

    def add(self, kind: str, found: bool) -> None:
        """Count a trial."""
        self.trials[kind] += 1
        self.found[kind] += found

    def __str__(self) -> str:
        """Return a line a kind."""
        return "\n".join(
            f"  {self.found[kind]:5d} of {count:5d}  {100 * self.found[kind] / count:6.2f} %  {kind}"
            for kind, count in sorted(self.trials.items())
        )


def healthy(seed: int, numbers: Sequence[int]) -> Iterator[tuple[str, Verdict, list[str]]]:
    """Yield verdicts on healthy heads, with the words for each, and the limits of a check that fail it by default."""
    families = list(FAMILIES)
    for number in numbers:
        rng = np.random.default_rng((seed, number))
        family, how = families[number % len(families)], ARITHMETICS[number // len(families) % len(ARITHMETICS)]
        head = FAMILIES[family](rng)
        kind, declared = KINDS[int(rng.integers(3))], bool(rng.integers(2))
        subject = subject_of(head, head, how, kind, declared, rng)
        verdict = diagnose(subject)
        found = findings([_figures(head, verdict)], Limits(min_file_entropy=0))
        limits = [each.rule for each in found if not each.mild and each.rule in _LIMITS]
        yield f"{how.name}{', declared' * declared}, {kind}, {family}", verdict, limits


_LIMITS = ("max-logit", "capped", "min-spread", "token-spread")


def _figures(head: Head, verdict: Verdict) -> HeadFigures:
    """Return what a check measures of a head."""
    factors = 1 if head.row_factors is None else head.row_factors[:, np.newaxis]
    raw = head.scale * factors * (head.q @ head.k.T)
    z = raw if head.softcap is None else head.softcap * np.tanh(raw / head.softcap)
    of_rows = [np.var(row[seen]) for row, seen in zip(z, head.seen, strict=True)]
    shown = np.abs(raw[head.seen])
    layer = cast(Layer, None)  # which the limits do not ask for
    return HeadFigures(
        layer, 0, verdict, float(shown.max()), math.sqrt(float(np.mean(of_rows))),
        min(variety(head.q[np.newaxis]), variety(head.k[np.newaxis])),
        capped=None if head.softcap is None else float(np.mean(shown > 2 * head.softcap)),
    )  # fmt: skip


_SOUND = ("plain", "causal", "window", "padding", "bottom right", "soft-cap", "sink", "bias", "rows")


def faulty(seed: int, count: int, faults: int) -> Iterator[tuple[tuple[str, ...], str, Verdict]]:
    """Yield verdicts on heads with this many faults, their names, and the words for the head."""
    names = list(FAULTS)
    number = made = 0
    while made < count:
        rng = np.random.default_rng((seed, faults, number))
        first = names[number % len(names)]
        number += 1
        how, kind = ARITHMETICS[int(rng.integers(len(ARITHMETICS)))], KINDS[int(rng.integers(3))]
        chosen = [first, *(str(each) for each in rng.choice(names, faults - 1))]
        stages = [_changes(name) for name in chosen]
        if len(set(stages)) < faults or any(kind in FAULTS[name][2] for name in chosen):
            continue
        for family in rng.permutation(_SOUND):
            said = FAMILIES[str(family)](rng)
            done: Head | None = said
            for name in chosen:
                done = None if done is None else FAULTS[name][1](done, rng)
            if done is not None:
                declared = bool(rng.integers(2))
                made += 1
                words = f"{how.name}{', declared' * declared}, {kind}, {family}"
                yield tuple(chosen), words, diagnose(subject_of(said, done, how, kind, declared, rng))
                break


def _changes(name: str) -> str:
    """Return what a fault changes: two faults of one head must not undo each other."""
    cause = FAULTS[name][0]
    mask = ("causal", "future", "own", "window", "padding")
    return "mask" if cause.startswith(mask) else "qk" if cause.startswith(("rope", "qk-")) else cause.split("-")[0]


def calibrate(seed: int, counts: Sequence[int], show: bool = False) -> dict[str, tuple[int, int]]:
    """Print rates by kind; return what was counted: (found, trials)."""
    accused, named, pairs = (Rates(Counter(), Counter()) for _ in range(3))
    totals: Counter[str] = Counter()
    for words, verdict, limits in healthy(seed, range(counts[0])):
        wrong = verdict.word == "cause"
        for limit in _LIMITS:
            accused.add(f"healthy: beyond a limit, {limit}", limit in limits)
        accused.add(f"healthy: accused, {words.split(',')[0]}", wrong)
        totals["accused"] += wrong
        totals["unexplained"] += verdict.word == "unexplained"
        if show and (wrong or verdict.word == "unexplained"):
            print("healthy", words, verdict.word, verdict.cause, verdict.misfit, verdict.says, sep=" | ")
    for names, words, verdict in faulty(seed, counts[1], 1):
        right = FAULTS[names[0]][0] in causes_of(verdict)
        named.add(f"one fault: named, {names[0]}", right)
        totals["named"] += right
        totals["vague"] += verdict.word == "undecided"
        if show and not right:
            print(names, words, verdict.word, causes_of(verdict), verdict.misfit, verdict.says, sep=" | ")
    for names, words, verdict in faulty(seed, counts[2], 2):
        found = causes_of(verdict)
        right = [FAULTS[name][0] in found for name in names]
        pairs.add("two faults: both named", all(right))
        pairs.add("two faults: one named", any(right))
        totals["both"] += all(right)
        totals["either"] += any(right)
        if any(name in SCALES for name in names):
            told = any(cause.startswith("scale-") for cause in found)
            pairs.add("two faults: wrong scale named", told)
        if show and not all(right):
            print(names, words, verdict.word, causes_of(verdict), verdict.misfit, verdict.says, sep=" | ")
    print(accused, named, pairs, sep="\n\n")
    of = {"accused": 0, "unexplained": 0, "named": 1, "vague": 1, "both": 2, "either": 2}
    return {name: (totals[name], counts[place]) for name, place in of.items()}


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", type=int, default=2160, help="healthy heads (default: %(default)s)")
    parser.add_argument("--faults", type=int, default=680, help="heads with one fault (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=340, help="heads with two faults (default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print each wrong verdict")
    given = parser.parse_args()
    start = time.process_time()
    totals = calibrate(given.seed, (given.healthy, given.faults, given.pairs), given.show)
    print()
    for name, (found, count) in totals.items():
        print(f"{name:>12}: {found} of {count}")
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
