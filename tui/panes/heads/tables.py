"""What the cost of a layer is compared with: other numbers of key heads, other contexts, and the models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....core.attention.cost import Cost, Layer, cost
from ....core.attention.presets import PRESETS, Preset
from ....core.message import message
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, fitted, line_width, two_columns, wrapped
from ...views.numbers import binary, metric, percent
from .view import KINDS, cost_lines, counted_lines, remark_lines

HALF = 76  # least columns of each of two columns of tables
_GAP = 3  # cells between them
_MOST_SHARINGS = 7  # rows of the table of key heads
_COST = 30  # lines above the models, for the longest cost: so they stay in place from model to model
_LEAST_MODELS = 6  # lines of the table of models
_BAR = 16  # cells of a full bar


def screen_lines(cost: Cost, width: int, height: int, glyphs: Glyphs, preset: Preset | None) -> list[Line]:
    """Return the cost, followed by the tables that there is room for, beside it or below it.

    The cost itself may be longer than `height`; the tables never make it so.
    """
    if width >= 2 * HALF + _GAP:
        half = (width - _GAP) // 2
        notes = remark_lines(cost, half, glyphs, preset)
        right = [*sharing_lines(cost, glyphs), (), *context_lines(cost, half, glyphs), (), *notes]
        lines = two_columns(counted_lines(cost, half, glyphs, preset), right, half + _GAP)
    else:
        lines = cost_lines(cost, width, glyphs, preset)
        for table in (sharing_lines(cost, glyphs), context_lines(cost, width, glyphs)):
            if len(lines) + 1 + len(table) <= height and max(map(line_width, table)) <= width:
                lines += [(), *table]
    above = max(len(lines), _COST)
    if height - above > _LEAST_MODELS + 1:
        models = model_lines(cost.layer, height - above - 1, glyphs, preset)
        if max(map(line_width, models)) <= width:
            lines += [()] * (above - len(lines) + 1) + models
    return lines


def sharing_lines(cost_: Cost, glyphs: Glyphs) -> list[Line]:
    """Return what the layer costs with fewer or more key heads, a row for each number."""
    layer = cost_.layer
    titles = [message("key heads"), message("attention"), message("parameters"), message("KV cache")]
    rows: list[tuple[str, ...]] = [(*titles, message("next token"))]
    layers = [layer] if layer.kv_latent else []
    layers += [replace(layer, kv_heads=count, kv_latent=0, rotary=0) for count in _key_heads(layer)]
    for each in layers:
        other = cost(each)
        rows.append(
            (
                str(each.key_heads), KINDS[each.kind], metric(other.all_parameters), binary(other.cache),
                f"{metric(other.next_token.total)}FLOPs",
            )
        )  # fmt: skip
    shared = [(each.kind, each.key_heads) for each in layers]
    return _table(message("with other key heads"), rows, {1}, shared.index((layer.kind, layer.key_heads)), glyphs)


def _key_heads(layer: Layer) -> list[int]:
    """Return numbers of key heads that divide the heads, each half of the one before; with the layer's, and 1."""
    counts = {layer.heads, layer.key_heads, 1}
    half = layer.heads
    while half % 2 == 0 and len(counts) < _MOST_SHARINGS:
        half //= 2
        counts.add(half)
    return sorted(counts, reverse=True)


def context_lines(cost_: Cost, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the cache and the operations of the next token as the context grows, and where attention dominates."""
    layer = cost_.layer
    contexts = sorted({layer.context, *(4**power for power in range(5, 11))})
    titles = [message("context"), message("KV cache"), message("next token"), message("in q·k and weights·v")]
    rows: list[tuple[str, ...]] = [(*titles, "")]
    for context in contexts:
        other = cost(replace(layer, context=context))
        flops = other.next_token
        share = (flops.scores + flops.weighted_sum) / flops.total
        figures = f"{context:,}", binary(other.cache), f"{metric(flops.total)}FLOPs", percent(share)
        rows.append((*figures, glyphs.bar(share, _BAR)))
    lines = _table(message("as the context grows"), rows, {4}, contexts.index(layer.context), glyphs)
    token = cost_.next_token
    even = -(-token.projections * layer.context // (token.scores + token.weighted_sum))
    text = message("q·k and weights·v cost more than the projections from {even:,} tokens up.", even=even)
    return [*lines, *wrapped(glyphs.say(text), width, "dim")]


def model_lines(layer: Layer, height: int, glyphs: Glyphs, preset: Preset | None) -> list[Line]:
    """Return the models, a row each, in at most `height` lines; if they do not fit, those around the preset."""
    names = list(PRESETS)
    at = names.index(preset.name) if preset is not None else -1
    shown = len(names) if height > len(names) else max(height - 2, 0)
    first = min(max(at - shown // 2, 0), len(names) - shown)
    rows: list[tuple[str, ...]] = [
        (
            message("model"), "d_model", message("heads"), message("key heads"), "d_k", message("layers"),
            message("parameters"), message("KV per token"), message("context"), message("KV cache"),
            message("next token"), message("scale"), message("× score"),
        )
    ]  # fmt: skip
    for name in names:  # of all, so that columns keep their widths while the rows scroll
        row, other = PRESETS[name], PRESETS[name].layer
        used = cost(replace(other, cache_format=layer.cache_format))
        rows.append(
            (
                row.model, str(other.d_model), str(other.heads), str(other.key_heads), str(other.width),
                str(other.layers), metric(used.all_parameters), binary(used.cache_per_token), f"{other.context:,}",
                binary(used.cache), f"{metric(used.next_token.total)}FLOPs", row.rule.label,
                f"{row.multiplier(other):.4g}",
            )
        )  # fmt: skip
    head, *lines = _table(None, rows, {0, 11, 12}, at if at >= 0 else None, glyphs)
    lines = [head, *lines[first : first + shown]]
    if shown < len(names):
        lines.append(((glyphs.say("{count} more models (p, /)", count=len(names) - shown), "dim"),))
    return lines


def _table(
    title: str | None, rows: Sequence[Sequence[str]], at_left: set[int], current: int | None, glyphs: Glyphs
) -> list[Line]:
    """Return a line of headings and a line a row; `at_left` are columns aligned left, `current` the row to mark.

    The title, if there is one, is in a line of its own.
    """
    said = [[glyphs.say(cell) for cell in row] for row in rows]
    widths = [max(cells(row[at]) for row in said) for at in range(len(said[0]))]
    lines: list[Line] = [((glyphs.say(title), "heading"),)] if title else []
    for number, row in enumerate(said):
        here = current is not None and number == current + 1
        mark: Span = (glyphs.cursor if here else " ", "accent")
        role: Role = "dim" if number == 0 else "accent" if here else "text"
        aligned = [
            to_left(cell, w) if at in at_left else to_right(cell, w)
            for at, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        first: Span = (aligned[0], "heading" if number == 0 and title is None else role)
        *between, last = aligned[1:]
        ending: Role = "label" if role == "text" else role
        lines.append((mark, first, ("  " + "  ".join(between), role), (f"  {last}", ending)))
    width = max(map(line_width, lines))
    return [fitted(line, width) for line in lines]
