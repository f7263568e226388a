"""Why a head is saturated, uniform or a sink, in a few words, and which heads to look at first.

This module does not need NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from ...message import counted, joined, message
from ...statistics.catalogue import SINK
from ...statistics.measurement import Estimate
from ...statistics.status import SATURATING, Status, status
from ..groups import should_be
from ..results import Verdict, amount, is_of_scale

if TYPE_CHECKING:
    from ...captures.capture import Layer

_NOTABLE = 1.5  # a factor from which it is a reason
_LONGER = 3.0  # a key this many times longer than the median one is named
_MORE = 0.1  # a cosine this much larger than the average one is a reason
_ALIKE = 0.05  # vectors whose tokens differ by less than this share of their length are alike
_MOST = 2  # reasons of a head


@dataclass(frozen=True)
class Traits:
    """What spreads the logits of a head, from some of its rows, at the file's scale."""

    scale: float  # c √d_k, of q·k without factors that are stored in q and k; root mean square if rows differ
    query_size: float  # over √d_k
    key_spread: float  # about the mean of visible keys, over √d_k
    alignment: float
    dimensions: int  # of the scores that hold 90 % of their variance
    cosine: (
        float | None
    )  # of a query and the key that it scores highest, mean over rows; None if no row sees two keys
    first_key_size: float | None  # its length over the median length of keys
    first_key_cosine: float | None  # of queries and the first key they see
    other_cosine: float | None  # of queries and all keys they see
    longest_key: int  # its position among the keys
    longest_key_size: float  # over the median length of keys
    query_variety: float  # the length of what differs between queries over their length, root mean squares
    key_variety: float
    bias_spread: float | None  # standard deviation within rows of what is added to the logits; None: nothing is

    @property
    def spread(self) -> float:
        """The root mean square over rows of their logits' standard deviation, before soft-cap and bias."""
        return self.scale * self.query_size * self.key_spread * math.sqrt(self.alignment)


@dataclass(frozen=True)
class HeadReasons:
    """Why a head is as it is."""

    because: tuple[str, ...]  # the strongest reason first; empty for a healthy head
    verdict: Verdict | None  # None without evidence


def has_evidence(layer: Layer) -> bool:
    """Return whether a file has what tells the multiplier of a layer's heads."""
    there = set(layer.evidence)
    return bool(there & {"lse", "weights"}) or {"o", "v"} <= there


def severity(measured: Mapping[str, Estimate] | None, verdict: Verdict | None = None) -> tuple[float, ...]:
    """Return a key that sorts heads worst first: unreadable, wrong by the evidence, not healthy, healthy.

    Of wrong ones, those come first whose multiplier is further from the expected one; any other fault counts as a
    factor of 2. Among alike ones, those with the larger spread of logits over the saturation point come first.
    """
    word = None if measured is None else status(measured)
    ratio = None if measured is None else measured["saturation"].value
    by_ratio = -(ratio if ratio is not None and math.isfinite(ratio) else -1.0)
    if measured is None or word == "NaN" or (verdict is not None and verdict.cause == "not-finite"):
        return 0, by_ratio
    if verdict is not None and verdict.is_doubtful:
        off = verdict.ratio if all(map(is_of_scale, verdict.findings)) else None
        return 1, -round(abs(math.log(2 if off is None or off <= 0 else off)), 2), by_ratio
    return (3 if word in ("healthy", None) else 2), by_ratio


def head_word(measured: Mapping[str, Estimate] | None, verdict: Verdict | None = None) -> str | None:
    """Return the status of a head in a word; what the evidence says of its scale comes before its numbers."""
    if verdict is not None and verdict.is_wrong:
        return message("wrong")
    if verdict is not None and verdict.is_unusual:
        return message("unusual")
    return None if measured is None else status(measured)


def reasons(
    measured: Mapping[str, Estimate],
    traits: Traits | None,
    layer: Sequence[Traits],
    verdict: Verdict | None = None,
) -> tuple[str, ...]:
    """Return why a head has its status, the strongest reason first; nothing for a healthy one.

    `layer` has the traits of all heads of its layer.
    """
    reasons = [_of_verdict(verdict)] if verdict is not None and verdict.is_doubtful else []
    word = status(measured)
    if traits is None or word in (None, "healthy"):
        return tuple(reasons)
    if word == "NaN":
        return (*reasons, "some rows are NaN")
    if word == "sink":
        reasons += _of_sink(measured, traits)
        if not reasons or (measured["saturation"].value or 0) >= SATURATING:
            reasons += _of_spread(traits, layer, word)
    else:
        reasons += _of_spread(traits, layer, word)
    return tuple(reasons[: _MOST + (verdict is not None and verdict.is_wrong)])


