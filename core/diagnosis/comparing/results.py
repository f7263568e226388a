"""The results of comparing two captures, as plain values; this module does not need NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from ...captures.capture import Layer
from ...message import Message, counted, message
from ..groups import numbers_in_words
from ..results import ORDER, Product, StageName

_ALIKE = 1e-3  # relative: multipliers that are one at four digits

State: TypeAlias = Literal["same", "differs", "follows", "downstream", "not-compared"]

# The statistics of a head that are compared, and their labels.
FIGURES: dict[str, str] = {
    "multiplier": "multiplier",
    "spread": "σ in row",
    "entropy": "entropy",
    "entropy_fraction": "entropy / ln n",
    "max_weight": "max weight",
    "one_hot_rows": "one-hot rows",
    "first_key_weight": "weight on first key",
}


@dataclass(frozen=True)
class Stage:
    """One stage of one head in both captures."""

    name: StageName
    state: State
    says: str
    change: float | None = None  # the difference over what rounding makes; None where it is not a number
    changed: bool = False  # whether outputs are not compared since weights were changed before they met the values
    arrives: bool = False  # whether the difference is in what arrives from the layers before: q and k, or v


@dataclass(frozen=True)
class PairFigures:
    """Means over rows of one head; None if no row sees two keys."""

    multiplier: Product  # fitted to evidence where it determines it, else what the file says
    spread: float  # standard deviation of logits within a row
    entropy: float  # nats
    entropy_fraction: float | None
    max_weight: float
    one_hot_rows: float | None  # share
    first_key_weight: float


@dataclass(frozen=True)
class HeadPair:
    """A head of the reference and the head of the other capture that it is compared with."""

    layer: Layer
    head: int
    test_layer: Layer
    test_head: int


@dataclass(frozen=True)
class HeadComparison(HeadPair):
    """What was found of two heads."""

    stages: tuple[Stage, ...] = field(repr=False)  # one of each of STAGES, in this order
    reference: PairFigures | None
    test: PairFigures | None
    divergence: float | None  # KL(reference ‖ test) of the weights in nats; None for different texts
    changed_rows: float | None  # share of rows whose largest weight is on another key

    @property
    def first(self) -> Stage | None:
        """The first stage that differs."""
        return next((stage for stage in self.stages if stage.state == "differs"), None)

    @property
    def is_downstream(self) -> bool:
        """Whether it differs only because an earlier layer does."""
        return self.first is None and any(stage.state == "downstream" for stage in self.stages)

    @property
    def change(self) -> float:
        """How much attention changed: the divergence, else the change of entropy / ln n."""
        if self.divergence is not None:
            return self.divergence
        if self.reference is None or self.test is None:
            return 0.0
        before, after = self.reference.entropy_fraction, self.test.entropy_fraction
        return 0.0 if before is None or after is None else abs(after - before)


@dataclass(frozen=True)
class Plan:
    """Which heads of two captures are compared, and what is not."""

    pairs: tuple[HeadPair, ...]
    missing: tuple[str, ...]  # a sentence for what is in one capture only
    notes: tuple[str, ...]  # everything that was assumed or left out


@dataclass(frozen=True)
class Comparison:
    """All heads of two captures."""

    heads: tuple[HeadComparison, ...] = field(repr=False)
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def downstream(self) -> tuple[HeadComparison, ...]:
        """The heads that differ only because an earlier layer does."""
        return tuple(head for head in self.heads if head.is_downstream)

    @property
    def differs(self) -> bool:
        """Whether anything differs."""
        return bool(self.missing) or any(head.first is not None for head in self.heads)

    @property
    def first(self) -> tuple[Stage, tuple[HeadComparison, ...]] | None:
        """The first stage that differs in the first layer with a difference, and the heads in which it does."""
        places = [
            (head.layer.position, ORDER.index(stage.name)) for head in self.heads if (stage := head.first) is not None
        ]
        if not places:
            return None
        position, order = min(places)
        heads = tuple(
            head for head in self.heads if head.layer.position == position and head.stages[order].state == "differs"
        )
        return heads[0].stages[order], heads

    @property
    def changed(self) -> dict[str, str]:
        """What changed the weights of layers whose outputs are not compared, by the layer's number."""
        return {str(head.layer.index): stage.says for head in self.heads for stage in head.stages if stage.changed}

    @property
    def ranked(self) -> tuple[HeadComparison, ...]:
        """The heads in the order of their first difference, by layer and stage, the most changed first."""

        def key(comparison: HeadComparison) -> tuple[float, int, float]:
            first = comparison.first
            return (math.inf, 0, -comparison.change) if first is None else (
                comparison.layer.position, ORDER.index(first.name), -comparison.change
            )  # fmt: skip

        return tuple(sorted(self.heads, key=key))


