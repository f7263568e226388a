"""Facts on a capture and its selected head, and the heads ranked, one line each, with the reason for their status."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rich.cells import set_cell_size

from ....core.diagnosis.heads.reasons import head_word
from ....core.diagnosis.heads.summary import count_words
from ....core.diagnosis.results import Verdict
from ....core.message import counted, joined, message, plain
from ....core.statistics.catalogue import STATISTIC, STATISTICS, Statistic
from ....core.statistics.measurement import Estimate
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, line_width, middle_cut, wrapped
from ..numbers import minus_signs, short, short_in_unit

if TYPE_CHECKING:
    from ....core.captures.capture import CaptureContents, Layer


NO_VERDICTS: Mapping[tuple[int, int], Verdict] = {}
_ALIGNED = {"top_left": message("top left"), "bottom_right": message("bottom right")}
Heads: TypeAlias = Mapping[tuple[int, int], "Mapping[str, Estimate] | None"]  # by (position of the layer, head)


def capture_lines(
    capture: CaptureContents,
    layer: Layer,
    head: int,
    heads: Heads,
    cursor: tuple[int, int],
    width: int,
    glyphs: Glyphs,
    because: Sequence[str] = (),
    verdicts: Mapping[tuple[int, int], Verdict] = NO_VERDICTS,
) -> list[Line]:
    """Return the selected head and its reasons, a count of all heads, the file, and the assumptions made."""
    word = head_word(heads.get(cursor), verdicts.get(cursor)) or ""
    dot = glyphs.say(" · ")
    title: list[Span] = [
        (glyphs.say("layer {index}", index=layer.index), "accent"),
        (dot, "dim"),
        (glyphs.say("head {head}", head=head), "accent"),
    ]
    if line_width(tuple(title)) + cells(dot + glyphs.say(word)) > width:
        title = [(f"{layer.index}/{head}", "accent")]
    if word:
        title.append((dot, "dim"))
        title.append((glyphs.say(word), "heading" if word == "healthy" else "alert"))
    lines: list[Line] = [tuple(title)]
    for reason in because:
        lines += wrapped(minus_signs(glyphs.say(reason), glyphs), width)
    if because:
        lines.append(())
    lines += wrapped(glyphs.say(layer_facts(layer, glyphs)), width)
    lines += [(), *wrapped(glyphs.say(head_counts(heads, verdicts)), width)] if heads else []
    lines.append(())
    sign = glyphs.say("…")
    lines.append(((middle_cut(glyphs.say(capture.model or plain(capture.path.name)), width, sign), "label"),))
    if capture.model:
        lines.append(((middle_cut(glyphs.say(plain(capture.path.name)), width, sign), "dim"),))
    for note in capture.notes:
        lines += wrapped(glyphs.say(note), width, "dim")
    return lines


def statistic_lines(measured: Mapping[str, Estimate], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the statistics of a head that have a value, at most `height` lines: all, or the leading ones."""
    shown = [statistic for statistic in STATISTICS if statistic.name in measured and not statistic.exported_only]
    known = [statistic for statistic in shown if measured[statistic.name].value is not None]
    if len(known) > height:
        known = [statistic for statistic in known if statistic.rank == 0 or statistic.name == "first_key_weight"]
    lines: list[Line] = []
    for statistic in known[:height]:
        value = measured[statistic.name].value or 0.0
        text = short_in_unit(value, statistic.unit, glyphs)
        label = middle_cut(glyphs.say(statistic.short_label), width - cells(text) - 1, glyphs.say("…"))
        lines.append(((to_left(label, width - cells(text)), "label"), (text, "text")))
    return lines


def head_counts(heads: Heads, verdicts: Mapping[tuple[int, int], Verdict] = NO_VERDICTS) -> str:
    """Return `72 heads: 38 healthy, 22 sinks, 8 saturating, 1 one-hot.`"""
    words = Counter(
        head_word(measured, verdicts.get(place)) for place, measured in heads.items() if measured is not None
    )
    told = [count_words(word, count) for word, count in words.most_common() if word]
    unread = sum(measured is None for measured in heads.values())
    if unread:
        told.append(message("{unread} unreadable", unread=unread))
    count = counted("{number} head", "{number} heads", len(heads))
    return message("{count}.", count=joined((count, joined(told, ", ")), ": ") if told else count)


