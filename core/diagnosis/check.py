"""Check the heads of a capture against limits, and against another capture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median

from ..captures.capture import Layer
from ..captures.files import NotFiniteError
from ..captures.head import CaptureFile, read_head
from ..captures.heads import stream_head
from ..captures.rules import file_rule
from ..captures.settings import ScoreProcessing
from ..message import joined, message
from ..statistics.histogram import Histogram
from ..statistics.measurement import Column
from .comparing.results import Comparison, HeadComparison, Stage, in_words_of_baseline
from .configuration import Configuration
from .groups import WRONG, Fault, HeadVerdict, faults_of, groups
from .heads.ranking import variety
from .limits import Limits
from .results import STAGES, Verdict, amount, is_of_scale
from .verdict import diagnose_head, not_finite_from_first_layer

_DIFFERS = message("DIFFERENT")
_BEYOND = message("OVER THE LIMIT")
_SPREAD = 4.0  # times the spread of logits in a baseline of another text


# Rules of size alone: by default they fail no head whose scale is as expected, such as that of an untrained model.
_MILD = {"max-logit": "max_logit", "min-spread": "min_spread", "file-entropy": "min_file_entropy"}


@dataclass(frozen=True)
class HeadFigures(HeadVerdict):
    """The verdict on one head and the figures that limits apply to; None where they do not exist."""

    max_logit: float | None = None
    spread: float | None = None
    token_spread: float | None = None
    entropy_fraction: float | None = None
    one_hot_rows: float | None = None
    first_key_weight: float | None = None
    capped: float | None = None


@dataclass(frozen=True)
class LimitFinding:
    """One figure beyond its limit."""

    layer: Layer | None  # None: of the file
    head: int | None
    rule: str
    message: str
    value: float | None
    limit: float | None
    mild: bool = False  # whether it fails no build unless the user chose the limit
    fault: Fault = field(default=Fault("", "", ""), repr=False, compare=False)  # said of all heads that have it

    @property
    def place(self) -> str:
        """Where it is, such as `layer 3 head 7`."""
        return "file" if self.layer is None or self.head is None else self.layer.place_of(self.head)

    def allowed(self, patterns: Sequence[str]) -> bool:
        """Return whether it fails no build: by one of these patterns, or because nobody chose the limit."""
        return self.mild or any(map(self.matches, patterns))

    def matches(self, pattern: str) -> bool:
        """Return whether a pattern such as `layers.0.*:first-key` names this finding; * stands for anything."""
        place, _, rule = pattern.rpartition(":")
        where = "file" if self.layer is None else f"layers.{self.layer.index}.{self.head}"
        return fnmatchcase(where, place or "*") and fnmatchcase(self.rule, rule or "*")


def measure(
    capture: CaptureFile, layer: Layer, head: int, own: Configuration | None, given: Configuration | None
) -> Iterator[tuple[float, HeadFigures | None]]:
    """Yield the finished fraction and, with the last one, the figures of a head.

    Raise CaptureError if it cannot be read.
    """
    try:
        data = read_head(capture, layer, head)
    except NotFiniteError:
        yield 1.0, HeadFigures(layer, head, diagnose_head(capture, layer, head, own, given))
        return
    rules = [file_rule(layer)]
    if layer.softcap:  # under which no logit passes a limit above the cap
        rules.append(replace(rules[0], computed=ScoreProcessing(softcap=0)))
    columns: Sequence[Column] = []
    for fraction, measurement in stream_head(capture, layer, head, rules, ("logits",)):
        if measurement is None:
            yield fraction, None
        else:
            columns = measurement.columns
    value, raw = ({name: measured.value for name, measured in columns[at].measured.items()} for at in (0, -1))
    low, high, variance = raw["logit_min"], raw["logit_max"], value["logit_variance_within_row"]
    figures = HeadFigures(
        layer,
        head,
        diagnose_head(capture, layer, head, own, given),
        max_logit=None if low is None or high is None else max(-low, high),
        spread=None if variance is None else math.sqrt(max(variance, 0.0)),
        token_spread=min(variety(data.q), variety(data.k)),
        entropy_fraction=value["entropy_fraction"],
        one_hot_rows=value["one_hot_rows"],
        first_key_weight=value["first_key_weight"],
        capped=_capped(columns[-1].histograms["logits"], layer.softcap) if layer.softcap else None,
    )
    yield 1.0, figures


def _capped(logits: Histogram, cap: float) -> float:
    """Return the share of logits that are beyond 2 soft-caps."""
    [inside] = logits.onto((-2 * cap, 2 * cap))
    return 1 - inside / max(logits.total, 1)


def from_first_layer(heads: Sequence[HeadFigures]) -> list[HeadFigures]:
    """Return the heads of a file, in order: numbers that are not finite are named in the first layer with some."""
    first: dict[Path, Layer] = {}
    return [replace(head, verdict=not_finite_from_first_layer(head.verdict, head.layer, first)) for head in heads]


def findings(heads: Sequence[HeadFigures], limits: Limits, disagreements: Sequence[str] = ()) -> list[LimitFinding]:
    """Return what is beyond its limit, head by head, the file at the end with what its layers disagree on.

    The heads are those of `from_first_layer`.
    """
    found = [finding for head in heads for finding in _of_head(head, limits)]
    if not any(finding.rule.startswith("scale-") for finding in found):
        found += [_of_file("inconsistent", says) for says in disagreements]
    fractions = [head.entropy_fraction for head in heads if head.entropy_fraction is not None]
    if fractions and median(fractions) < limits.min_file_entropy:
        says = message(
            "median entropy {fractions:.3g} of ln n < {min_file_entropy:g}",
            fractions=median(fractions),
            min_file_entropy=limits.min_file_entropy,
        )
        healthy = 2 * sum(head.verdict.word == "healthy" for head in heads) > len(heads)
        mild = healthy and all(finding.mild for finding in found)
        beyond = _of_file("file-entropy", says, _BEYOND)
        found.append(replace(beyond, value=median(fractions), limit=limits.min_file_entropy, mild=mild))
    return [replace(finding, mild=finding.mild and _MILD[finding.rule] not in limits.set) for finding in found]


def _of_file(rule: str, says: str, label: str = _DIFFERS) -> LimitFinding:
    return LimitFinding(None, None, rule, says, None, None, fault=Fault(label, rule, says))


def _of_head(figures: HeadFigures, limits: Limits) -> list[LimitFinding]:
    findings: list[LimitFinding] = []
    verdict = figures.verdict
    if verdict.is_wrong:
        for fault in faults_of(figures):
            [group] = groups([fault])
            says = joined([group.names, group.said], ": ")
            of_fit = fault.rule == "unexplained"
            numbers = (verdict.misfit, None) if of_fit else (verdict.multiplier, verdict.expected.multiplier)
            findings.append(LimitFinding(figures.layer, figures.head, fault.rule, says, *numbers, fault=fault))
    for rule, words, value, limit, least in (
        ("max-logit", "largest |logit|", figures.max_logit, limits.max_logit, False),
        ("capped", "share of logits beyond 2 soft-caps", figures.capped, limits.max_capped, False),
        ("min-spread", "standard deviation within rows", figures.spread, limits.min_spread, True),
        ("token-spread", "spread of q or k over tokens", figures.token_spread, limits.min_token_spread, True),
        ("entropy", "entropy / ln n", figures.entropy_fraction, limits.min_entropy, True),
        ("one-hot", "share of one-hot rows", figures.one_hot_rows, limits.max_one_hot, False),
        ("first-key", "weight on the first key", figures.first_key_weight, limits.max_first_key, False),
    ):
        if value is not None and limit is not None and (value < limit if least else value > limit):
            sign = "<" if least else ">"
            says = message("{words} {value:.4g} {sign} {limit:g}", words=words, value=value, sign=sign, limit=limit)
            mild = rule in _MILD and verdict.word == "healthy"
            degree = limit - value if least else value - limit
            fault = Fault(_BEYOND, rule, says, figures.layer, figures.head, degree=degree)
            findings.append(LimitFinding(figures.layer, figures.head, rule, says, value, limit, mild, fault))
    return findings


def changes(comparison: Comparison, heads: Sequence[HeadFigures] = ()) -> list[LimitFinding]:
    """Return what differs between a baseline, the reference of the comparison, and the file that is checked.

    A head has one finding: the first stage that differs, or, of another text, a spread of logits that is 4 × as large
    or as small. `heads` are those of the file, whose verdicts may tell why.
    """
    findings: list[LimitFinding] = []
    verdicts = {(head.layer.position, head.head): head.verdict for head in heads}
    for each in comparison.heads:
        first, layer, head = each.first, each.test_layer, each.test_head
        if first is not None:
            rule = f"baseline-{first.name}"
            says = in_words_of_baseline(
                message("{stages} is not that of the baseline: {says}", stages=STAGES[first.name], says=first.says)
            )
            fault = _of_baseline(each, first, verdicts.get((layer.position, head)))
            findings.append(LimitFinding(layer, head, rule, says, first.change, None, fault=fault))
        elif each.divergence is None and each.reference is not None and each.test is not None:
            now, then = each.test.spread, each.reference.spread
            if then > 0 and not 1 / _SPREAD < now / then < _SPREAD:
                says = message(
                    "standard deviation within rows {now:.4g}, {then:.4g} in the baseline", now=now, then=then
                )
                fault = Fault(_DIFFERS, "baseline-spread", says, layer, head)
                findings.append(LimitFinding(layer, head, "baseline-spread", says, now, _SPREAD, fault=fault))
    return [*findings, *(_of_file("baseline-missing", in_words_of_baseline(place)) for place in comparison.missing)]


def _of_baseline(comparison: HeadComparison, first: Stage, verdict: Verdict | None) -> Fault:
    """Return the first difference of a head from the baseline; its verdict may tell why."""
    says, used, expected = in_words_of_baseline(first.says), None, ""
    if first.name == "multiplier" and comparison.reference is not None and comparison.test is not None:
        used = comparison.test.multiplier
        expected = message("in the baseline {then}", then=amount(comparison.reference.multiplier))
    label = WRONG[first.name] if expected else _DIFFERS
    says = joined([STAGES[first.name], says], ": ")
    if expected:
        causes = (*verdict.findings, verdict.suspect) if verdict is not None else ()
        says = next((cause.says for cause in causes if cause is not None and is_of_scale(cause)), "")
    return Fault(
        label, f"baseline-{first.name}", says, comparison.test_layer, comparison.test_head, used, expected=expected
    )
