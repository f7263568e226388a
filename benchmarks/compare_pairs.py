"""How often a comparison finds a difference between two healthy computations of a head, and how often one it should.

The heads and arithmetics are those of calibrate.py. A healthy pair is one head in two arithmetics, in the first layer
or, with noise in q, k and v, in a later one, perhaps in another basis. A faulty pair has the right log-sum-exp, and
outputs or weights with a fault, as a kernel that is tested against its own softmax.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from attn_tui.core.captures.capture import Layer
from attn_tui.core.diagnosis.comparing.compare import compare_subjects
from attn_tui.core.diagnosis.comparing.pairing import Common
from attn_tui.core.diagnosis.comparing.results import HeadComparison, HeadPair
from attn_tui.core.diagnosis.subject import Kind, Subject
from attn_tui.core.message import Plain
from calibrate import ARITHMETICS, FAMILIES, FAULTS, Arithmetic, Array, Head, Rates, rounded, subject_of

_UNITS = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_SETS: tuple[tuple[Kind, ...], ...] = (("lse",), ("weights",), ("o",), ("lse", "o"), ("weights", "o"))
# What was done to outputs and weights of which the log-sum-exp is right.
_AFTER: tuple[str, ...] = (
    "halved", "× 1.5", "scale missing", "causal lost", "window extra", "alibi", "sink extra", "shifted",
)  # fmt: skip
_FIRST, _LATER = 0, 3  # layers


def capture(
    said: Head, done: Head, how: Arithmetic, kinds: Sequence[Kind], declared: bool, rng: np.random.Generator
) -> Subject:
    """Return the subject of a head whose file has several kinds of evidence."""
    found = [subject_of(said, done, how, kind, declared, rng) for kind in kinds]
    return replace(found[0], evidence=tuple(each.evidence[0] for each in found))


def compared(one: Subject, other: Subject, position: int) -> HeadComparison:
    """Compare two heads of a layer."""
    pair = HeadPair(_layer(one, position), 0, _layer(other, position), 0)
    return compare_subjects(one, other, pair, Common("same", 1, one.k.shape[1]))


def _layer(subject: Subject, position: int) -> Layer:
    texts, rows, d_k = subject.q.shape
    return Layer(
        position=position, index=position, name=Plain(f"layers.{position}"), heads=1, kv_heads=1, batch=texts,
        queries=rows, keys=subject.k.shape[1], d_k=d_k, dtype=subject.format, scale=subject.facts.scale,
        softcap=subject.facts.softcap,
    )  # fmt: skip


def healthy_pairs(seed: int, numbers: Sequence[int]) -> Iterator[tuple[str, HeadComparison]]:
    """Yield comparisons of one head in two arithmetics, with the words for each."""
    families = list(FAMILIES)
    for number in numbers:
        rng = np.random.default_rng((seed, 7, number))
        family = families[number % len(families)]
        head = FAMILIES[family](rng)
        hows = [ARITHMETICS[int(rng.integers(len(ARITHMETICS)))] for _ in range(2)]
        kinds = _SETS[int(rng.integers(len(_SETS)))]
        position = _LATER if rng.random() < 0.5 else _FIRST
        rotated = position == _LATER and rng.random() < 0.2
        one, other = head, head
        if position == _LATER:
            most = max(_UNITS[how.sides] for how in hows)
            other = _noisy(head, float(rng.uniform(1, 8)) * most, rng)
        if rotated:
            other = _turned(other, rng)
        declared = [bool(rng.integers(2)) for _ in hows]
        subjects = [
            capture(each, each, how, kinds, said, rng)
            for each, how, said in zip((one, other), hows, declared, strict=True)
        ]
        words = f"{hows[0].name} | {hows[1].name} | {'+'.join(kinds)} | {family} | layer {position}"
        yield words + " | rotated" * rotated + f" | declared {declared}", compared(subjects[0], subjects[1], position)


def _noisy(head: Head, size: float, rng: np.random.Generator) -> Head:
    """Return a head of a later layer: q, k and v carry the noise of earlier ones, relative to their size."""

    def noisy(side: Array) -> Array:
        return side + size * float(np.sqrt(np.mean(side * side))) * rng.standard_normal(side.shape)

    return replace(head, q=noisy(head.q), k=noisy(head.k), v=noisy(head.v))


def _turned(head: Head, rng: np.random.Generator) -> Head:
    turn, other = (np.linalg.qr(rng.normal(size=(side.shape[1],) * 2))[0] for side in (head.q, head.v))
    return replace(head, q=head.q @ turn, k=head.k @ turn, v=head.v @ other)


def faulty_pairs(seed: int, count: int) -> Iterator[tuple[str, str, HeadComparison]]:
    """Yield the fault, the words, and the comparison of a healthy head with one whose outputs or weights have it."""
    families = [name for name in FAMILIES if name not in ("one row", "repeated", "tiny logits", "nearly uniform")]
    number = made = 0
    while made < count:
        rng = np.random.default_rng((seed, 8, number))
        fault = _AFTER[number % len(_AFTER)]
        number += 1
        family = families[int(rng.integers(len(families)))]
        head = FAMILIES[family](rng)
        how = ARITHMETICS[int(rng.integers(len(ARITHMETICS)))]
        kind: Kind = ("o", "weights")[int(rng.integers(2))]
        factor = {"halved": 0.5, "× 1.5": 1.5}.get(fault)
        done: Head | None = head if factor else FAULTS[fault][1](head, rng)
        if done is None:
            continue
        made += 1
        declared = bool(rng.integers(2))
        one = capture(head, head, how, ("lse", kind), declared, rng)
        wrong = subject_of(head, done, how, kind, declared, rng).evidence[0]
        if factor:
            wrong = replace(wrong, values=rounded(factor * wrong.values, wrong.format))
        other = replace(one, evidence=(one.evidence[0], wrong))
        yield fault, f"{how.name} | {kind} | {family}", compared(one, other, _FIRST)


def is_coarse(found: HeadComparison) -> bool:
    """Return whether the first difference is that one head's scores were rounded coarsely."""
    return found.first is not None and found.first.name == "qk" and "rounded to" in found.first.says