def _of_verdict(verdict: Verdict) -> str:
    """Return what is wrong with a head: its first cause, or why it is in doubt."""
    found = verdict.suspect if verdict.suspect is not None else next(iter(verdict.findings), None)
    if found is None:
        return verdict.says
    if verdict.multiplier is None or not is_of_scale(found):
        return joined([found.cause, found.says], ": ")
    template = "{cause}: {used}, {expected}: {why}"
    used, expected = amount(verdict.multiplier), should_be(verdict)
    return message(template, cause=found.cause, used=used, expected=expected, why=found.says)


def _of_sink(measured: Mapping[str, Estimate], traits: Traits) -> list[str]:
    sink = measured["sink_weight"].value if "sink_weight" in measured else None
    if sink is not None and sink > SINK:
        return [message("the sink logit takes {percent:.0f} % of the weight", percent=100 * sink)]
    size, cosine, others = traits.first_key_size, traits.first_key_cosine, traits.other_cosine
    if size is not None and cosine is not None and size >= _NOTABLE and cosine > 0:
        return [message("|k₀| is {size} × the median key", size=_number(size))]
    if cosine is not None and others is not None and cosine > others + _MORE:
        return [message("cos(q, k₀) {cosine:.2f}; {others:.2f} on average", cosine=cosine, others=others)]
    return []


def _of_spread(traits: Traits, layer: Sequence[Traits], word: Status) -> list[str]:
    """Return the factors that make the spread of logits large, or, of uniform rows, small."""
    sign = -1 if word == "uniform" else 1
    candidates: list[tuple[float, str]] = []

    def add(factor: float, words: str) -> None:
        if factor > 0:
            candidates.append((sign * math.log(factor), words))

    add(traits.scale, message("the scale is {scale} × 1/√d_k", scale=_number(traits.scale)))
    add(traits.query_size, _beside("|q| is", traits.query_size, [head.query_size for head in layer], sign))
    if sign > 0 and traits.longest_key_size >= _LONGER:
        longest = message(
            "key {longest_key} is {longest_key_size} × as long as the median key",
            longest_key=traits.longest_key,
            longest_key_size=_number(traits.longest_key_size),
        )
        add(traits.key_spread, longest)
    else:
        words = _beside("keys spread", traits.key_spread, [head.key_spread for head in layer], sign)
        add(traits.key_spread, words)
    add(math.sqrt(traits.alignment), _directions(traits))
    if traits.bias_spread is not None and traits.bias_spread > traits.spread > 0:
        words = message(
            "the bias spreads logits by σ {bias_spread}, scores by {spread}",
            bias_spread=_number(traits.bias_spread),
            spread=_number(traits.spread),
        )
        candidates.append((sign * math.log(1 + traits.bias_spread / traits.spread), words))
    if sign < 0:
        for name, variety in (("queries", traits.query_variety), ("keys", traits.key_variety)):
            if variety < _ALIKE:
                return [
                    message(
                        "all {what} are alike: they differ by {percent:.2g} % of their length",
                        what=name,
                        percent=100 * variety,
                    )
                ]
    candidates.sort(key=lambda candidate: -candidate[0])
    notable = [words for strength, words in candidates if strength >= math.log(_NOTABLE)]
    return notable[:_MOST] or [words for _, words in candidates[:1]]


def _beside(what: str, value: float, layer: Sequence[float], sign: int) -> str:
    """Compare a size with that of the layer's other heads if it stands out, otherwise with √d_k."""
    typical = median(layer) if layer else 0.0
    if typical > 0 and (value / typical) ** sign >= _NOTABLE:
        return message("{what} {number} × the layer's median", what=what, number=_number(value / typical))
    return message("{what} {number} × √d_k", what=what, number=_number(value))


def _directions(traits: Traits) -> str:
    held = counted("1 dimension holds 90 %", "{number} dimensions hold 90 %", traits.dimensions)
    if traits.cosine is None:
        return held
    return message("cos(q, k) {cosine:.2f} at the largest score; {held}", cosine=traits.cosine, held=held)


def _number(value: float) -> str:
    """Return two digits, or all digits of a larger number."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"