def layer_facts(layer: Layer, glyphs: Glyphs) -> str:
    """Return `d_k 32, 70 queries × 70 keys, float16, scale × 0.177, causal`, after its file if there are several."""
    facts: list[str] = [layer.file] if layer.file else []
    facts.append(f"d_k {layer.d_k}")
    if layer.batch > 1:
        facts.append(message("{batch} texts", batch=layer.batch))
    dtype = layer.dtype if layer.k_dtype is None else f"q {layer.dtype}, k {layer.k_dtype}"
    facts += [message("{queries} queries × {keys} keys", queries=layer.queries, keys=layer.keys), dtype]
    if layer.kv_heads != layer.heads:
        facts.append(
            message(
                "{heads} query heads share {kv_heads} key/value heads", heads=layer.heads, kv_heads=layer.kv_heads
            )
        )
    facts.append(_scale_fact(layer, glyphs))
    if layer.softcap is not None:
        facts.append(message("soft-cap {softcap}", softcap=short(layer.softcap, glyphs)))
    if layer.causal is not None:
        facts.append(
            message("causal")
            if layer.queries == layer.keys
            else message("causal, {alignment}", alignment=_ALIGNED[layer.causal])
        )
    if layer.window is not None:
        before, after = (message("all") if side is None else str(side) for side in layer.window)
        facts.append(
            message("window {before} before", before=before)
            if layer.causal
            else message("window {before} before, {after} after", before=before, after=after)
        )
    if layer.chunk is not None:
        facts.append(message("chunks of {chunk}", chunk=layer.chunk))
    there = (
        (message("mask"), layer.mask),
        (message("bias"), layer.bias),
        (message("sink"), layer.sinks),
        (message("some queries of the text"), layer.rows),
    )
    facts += [word for word, name in there if name]
    return joined(facts, ", ")


def _scale_fact(layer: Layer, glyphs: Glyphs) -> str:
    """Return `scale × 0.125`: the multiplier of q·k, and which part of it the stored q and k have already."""
    if layer.scale is None:
        return message("a scale for each head") if layer.head_scales or layer.scales else message("scale not given")
    fact = message("scale × {scale}", scale=short(layer.scale * layer.own_factor, glyphs))
    if layer.own_factor == 1:
        return fact
    return message("{fact}, of which × {factor} is in q and k", fact=fact, factor=short(layer.own_factor, glyphs))


_PLACE, _VALUE, _STATUS = 7, 8, 9  # cells
_SHARES = {"max_weight": 6, "first_key_weight": 8}
_BAR = 8
_BAD = ("wrong", "NaN")  # words in red
_ROOM = 19  # cells that reasons need before bars and shares are shown
_FULL = 3.0  # the saturation ratio of a full bar in every file


@dataclass(frozen=True)
class RankedHead:
    """One head of the list."""

    layer: int  # its number in the model
    head: int
    measured: Mapping[str, Estimate] | None  # None: unreadable
    because: tuple[str, ...]
    rough: bool = False  # whether it was measured on some rows only
    file: str = ""  # the name of its file, if there are several
    verdict: Verdict | None = None  # what its evidence says

    @property
    def place(self) -> str:
        """The head as `18/7`."""
        return f"{self.layer}/{self.head}"