def rates(seed: int, counts: Sequence[int], show: bool = False) -> dict[str, tuple[int, int]]:
    """Print rates by kind; return what was counted: (found, trials)."""
    differing, named = Rates(Counter(), Counter()), Rates(Counter(), Counter())
    totals: Counter[str] = Counter()
    changes: dict[str, list[float]] = {}
    for words, found in healthy_pairs(seed, range(counts[0])):
        coarse = is_coarse(found)
        differs = found.first is not None and not coarse
        totals["differing"] += differs
        totals["coarse"] += coarse
        for stage in found.stages:
            if stage.name in ("lse", "weights", "o") and stage.change is not None and not coarse:
                changes.setdefault(stage.name, []).append(stage.change)
        differing.add(f"healthy pair differs, {words.split(' | ')[3]}", differs)
        if show and differs and found.first is not None:
            print(words, found.first.name, found.first.says, sep=" | ")
    for fault, words, found in faulty_pairs(seed, counts[1]):
        first = found.first
        right = first is not None
        named.add(f"fault found, {fault}", right)
        totals["found"] += right
        if show and not right:
            print("missed", fault, words, *(each.says for each in found.stages[6:]), sep=" | ")
    print(differing, named, sep="\n\n")
    print()
    for name, values in changes.items():
        shares = " ".join(f"{np.quantile(values, share):.3g}" for share in (0.5, 0.9, 0.99, 0.999, 1))
        print(f"{name}: × rounding, quantiles 50, 90, 99, 99.9 and 100 %: {shares}")
    of: dict[str, Any] = {"differing": counts[0], "coarse": counts[0], "found": counts[1]}
    return {name: (totals[name], count) for name, count in of.items()}


def main() -> None:
    """Print the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--healthy", type=int, default=1800, help="healthy pairs (default: %(default)s)")
    parser.add_argument("--faults", type=int, default=400, help="pairs with a fault (default: %(default)s)")
    parser.add_argument("--show", action="store_true", help="print each wrong answer")
    given = parser.parse_args()
    start = time.process_time()
    totals = rates(given.seed, (given.healthy, given.faults), given.show)
    print()
    for name, (found, count) in totals.items():
        print(f"{name:>10}: {found} of {count}")
    print(f"{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
