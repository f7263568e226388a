"""Check the heads of a capture against limits, and against another capture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from statistics import median

from ..captures.capture import Capture, Layer
from ..captures.files import NotFiniteError
from ..captures.head import CaptureFile, read_head
from ..captures.heads import measure_head
from ..captures.rules import file_rule
from .configuration import Configuration
from .heads.traits import variety
from .reading import read_subject
from .subject import Facts
from .verdict import Verdict, diagnose, not_finite

# How far a head may be from the same head of a baseline of the same text; spreads also on another text.
_ENTROPY, _ONE_HOT, _SPREAD, _MULTIPLIER = 0.3, 0.5, 4.0, 0.01


@dataclass(frozen=True)
class Limits:
    """What a head may be; None means any value."""

    max_logit: float = 100.0  # the largest |logit|
    min_spread: float = 0.01  # the standard deviation of logits within rows
    min_token_spread: float = 0.05  # of q and of k: the length of what differs between tokens over their length
    min_file_entropy: float = 0.2  # the median over heads of entropy / ln n
    min_entropy: float | None = None  # of a head, over ln n
    max_one_hot: float | None = None  # share of rows
    max_first_key: float | None = None  # weight


@dataclass(frozen=True)
class Figures:
    """The figures of one head that limits apply to; None where they do not exist."""

    layer: Layer
    head: int
    largest_logit: float | None
    spread: float | None
    token_spread: float | None
    entropy: float | None  # nats
    entropy_fraction: float | None
    one_hot_rows: float | None
    first_key_weight: float | None
    verdict: Verdict


@dataclass(frozen=True)
class Finding:
    """One figure beyond its limit."""

    layer: Layer | None  # None: of the file
    head: int | None
    rule: str
    message: str
    value: float | None
    limit: float | None

    @property
    def place(self) -> str:
        """Where it is, such as `layer 3 head 7`."""
        return "file" if self.layer is None else f"{self.layer.place} head {self.head}"

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern such as `layers.0.*:first-key` names this finding; * stands for anything."""
        place, _, rule = pattern.rpartition(":")
        where = "file" if self.layer is None else f"layers.{self.layer.index}.{self.head}"
        return fnmatchcase(where, place or "*") and fnmatchcase(self.rule, rule or "*")


def measure(
    capture: CaptureFile, layer: Layer, head: int, own: Configuration | None, given: Configuration | None
) -> Figures:
    """Return the figures of a head; raise CaptureError if it cannot be read."""
    try:
        data = read_head(capture, layer, head)
    except NotFiniteError as error:
        verdict = not_finite(Facts(layer.d_k, layer.scale), str(error))
        return Figures(layer, head, None, None, None, None, None, None, None, verdict)
    [column] = measure_head(capture, layer, head, [file_rule(layer)]).columns
    value = {name: estimate.value for name, estimate in column.measured.items()}
    low, high, variance = value["logit_min"], value["logit_max"], value["logit_variance_within_row"]
    return Figures(
        layer,
        head,
        largest_logit=None if low is None or high is None else max(-low, high),
        spread=None if variance is None else math.sqrt(max(variance, 0.0)),
        token_spread=min(variety(data.q), variety(data.k)),
        entropy=value["entropy"],
        entropy_fraction=value["entropy_fraction"],
        one_hot_rows=value["one_hot_rows"],
        first_key_weight=value["first_key_weight"],
        verdict=diagnose(read_subject(capture, layer, head, own, given), given),
    )


def findings(heads: Sequence[Figures], limits: Limits) -> list[Finding]:
    """Return what is beyond its limit, head by head, the file at the end."""
    found: list[Finding] = []
    for each in heads:
        found += _of_head(each, limits)
    fractions = [each.entropy_fraction for each in heads if each.entropy_fraction is not None]
    if fractions and median(fractions) < limits.min_file_entropy:
        message = f"median entropy {median(fractions):.3g} of ln n < {limits.min_file_entropy:g}"
        found.append(Finding(None, None, "file-entropy", message, median(fractions), limits.min_file_entropy))
    return found


def _of_head(each: Figures, limits: Limits) -> list[Finding]:
    found: list[Finding] = []

    def add(rule: str, message: str, value: float | None = None, limit: float | None = None) -> None:
        found.append(Finding(each.layer, each.head, rule, message, value, limit))

    verdict = each.verdict
    if verdict.cause is not None:
        also = f" (or {', '.join(verdict.also)})" if verdict.also else ""
        add(verdict.cause, f"{verdict.cause}{also}: {verdict.says}", verdict.multiplier, verdict.expected.multiplier)
    elif verdict.verdict == "unexplained":
        add("unexplained", f"{verdict.says} ({verdict.evidence})", verdict.misfit)
    for rule, words, value, limit, least in (
        ("max-logit", "largest |logit|", each.largest_logit, limits.max_logit, False),
        ("min-spread", "standard deviation within rows", each.spread, limits.min_spread, True),
        ("token-spread", "spread of q or k over tokens", each.token_spread, limits.min_token_spread, True),
        ("entropy", "entropy / ln n", each.entropy_fraction, limits.min_entropy, True),
        ("one-hot", "share of one-hot rows", each.one_hot_rows, limits.max_one_hot, False),
        ("first-key", "weight on the first key", each.first_key_weight, limits.max_first_key, False),
    ):
        if value is not None and limit is not None and (value < limit if least else value > limit):
            add(rule, f"{words} {value:.4g} {'<' if least else '>'} {limit:g}", value, limit)
    return found


def same_text(one: Capture, other: Capture) -> bool:
    """Return whether two captures are of the same tokens, or of the same text if neither has tokens."""
    if one.tokens is not None or other.tokens is not None:
        return one.tokens == other.tokens
    return one.text is not None and one.text == other.text


def drift(heads: Sequence[Figures], baseline: Sequence[Figures], same: bool) -> list[Finding]:
    """Return how heads differ from those of a baseline; entropies and one-hot rows only if the text is the `same`."""
    before = {(each.layer.index, each.layer.name, each.head): each for each in baseline}
    found: list[Finding] = []
    for each in heads:
        old = before.get((each.layer.index, each.layer.name, each.head))

        def add(
            rule: str, words: str, now: float | None, then: float | None, limit: float, each: Figures = each
        ) -> None:
            message = f"{words} {now:.4g}, {then:.4g} in the baseline"
            found.append(Finding(each.layer, each.head, rule, message, now, limit))

        if old is None:
            message = "is not in the baseline"
            found.append(Finding(each.layer, each.head, "baseline-missing", message, None, None))
            continue
        now, then = each.verdict.multiplier, old.verdict.multiplier
        if now and then and abs(now / then - 1) > _MULTIPLIER:
            add("baseline-multiplier", "multiplier", now, then, _MULTIPLIER)
        now, then = each.spread, old.spread
        if now and then and not 1 / _SPREAD < now / then < _SPREAD:
            add("baseline-spread", "standard deviation within rows", now, then, _SPREAD)
        for rule, words, now, then, limit in (
            ("baseline-entropy", "entropy", each.entropy, old.entropy, _ENTROPY),
            ("baseline-one-hot", "share of one-hot rows", each.one_hot_rows, old.one_hot_rows, _ONE_HOT),
        ):
            if same and now is not None and then is not None and abs(now - then) > limit:
                add(rule, words, now, then, limit)
    return found
