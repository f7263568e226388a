"""What is known of a whole file, in a line. This module does not need NumPy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from ...captures.capture import Layer
from ...message import counted, joined, message
from ...statistics.measurement import Estimate
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
) -> tuple[str, str]:
    """Return the verdict on a file and how many of its heads have each status, in a long and in a short form.

    `measured` and `verdicts` are by (position of the layer, head), for the heads known so far; heads without evidence
    have no verdict. `disagreements` of its layers are said where nothing else is wrong.
    """
    doubtful = any(verdict.is_doubtful for verdict in verdicts.values())
    parts = [] if doubtful else [*disagreements]
    words = (head_word(each, verdicts.get(place)) for place, each in measured.items() if each is not None)
    found = Counter(words)
    for word in _NAMED:
        if count := found[word]:
            parts.append(count_words(word, count))
    unreadable = sum(each is None for each in measured.values())
    if unreadable:
        parts.append(message("{unreadable} unreadable", unreadable=unreadable))
    if measured and not parts and not doubtful:
        parts.append(
            "all heads healthy" if len(measured) == sum(layer.heads for layer in layers) else "healthy so far"
        )
    scale = _scale(layers, verdicts)
    short = _no_evidence(layers) if not verdicts and not any(map(has_evidence, layers)) else scale
    return joined([scale, *parts], " · "), joined([short, *parts], " · ")


def _scale(layers: Sequence[Layer], verdicts: Mapping[tuple[int, int], Verdict]) -> str:
    if not verdicts:
        return _unknown(layers)
    wrong = {place: each for place, each in verdicts.items() if each.is_wrong}
    if wrong:
        return _wrong(layers, wrong, len(verdicts))
    unusual = {place: each for place, each in verdicts.items() if each.is_unusual}
    if unusual:
        return _unusual(layers, unusual, len(verdicts))
    if disagreeing := sum(verdict.conflict for verdict in verdicts.values()):
        return message("{heads}: the evidence disagrees with itself", heads=_heads(disagreeing, len(verdicts)))
    undecided = sum(verdict.verdict == "undecided" for verdict in verdicts.values())
    count = message("all {count} layers", count=len(layers)) if len(layers) > 1 else "1 layer"
    kinds = sorted({verdict.evidence for verdict in verdicts.values() if verdict.evidence is not None})
    misfit = max((verdict.misfit for verdict in verdicts.values() if verdict.misfit is not None), default=0.0)
    what = message(
        "({kinds}, misfit {misfit:.2g}{undecided})",
        kinds=joined(kinds, ", "),
        misfit=misfit,
        undecided=message(", {undecided} undecided", undecided=undecided) if undecided else "",
    )
    unknown = next((verdict.expected.unknown for verdict in verdicts.values() if verdict.expected.unknown), "")
    if undecided == len(verdicts) and unknown:
        return message(
            "{count}: the expected scale is not known: {unknown} {what}", count=count, unknown=unknown, what=what
        )
    if undecided == len(verdicts):
        return message("{count}: the evidence does not determine the scale {what}", count=count, what=what)
    known = [verdict for verdict in verdicts.values() if not verdict.expected.unknown]
    multipliers = {f"{verdict.expected.start:.4g}" for verdict in known}
    source = next(iter(known))
    if len(multipliers) > 1:
        return message("{count}: scales as expected {what}", count=count, what=what)
    return message(
        "{count}: scale × {scale_words}, {source} {what}",
        count=count,
        scale_words=_scale_words(source.expected.start, layers),
        source=_as_expected(source.expected),
        what=what,
    )


def _heads(most: int, count: int) -> str:
    if most == count:
        return message("all {count} heads", count=count)
    return message("{most} of {count} heads", most=most, count=count)


def _unusual(layers: Sequence[Layer], unusual: Mapping[tuple[int, int], Verdict], count: int) -> str:
    """Return `layer 1: × 0.0625 as recorded, 1/√d_k is × 0.25: scale-twice?`."""
    first = next(iter(unusual.values()))
    where = sorted({layers[position].index for position, _ in unusual})
    place = _heads(len(unusual), count)
    if len(where) == 1 and len(unusual) < count:
        place = message("layer {index}", index=where[0])
    return message(
        "{place}: × {multiplier:.4g} as recorded, 1/√d_k is × {expected:.4g}: {cause}?",
        place=place,
        multiplier=first.multiplier,
        expected=first.expected.start,
        cause=first.also[0],
    )


def _scale_words(multiplier: float, layers: Sequence[Layer]) -> str:
    number = f"{multiplier:.4g}"
    widths = {layer.d_k for layer in layers}
    if len(widths) > 1:
        return number
    [d_k] = widths
    powers = {"1/√d_k": d_k**-0.5, "1/d_k": 1 / d_k}
    names = [name for name, value in powers.items() if math.isclose(multiplier, value, rel_tol=1e-4)]
    return joined([number, *names], " = ")


def _as_expected(expected: Expected) -> str:
    if expected.assumed:
        return "as assumed"
    return "as the file says" if expected.words == "the file" else "as configured"


def _wrong(layers: Sequence[Layer], wrong: Mapping[tuple[int, int], Verdict], count: int) -> str:
    causes = Counter(verdict.cause or "unexplained" for verdict in wrong.values())
    cause, most = causes.most_common(1)[0]
    alike = {place: each for place, each in wrong.items() if (each.cause or "unexplained") == cause}
    place, first = next(iter(alike.items()))
    known = sorted(verdict.ratio for verdict in alike.values() if verdict.ratio is not None)
    text = joined((_heads(most, count), cause), ": ")
    if known and abs(known[0] - 1) > 0.01:
        low, high = f"{known[0]:.3g}", f"{known[-1]:.3g}"
        used = {_scale_words(each.multiplier, layers) for each in alike.values() if each.multiplier is not None}
        expected = {f"{verdict.expected.start:.4g}" for verdict in alike.values()}
        if len(used) == len(expected) == 1:
            text = message(
                "{text}, scale × {used}, not × {expected}", text=text, used=used.pop(), expected=expected.pop()
            )
        else:
            ratio = low if low == high else message("{low} to {high}", low=low, high=high)
            text = message("{text}, multiplier {ratio} × expected", text=text, ratio=ratio)
    elif most < count:
        layer, head = layers[place[0]].index, place[1]
        text = message("{text}, first in layer {layer} head {head}", text=text, layer=layer, head=head)
    if first.also:
        text = message("{text} (or {also})", text=text, also=joined(first.also[:2], ", "))
    if len(causes) > 1:
        text = message("{text}; {others} with other causes", text=text, others=sum(causes.values()) - most)
    return text


def _scales(layers: Sequence[Layer]) -> set[str]:
    """Return the scales that the file says."""
    return {f"{layer.scale * layer.own_factor:.4g}" for layer in layers if layer.scale is not None}


def _no_evidence(layers: Sequence[Layer]) -> str:
    """Return the short form of `_unknown`, with the scale that the file says if there is one."""
    scales = _scales(layers)
    if len(scales) != 1:
        return "no evidence of the scale"
    return message("file says × {scale}, no evidence", scale=scales.pop())


def _unknown(layers: Sequence[Layer]) -> str:
    scales = _scales(layers)
    if any(map(has_evidence, layers)):
        return "judging the evidence"
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
