"""Facts on a capture and its selected head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ....core.diagnosis.heads.reasons import head_word
from ....core.diagnosis.heads.summary import count_words
from ....core.diagnosis.results import Verdict
from ....core.message import joined, message
from ....core.statistics.catalogue import STATISTICS
from ....core.statistics.measurement import Estimate
from ...language.cells import cells, to_left
from ...views.glyphs import Glyphs
from ...views.lines import Line, Span, line_width, middle_cut, wrapped
from ...views.numbers import minus_signs, short, short_in_unit
from ...views.results.table import EXPORTED_ONLY, LEADING

if TYPE_CHECKING:
    from ....core.captures.capture import Capture, Layer


NO_VERDICTS: Mapping[tuple[int, int], Verdict] = {}
_ALIGNED = {"top_left": message("top left"), "bottom_right": message("bottom right")}
Heads: TypeAlias = Mapping[tuple[int, int], "Mapping[str, Estimate] | None"]  # by (position of the layer, head)


def capture_lines(
    capture: Capture,
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
    lines.append(((middle_cut(glyphs.say(capture.model or capture.path.name), width, sign), "label"),))
    if capture.model:
        lines.append(((middle_cut(glyphs.say(capture.path.name), width, sign), "dim"),))
    for note in capture.notes:
        lines += wrapped(glyphs.say(note), width, "dim")
    return lines


def statistic_lines(measured: Mapping[str, Estimate], width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Return the statistics of a head that have a value, at most `height` lines: all, or the leading ones."""
    shown = [each for each in STATISTICS if each.name in measured and each.name not in EXPORTED_ONLY]
    known = [each for each in shown if measured[each.name].value is not None]
    if len(known) > height:
        known = [each for each in known if each.name in LEADING]
    lines: list[Line] = []
    for each in known[:height]:
        value = measured[each.name].value or 0.0
        text = short_in_unit(value, each.unit, glyphs)
        label = middle_cut(glyphs.say(each.short_label), width - cells(text) - 1, glyphs.say("…"))
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
    return (
        message("{count} heads: {told}.", count=len(heads), told=joined(told, ", "))
        if told
        else message("{count} heads.", count=len(heads))
    )


def layer_facts(layer: Layer, glyphs: Glyphs) -> str:
    """Return `d_k 32, 70 queries × 70 keys, float16, scale × 0.177, causal`, after its file if there are several."""
    facts: list[str] = [layer.file] if layer.file else []
    facts.append(f"d_k {layer.d_k}")
    if layer.batch > 1:
        facts.append(message("{batch} texts", batch=layer.batch))
    facts += [message("{queries} queries × {keys} keys", queries=layer.queries, keys=layer.keys), layer.dtype]
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
