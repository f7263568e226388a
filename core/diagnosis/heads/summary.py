"""What is known of a whole file, in a line. This module does not need NumPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...captures.capture import Layer
from ...message import counted, joined, message
from ...statistics.measurement import Estimate
from ..groups import FaultGroup, HeadVerdict, faults_of, groups
from ..results import Expected, Verdict
from .reasons import has_evidence, head_word

_NAMED = ("NaN", "saturated", "one-hot", "saturating", "sink", "uniform")


def count_words(word: str, count: int) -> str:
    """Return a number of heads of a status: `1 saturated`, `2 sinks`."""
    if word == "sink":
        return counted("{number} sink", "{number} sinks", count)
    return counted("{number} {status}", "{number} {status}", count, status=word)


def file_summary(
    layers: Sequence[Layer],
    measured: Mapping[tuple[int, int], Mapping[str, Estimate] | None],
    verdicts: Mapping[tuple[int, int], Verdict],
    disagreements: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the verdict on a file and how many of its heads have each status, in forms from long to short.

    `measured` and `verdicts` are by (position of the layer, head), for the heads known so far; heads without evidence
    have no verdict. `disagreements` of its layers are said where nothing else is wrong.
    """
    doubtful = any(verdict.is_doubtful for verdict in verdicts.values())
    parts = [] if doubtful else [*disagreements]
    words = (
        head_word(statistics, verdicts.get(place)) for place, statistics in measured.items() if statistics is not None
    )
    counts = Counter(words)
    for word in _NAMED:
        if count := counts[word]:
            parts.append(count_words(word, count))
    unreadable = sum(statistics is None for statistics in measured.values())
    if unreadable:
        parts.append(message("{unreadable} unreadable", unreadable=unreadable))
    if measured and not parts and not doubtful:
        parts.append(
            "all heads healthy" if len(measured) == sum(layer.heads for layer in layers) else "healthy so far"
        )
    scales = _scale(layers, verdicts)
    fewer = (joined([scales[-1], *parts[:many], "…"], " · ") for many in range(len(parts) - 1, -1, -1))
    return (*(joined([scale, *parts], " · ") for scale in scales), *fewer)


def _scale(layers: Sequence[Layer], verdicts: Mapping[tuple[int, int], Verdict]) -> tuple[str, ...]:
    """Return what is wrong, else which scale is right, from the longest to the shortest form."""
    if not verdicts:
        return (_unknown(layers), _no_evidence(layers))
    heads = [HeadVerdict(layers[position], head, verdict) for (position, head), verdict in sorted(verdicts.items())]
    doubtful = [head for head in heads if head.verdict.is_doubtful]
    if doubtful:
        return _doubtful(groups(fault for head in doubtful for fault in faults_of(head)))
    healthy = [head for head in heads if head.verdict.word == "healthy"]
    left = len(heads) - len(healthy)
    undecided = [message("{number} undecided", number=left)] if left else []
    if not healthy:
        words = message("the evidence does not determine the scale")
        unknown = next((head.verdict.expected.unknown for head in heads if head.verdict.expected.unknown), "")
        return (message("the expected scale is not known: {why}", why=unknown), words) if unknown else (words,)
    found = groups(fault for head in healthy for fault in faults_of(head))
    if len(found) > 1:
        return (joined([message("scales as expected"), *undecided], ", "),)
    [one] = found
    sure = message(
        "{expected}, {source}", expected=one.fault.expected, source=_as_expected(healthy[0].verdict.expected)
    )
    where = message("{place}: {sure}", place=one.place, sure=sure)
    return tuple(joined([words, *undecided], ", ") for words in (where, sure, one.fault.expected))


def _doubtful(found: Sequence[FaultGroup]) -> tuple[str, ...]:
    """Return the first fault, and how many others there are; what is wrong before what is undecided."""
    first, *others = sorted(found, key=lambda group: not group.fault.severe)
    more = [counted("{number} more fault", "{number} more faults", len(others))] if others else []
    label = first.fault.label
    numbers = joined([text for text in (first.amounts, first.fault.expected) if text], ", ")
    forms = (first.sentence, joined([text for text in (first.place, numbers) if text], ": "), numbers or first.rule)
    return tuple(joined([joined([label, text]), *more], " · ") for text in (*forms, first.amounts or first.rule))


def _as_expected(expected: Expected) -> str:
    if expected.assumed:
        return message("as assumed")
    return message("as the file says") if expected.words == "the file" else message("as configured")


def _scales(layers: Sequence[Layer]) -> set[str]:
    """Return the scales that the file says."""
    return {f"{layer.scale * layer.own_factor:.4g}" for layer in layers if layer.scale is not None}


def _no_evidence(layers: Sequence[Layer]) -> str:
    """Return the short form of `_unknown`, with the scale that the file says if there is one."""
    if any(map(has_evidence, layers)):
        return message("judging the evidence")
    scales = _scales(layers)
    if len(scales) != 1:
        return message("no evidence of the scale")
    return message("file says × {scale}, no evidence", scale=scales.pop())


def _unknown(layers: Sequence[Layer]) -> str:
    scales = _scales(layers)
    if any(map(has_evidence, layers)):
        return message("judging the evidence")
    said = (
        "no scale in the file"
        if not scales
        else message("scale × {scale}", scale=next(iter(scales)))
        if len(scales) == 1
        else "scales"
    )
    return message(
        "{said}{by}: q and k alone cannot tell which was used", said=said, by=" by the file" if scales else ""
    )