def ranked_lines(
    heads: Sequence[RankedHead],
    statistic: Statistic,
    width: int | None,
    glyphs: Glyphs,
    chosen: int | None = None,
    full: float | None = None,
) -> list[Line]:
    """Return a header and a line for each head; the list is sorted already, `statistic` is what its bars show.

    Lines are `width` cells long, or, if it is None, as long as they need to be. `full` is the value of a full bar, by
    default that of these heads.
    """
    left = math.inf if width is None else width - (_PLACE + _VALUE + _STATUS + 2) - _ROOM
    shares = left >= sum(_SHARES.values())
    bars = left >= sum(_SHARES.values()) + _BAR + 1
    values = [_value(head.measured, statistic.name) for head in heads]
    full = full_bar(heads, statistic) if full is None else full
    lines: list[Line] = []
    for number, (each, value) in enumerate(zip(heads, values, strict=True)):
        here = number == chosen
        word = message("unreadable") if each.measured is None else head_word(each.measured, each.verdict) or ""
        mark = glyphs.cursor if here else " "
        place: Span = (to_left(f"{mark}{each.place}", _PLACE), "accent" if here else "label")
        certain: Role = "dim" if each.rough else "text"
        spans: list[Span] = [place, (to_right(_number(value, statistic, glyphs), _VALUE - 1) + " ", certain)]
        if bars:
            spans.append((_bar(value, full, glyphs) + " ", "scaled"))
        if shares:
            for name, room in _SHARES.items():
                share = _number(_value(each.measured, name), STATISTIC[name], glyphs)
                spans.append((to_right(share, room - 1) + " ", certain))
        role: Role = "alert" if each.measured is None or word in _BAD else "heading" if word == "healthy" else "text"
        rough = glyphs.say("≈") if each.rough else " "
        spans.append((rough + to_left(glyphs.say(word), _STATUS), role))
        because = joined(each.because, "; ")
        said = joined([each.file, because], ": ") if each.file and because else each.file or because
        spans.append((" " + minus_signs(glyphs.say(said), glyphs), "text"))
        lines.append(_cut(tuple(spans), width, glyphs))
    return [_cut(_header(statistic, bars, shares, glyphs), width, glyphs), *lines]


def full_bar(heads: Sequence[RankedHead], statistic: Statistic) -> float:
    """Return the value of a full bar: the largest one, or of saturation ratios _FULL."""
    if statistic.name == "saturation":
        return _FULL
    values = [_value(head.measured, statistic.name) for head in heads]
    return max((value for value in values if value is not None), default=0.0)


def _header(statistic: Statistic, bars: bool, shares: bool, glyphs: Glyphs) -> Line:
    room = _VALUE + bars * (_BAR + 1) - 1
    forms: list[str] = [statistic.short_label]
    if statistic.name == "saturation":
        forms = [message("saturation"), message("satur")]
    said = [glyphs.say(form) for form in forms]
    shown = next((text for text in said if cells(text) <= room), set_cell_size(said[-1], room))
    most, first, status_title, because = map(
        glyphs.say, (message("max"), message("1st key"), message(" status"), message("because"))
    )
    text = to_left(glyphs.say(" L/H"), _PLACE) + (to_left(shown, room) if bars else to_right(shown, room))
    titles = zip((most, first), _SHARES.values(), strict=True)
    text += " " + "".join(to_right(title, room - 1) + " " for title, room in titles) * shares
    return ((text + to_left(status_title, _STATUS + 2) + because, "dim"),)


def _cut(line: Line, width: int | None, glyphs: Glyphs) -> Line:
    """Return the line in `width` cells, marked at its end if it is cut."""
    if width is None or line_width(line) <= width:
        return line if width is None else fitted(line, width)
    sign = glyphs.say("…")
    return (*fitted(line, max(width - cells(sign), 0)), (sign, "dim"))


def _value(measured: Mapping[str, Estimate] | None, name: str) -> float | None:
    value = measured[name].value if measured is not None and name in measured else None
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None, statistic: Statistic, glyphs: Glyphs) -> str:
    if value is None:
        return glyphs.say("—")
    if statistic.unit == "share":
        return f"{100 * value:.0f} %"
    return f"{value:.2f}" if 0.01 <= abs(value) < 100 else short(value, glyphs)


def _bar(value: float | None, full: float, glyphs: Glyphs) -> str:
    """Return a bar of _BAR cells; one that is longer ends with a sign."""
    part = 0.0 if value is None or full <= 0 else max(value / full, 0.0)
    if part > 1 + 1e-9:
        return glyphs.lengths[-1] * (_BAR - 1) + glyphs.right
    return glyphs.bar(min(part, 1.0), _BAR)
