"""The cost of a layer as lines: its shape, matrices, cache and operations, with their formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....core.attention.cost import Cost, Layer
from ....core.attention.formats import FORMATS
from ....core.attention.presets import Preset
from ....core.message import message
from ...language.cells import cells, to_left, to_right
from ...views.glyphs import Glyphs
from ...views.lines import Line, Role, Span, wrapped
from ...views.numbers import binary, metric

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
