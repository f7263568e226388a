"""The cost of a layer as lines: shape, matrices, cache and operations, and what they are compared with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ....core.attention.cost import Cost, Layer, cost
from ....core.attention.formats import FORMATS
from ....core.attention.presets import PRESETS, Preset
from ....core.message import message
from ...language.cells import cells, to_left, to_right
from ..glyphs import Glyphs
from ..lines import Line, Role, Span, fitted, line_width, two_columns, wrapped
from ..numbers import binary, metric, percent

NAME = 14  # cells of a row's name
KINDS: dict[str, str] = {
    "multi-head": message("multi-head"),
    "grouped-query": message("grouped-query"),
    "multi-query": message("multi-query"),
    "latent": message("latent"),
}
_ATTENTION: dict[str, str] = {
    "multi-head": message("Multi-head attention"),
    "grouped-query": message("Grouped-query attention"),
    "multi-query": message("Multi-query attention"),
    "latent": message("Latent attention"),
}


def cost_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """Return the whole cost. Sentences are wrapped to `width`; tables are about 60 cells wide at any width."""
    return [*counted_lines(cost, width, glyphs, preset), (), *remark_lines(cost, width, glyphs, preset)]


def counted_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """Return the layer and the tables of its cost, without the notes on what is counted."""
    lines = layer_lines(cost, width, glyphs, preset)
    for table in (matrix_lines(cost, glyphs), cache_lines(cost, glyphs), flops_lines(cost, glyphs)):
        lines += [(), *table]
    return lines


def layer_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """Return the model, how heads share keys and values, and the d_k that follows."""
    layer = cost.layer
    heads = {
        "multi-head": message("{heads} heads, each with its own keys and values", heads=layer.heads),
        "grouped-query": message(
            "{heads} query heads share {key_heads} key/value heads", heads=layer.heads, key_heads=layer.key_heads
        ),
        "multi-query": message("{heads} query heads share one key/value head", heads=layer.heads),
        "latent": message(
            "{heads} heads, whose keys and values are projected from one latent of {kv_latent}",
            heads=layer.heads,
            kv_latent=layer.kv_latent,
        ),
    }[layer.kind]
    share = message("d_model/heads = {d_model}/{heads}", d_model=layer.d_model, heads=layer.heads)
    if layer.width * layer.heads == layer.d_model:
        d_k = message("d_k {width} = {share}", width=layer.width, share=share)
    else:
        d_k = message(
            "d_k {width}, not {share} = {quotient:.4g}",
            width=layer.width,
            share=share,
            quotient=layer.d_model / layer.heads,
        )
    lines: list[Line] = []
    if preset is not None:
        lines += wrapped(glyphs.say(preset.title(layer)), width, "heading")
        lines += wrapped(glyphs.say("Source: {source}.", source=preset.source), width, "dim")
    lines += wrapped(glyphs.say("{attention}: {heads}.", attention=_ATTENTION[layer.kind], heads=heads), width)
    return lines + wrapped(glyphs.say("{d_k}; {scale}.", d_k=d_k, scale=_scale_words(layer, preset)), width)


def _scale_words(layer: Layer, preset: Preset | None) -> str:
    """Return what multiplies scores: 1/√d_k, or the rule of the model."""
    usual = message("1/√d_k multiplies scores by {multiplier:.4g}", multiplier=layer.width**-0.5)
    if preset is None or preset.scale == "sqrt_d_k":
        return usual
    factor = f", s = {preset.context_factor:g}" if "context_factor" in preset.rule.needs else ""
    words = message(
        "{formula}{factor} multiplies scores by {multiplier:.4g}",
        formula=preset.rule.formula,
        factor=factor,
        multiplier=preset.multiplier(layer),
    )
    if math.isclose(preset.multiplier(layer), layer.width**-0.5):
        return words
    return message("{rule}, not 1/√d_k, which is {multiplier:.4g}", rule=words, multiplier=layer.width**-0.5)


def matrix_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """Return the parameters of each matrix."""
    layers = cost.layer.layers
    rows: list[tuple[str, ...]] = [(message("parameters"), message("shape"), message("weights"), message("bias"))]
    for m in cost.matrices:
        bias = f"{m.bias:,}" if m.bias else "—"
        rows.append((f" {m.name}", f"{m.rows} × {m.columns}", f"{m.weights:,}", bias))
    rows.append((message(" per layer"), "", f"{cost.parameters:,}", ""))
    if layers > 1:
        rows.append((message(" {layers} layers", layers=layers), "", f"{cost.all_parameters:,}", ""))
    return _table(rows, (15, 18, 12), glyphs)


def cache_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """Return the bytes of keys and values, for a token and for the context."""
    layer = cost.layer
    layers = message(" × {layers} layers", layers=layer.layers) if layer.layers > 1 else ""
    texts = message(" × {batch} texts", batch=layer.batch) if layer.batch > 1 else ""
    per_token, numbers = _cached(layer)
    rows = [
        (
            message("KV cache"),
            message("{numbers} × {number}", numbers=per_token, number=FORMATS[layer.cache_format].word),
            "",
        ),
        (
            message(" per token"),
            message(
                "{numbers} × {number_bytes} bytes{layers}",
                numbers=numbers,
                number_bytes=layer.number_bytes,
                layers=layers,
            ),
            binary(cost.cache_per_token),
        ),
        (
            message(" the context"),
            message("{context} tokens{texts}", context=f"{layer.context:,}", texts=texts),
            binary(cost.cache),
        ),
    ]
    times = layer.heads * (layer.width + layer.value_width) / layer.cached
    if times > 1:
        rows.append(
            (
                message(" multi-head"),
                message("would need {times:.3g} times as much", times=times),
                binary(round(cost.cache * times)),
            )
        )
    return _table(rows, (-34, 12), glyphs)


def _cached(layer: Layer) -> tuple[str, str]:
    """Return how many numbers of a token the cache holds, in words and in figures."""
    if layer.rotary:
        return message("(KV latent + rotary)"), f"({layer.kv_latent} + {layer.rotary})"
    if layer.kv_latent:
        return message("KV latent"), str(layer.kv_latent)
    if layer.value_width == layer.width:
        return message("2 × key heads × d_k"), f"2 × {layer.key_heads} × {layer.width}"
    return message("key heads × (d_k + d_v)"), f"{layer.key_heads} × ({layer.width} + {layer.value_width})"


def flops_lines(cost: Cost, glyphs: Glyphs) -> list[Line]:
    """Return the operations for the next token, and for all tokens of the context at once."""
    one, every = cost.next_token, cost.whole_context
    value = "d_k" if cost.layer.value_width == cost.layer.width else "d_v"
    rows: list[tuple[str, ...]] = [
        ("FLOPs", "", message("next token"), message("all tokens")),
        (
            message(" projections"),
            message("2 × weights × tokens"),
            metric(one.projections),
            metric(every.projections),
        ),
        (" q·k", message("2 × heads × {width} × pairs", width="d_k"), metric(one.scores), metric(every.scores)),
        (
            message(" weights·v"),
            message("2 × heads × {width} × pairs", width=value),
            metric(one.weighted_sum),
            metric(every.weighted_sum),
        ),
        (message(" total"), "", metric(one.total), metric(every.total)),
    ]
    return _table(rows, (-23, 11, 12), glyphs)


def remark_lines(cost: Cost, width: int, glyphs: Glyphs, preset: Preset | None = None) -> list[Line]:
    """Return notes on what is counted."""
    layer, n = cost.layer, cost.layer.context
    scope = message("{layers} layers", layers=layer.layers) if layer.layers > 1 else message("one layer")
    if layer.batch > 1:
        scope = message("{layers} and {batch} texts", layers=scope, batch=layer.batch)
    if layer.mask == "causal":
        pairs = message(
            "all tokens make {n} × {next}/2, because the causal mask hides the rest. A kernel that computes hidden "
            "pairs too needs nearly twice as much.",
            n=f"{n:,}",
            next=f"{n + 1:,}",
        )
    else:
        pairs = message("all tokens make {n}².", n=f"{n:,}")
    texts: list[str] = [
        message(
            "FLOPs are for {scope}; a multiply–add counts as two. Biases, norms, rotary embeddings and "
            "softmax are not counted.",
            scope=scope,
        ),
        message(
            "The next token makes {n} pairs, with itself and each token before it; {pairs}", n=f"{n:,}", pairs=pairs
        ),
    ]
    if layer.kv_latent:
        texts.append(
            message(
                "For the next token, all heads attend to the cached latents, with d_k {cached} and d_v {kv_latent}.",
                cached=layer.cached,
                kv_latent=layer.kv_latent,
            )
        )
    if preset is not None and preset.note:
        texts.append(message("{note}.", note=preset.note))
    return [line for text in texts for line in wrapped(glyphs.say(text), width, "dim")]


def _table(rows: Sequence[Sequence[str]], widths: Sequence[int], glyphs: Glyphs) -> list[Line]:
    """Return a heading and its rows. `widths` are minimal; a column of negative width is a formula, aligned left."""
    said = [[glyphs.say(cell) for cell in row] for row in rows]
    lines: list[Line] = []
    for number, row in enumerate(said):
        name: Role = "heading" if number == 0 else "label"
        spans: list[Span] = [(to_left(row[0], NAME), name)]
        for at, least in enumerate(widths, 1):
            wide = max(abs(least), max(cells(other[at]) for other in said) + (least > 0))
            right: Role = "dim" if number == 0 else "text"
            spans.append((to_left(row[at], wide), "dim") if least < 0 else (to_right(row[at], wide), right))
        lines.append(tuple(spans))
    return lines


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
    return _compared(message("with other key heads"), rows, {1}, shared.index((layer.kind, layer.key_heads)), glyphs)


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
    lines = _compared(message("as the context grows"), rows, {4}, contexts.index(layer.context), glyphs)
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
    head, *lines = _compared(None, rows, {0, 11, 12}, at if at >= 0 else None, glyphs)
    lines = [head, *lines[first : first + shown]]
    if shown < len(names):
        lines.append(((glyphs.say("{count} more models (p, /)", count=len(names) - shown), "dim"),))
    return lines


def _compared(
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