def compared(heads: Sequence[HeadComparison], missing: tuple[str, ...], notes: tuple[str, ...]) -> Comparison:
    """Return the comparison of two captures; what arrives after the first layer that differs is downstream of it."""
    positions = [head.layer.position for head in heads if head.first is not None]
    first = min(positions, default=len(heads))
    later = tuple(_with_downstream(head) if head.layer.position > first else head for head in heads)
    return Comparison(later, missing, notes)


def _with_downstream(head: HeadComparison) -> HeadComparison:
    """Return a head of which q·k and v, and what follows from them, are downstream of an earlier layer."""
    arriving = {stage.name for stage in head.stages if stage.state == "differs" and stage.arrives}
    if not arriving:
        return head
    own = any(stage.state == "differs" and not stage.arrives for stage in head.stages)
    return replace(
        head,
        stages=tuple(
            replace(stage, state="downstream")
            if stage.name in arriving or (stage.state == "follows" and not own)
            else stage
            for stage in head.stages
        ),
    )


def difference_in_words(heads: Sequence[HeadComparison]) -> str:
    """Return what differs in heads of one layer at their first stage; of one head, if they differ in other words."""
    says = {head.first.says for head in heads if head.first is not None}
    worst = max(heads, key=lambda head: head.change)
    said = "" if worst.first is None else worst.first.says
    alike = all(_is_alike(head, worst) for head in heads)
    return said if len(says) < 2 or alike else message("head {head}: {text}", head=worst.head, text=said)


def _is_alike(one: HeadComparison, other: HeadComparison) -> bool:
    """Return whether the multiplier is the first difference of two heads, and is the same in both to four digits."""
    if one.first is None or one.first.name != "multiplier" or one.test is None or other.test is None:
        return False
    return abs(one.test.multiplier - other.test.multiplier) <= _ALIKE * abs(other.test.multiplier)


def same_before(comparison: Comparison) -> str:
    """Return that the layers before the first difference are the same; empty if there are none."""
    if comparison.first is None:
        return ""
    numbers = {
        head.layer.index for head in comparison.heads if head.layer.position < comparison.first[1][0].layer.position
    }
    if not numbers:
        return ""
    words = numbers_in_words(numbers)
    return counted("layer {numbers} is the same", "layers {numbers} are the same", len(numbers), numbers=words)


def _arriving(heads: Sequence[HeadComparison]) -> str:
    """Return what arrives in heads otherwise because of an earlier layer: q and k, v, or all of them."""
    names = {stage.name for head in heads for stage in head.stages if stage.state == "downstream"}
    if "v" not in names:
        return message("q and k")
    return message("q, k and v") if "qk" in names else message("v")


def downstream_words(comparison: Comparison) -> str:
    """Return where heads differ only because an earlier layer does: `layers 1–3, 24 heads: …`; empty if none does."""
    heads = comparison.downstream
    if not heads or comparison.first is None:
        return ""
    numbers = {head.test_layer.index for head in heads}
    return message(
        "{layers}, {heads}: {arrives} differ because layer {first} does",
        layers=counted("layer {numbers}", "layers {numbers}", len(numbers), numbers=numbers_in_words(numbers)),
        heads=counted("{number} head", "{number} heads", len(heads)),
        arrives=_arriving(heads),
        first=comparison.first[1][0].test_layer.index,
    )


def in_words_of_baseline(sentence: str) -> str:
    """Return a sentence of a comparison for a file and its baseline, which is the reference."""
    said = Message(sentence.replace("the reference", "the baseline").replace("the other capture", "this file"))
    if isinstance(sentence, Message):  # other languages name both alike
        said.template, said.values, said.plural = sentence.template, sentence.values, sentence.plural
    return said
