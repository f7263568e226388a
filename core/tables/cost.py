"""The cost of an attention layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from ..attention.cost import SHAPE_FIELDS, Cost, Flops, LayerShape, ProjectionMatrix, cost
from ..attention.formats import FORMATS
from ..attention.presets import PRESETS, Preset
from ..message import counted, message
from ..scales import SCALE_RULES
from .formats import binary, metric
from .table import Block, Cell, Table, TextGrid, entry, grid, table_of, text_cell

Figure: TypeAlias = tuple[str, int, str]  # its name, value and unit


def cost_table(cost: Cost, preset: Preset | None) -> Table[Figure]:
    """Return a cost; `preset` is the preset that the layer started from, if any.

    CSV has a line for each figure, which contains the shape, so files can be joined.
    """
    layer = cost.layer
    rule, scale = _scale(layer, preset)
    head = {
        "preset": None if preset is None else _preset(preset, cost),
        "layer": layer.shape | {"kind": layer.kind, "scale_rule": rule, "scale": scale},
        "parameters": {
            "matrices": [entry(_MATRIX, matrix) for matrix in cost.matrices],
            "layer": cost.parameters,
            "all_layers": cost.all_parameters,
        },
        "kv_cache": {
            "bytes_per_number": layer.number_bytes,
            "bytes_per_token": cost.cache_per_token,
            "bytes": cost.cache,
        },
        "flops": {
            "next_token": _flops(cost.next_token) | {"pairs": layer.context},
            "whole_context": _flops(cost.whole_context) | {"pairs": layer.pairs},
        },
    }
    place = {"preset": None if preset is None else preset.name} | layer.shape
    return table_of("cost-1", head, "", [*figures(cost)], _CELLS, lambda: _page(cost, preset), place)


_MATRIX: Sequence[Cell[ProjectionMatrix]] = (
    Cell("name", str, label="matrix"),
    Cell("shape", object, lambda m: [m.rows, m.columns], message("shape"), lambda m: f"{m.rows} × {m.columns}"),
    Cell("weights", int, label=message("weights"), words=lambda m: f"{m.weights:,}"),
    Cell("bias", int, label=message("bias"), words=lambda m: f"{m.bias:,}"),
    Cell("parameters", int, label=message("parameters"), words=lambda m: f"{m.parameters:,}"),
)
_CELLS: Sequence[Cell[Figure]] = (
    Cell("quantity", str, lambda figure: figure[0], "figure", lambda figure: figure[0].replace("_", " ")),
    Cell("value", int, lambda figure: figure[1], "value", lambda figure: f"{figure[1]:,}"),
    Cell("unit", str, lambda figure: figure[2], "unit"),
)


def _page(cost: Cost, preset: Preset | None) -> list[Block]:
    """Return the layer's shape, a table of its matrices, and a table of the other figures."""
    shape = cost.layer.shape
    words = ", ".join(f"{field.label} {shape[field.name]}" for field in SHAPE_FIELDS)
    return [
        words if preset is None else f"{preset.heading(cost.layer)}: {words}",
        grid(_MATRIX, cost.matrices),
        grid(_CELLS, [*figures(cost)][len(cost.matrices) :]),
    ]


def _preset(preset: Preset, cost: Cost) -> dict[str, Any]:
    return {
        "name": preset.name,
        "model": preset.title,
        "source": preset.source,
        "note": preset.note or None,
        "changed": preset.changed(cost.layer),
    }


def _scale(layer: LayerShape, preset: Preset | None) -> tuple[str, float]:
    """Return the name of the scale rule, and what it multiplies scores by."""
    return ("sqrt_d_k", layer.width**-0.5) if preset is None else (preset.scale, preset.multiplier(layer))


def _flops(flops: Flops) -> dict[str, int]:
    return {name: getattr(flops, name) for name in ("projections", "scores", "weighted_sum", "total")}


def figures(cost: Cost) -> Iterator[Figure]:
    """Yield every figure, those of the matrices first."""
    for matrix in cost.matrices:
        yield f"parameters_{matrix.name.lower()}", matrix.parameters, "parameters"
    yield "parameters_layer", cost.parameters, "parameters"
    yield "parameters_all_layers", cost.all_parameters, "parameters"
    yield "kv_cache_per_token", cost.cache_per_token, "bytes"
    yield "kv_cache", cost.cache, "bytes"
    for when, flops in (("next_token", cost.next_token), ("whole_context", cost.whole_context)):
        for what, value in _flops(flops).items():
            yield f"flops_{when}_{what}", value, "FLOPs"


def cost_blocks(cost: Cost, preset: Preset | None) -> list[Block]:
    """Return what a terminal shows: the layer, its parameters, KV cache and FLOPs with formulas, and remarks."""
    words = [] if preset is None else [preset.heading(cost.layer), message("Source: {source}.", source=preset.source)]
    tables = _parameters(cost), _cache(cost), _operations(cost)
    return [*words, *_layer(cost.layer, preset), *tables, *_remarks(cost, preset)]


_SHARING = {
    "multi-head": message("Multi-head attention: {heads} heads, each with its own keys and values."),
    "grouped-query": message("Grouped-query attention: {heads} query heads share {key_heads} key/value heads."),
    "multi-query": message("Multi-query attention: {heads} query heads share one key/value head."),
    "latent": message(
        "Latent attention: {heads} heads, whose keys and values are projected from one latent of {kv_latent}."
    ),
}


def _layer(layer: LayerShape, preset: Preset | None) -> Iterator[str]:
    """Yield how heads share keys and values, and d_k with what multiplies scores."""
    yield message(_SHARING[layer.kind], heads=layer.heads, key_heads=layer.key_heads, kv_latent=layer.kv_latent)
    share = message("d_model/heads = {d_model}/{heads}", d_model=layer.d_model, heads=layer.heads)
    d_k = message("d_k {width} = {share}", width=layer.width, share=share)
    if layer.width * layer.heads != layer.d_model:
        quotient = layer.d_model / layer.heads
        d_k = message("d_k {width}, not {share} = {quotient:.4g}", width=layer.width, share=share, quotient=quotient)
    usual = layer.width**-0.5
    scale = message("1/√d_k multiplies scores by {multiplier:.4g}", multiplier=usual)
    if preset is not None and preset.scale != "sqrt_d_k":
        used, formula = preset.multiplier(layer), preset.rule.formula
        factor = f", s = {preset.context_factor:g}" if "context_factor" in preset.rule.needs else ""
        scale = message(
            "{formula}{factor} multiplies scores by {multiplier:.4g}", formula=formula, factor=factor, multiplier=used
        )
        if not math.isclose(used, usual):
            scale = message("{rule}, not 1/√d_k, which is {multiplier:.4g}", rule=scale, multiplier=usual)
    yield message("{d_k}; {scale}.", d_k=d_k, scale=scale)


def _parameters(cost: Cost) -> TextGrid:
    layers, matrices = cost.layer.layers, grid(_MATRIX[:4], cost.matrices)
    rows = [*matrices.lines, [message("per layer"), "", f"{cost.parameters:,}", ""]]
    if layers > 1:
        rows.append([message("{layers} layers", layers=layers), "", f"{cost.all_parameters:,}", ""])
    return TextGrid([message("parameters"), *matrices.header[1:]], rows)


def _cache(cost: Cost) -> TextGrid:
    """Return the bytes of keys and values, for a token and for the context."""
    layer, size = cost.layer, cost.layer.number_bytes
    layers = message(" × {layers} layers", layers=layer.layers) if layer.layers > 1 else ""
    texts = message(" × {batch} texts", batch=layer.batch) if layer.batch > 1 else ""
    words, numbers = _cached(layer)
    token = message("{numbers} × {number_bytes} bytes{layers}", numbers=numbers, number_bytes=size, layers=layers)
    context = message("{context} tokens{texts}", context=f"{layer.context:,}", texts=texts)
    rows = [
        [message("per token"), token, binary(cost.cache_per_token)],
        [message("the context"), context, binary(cost.cache)],
    ]
    times = layer.heads * (layer.width + layer.value_width) / layer.cached
    if times > 1:
        factor_text = message("would need {times:.3g} times as much", times=times)
        rows.append([message("multi-head"), factor_text, binary(round(cost.cache * times))])
    formula = message("{numbers} × {number}", numbers=words, number=FORMATS[layer.cache_format].word)
    return TextGrid([message("KV cache"), formula, ""], rows)


def _cached(layer: LayerShape) -> tuple[str, str]:
    """Return how many numbers of a token the cache holds, in words and in figures."""
    if layer.rotary:
        return message("(KV latent + rotary)"), f"({layer.kv_latent} + {layer.rotary})"
    if layer.kv_latent:
        return message("KV latent"), str(layer.kv_latent)
    if layer.value_width == layer.width:
        return message("2 × key heads × d_k"), f"2 × {layer.key_heads} × {layer.width}"
    return message("key heads × (d_k + d_v)"), f"{layer.key_heads} × ({layer.width} + {layer.value_width})"


def _operations(cost: Cost) -> TextGrid:
    """Return the operations for the next token, and for all tokens of the context at once."""
    value = "d_k" if cost.layer.value_width == cost.layer.width else "d_v"
    rows = {
        "projections": (message("projections"), message("2 × weights × tokens")),
        "scores": ("q·k", message("2 × heads × {width} × pairs", width="d_k")),
        "weighted_sum": (message("weights·v"), message("2 × heads × {width} × pairs", width=value)),
        "total": (message("total"), ""),
    }
    both = cost.next_token, cost.whole_context
    lines = [[*words, *(metric(getattr(flops, name)) for flops in both)] for name, words in rows.items()]
    return TextGrid(["FLOPs", "", message("next token"), message("all tokens")], lines)


def _remarks(cost: Cost, preset: Preset | None) -> Iterator[str]:
    """Yield what is counted and what is not."""
    layer, n, token = cost.layer, cost.layer.context, cost.next_token
    scope = message("{layers} layers", layers=layer.layers) if layer.layers > 1 else message("one layer")
    if layer.batch > 1:
        scope = message("{layers} and {batch} texts", layers=scope, batch=layer.batch)
    yield message(
        "FLOPs are for {scope}; a multiply–add counts as two. Biases, norms, rotary embeddings and softmax are not "
        "counted.",
        scope=scope,
    )
    pairs = message("all tokens make {n}².", n=f"{n:,}")
    if layer.mask == "causal":
        pairs = message(
            "all tokens make {n} × {next}/2, because the causal mask hides the rest. A kernel that computes hidden "
            "pairs too needs nearly twice as much.",
            n=f"{n:,}",
            next=f"{n + 1:,}",
        )
    yield message(
        "The next token makes {n} pairs, with itself and each token before it; {pairs}", n=f"{n:,}", pairs=pairs
    )
    if layer.kv_latent:
        yield message(
            "For the next token, all heads attend to the cached latents, with d_k {cached} and d_v {kv_latent}.",
            cached=layer.cached,
            kv_latent=layer.kv_latent,
        )
    even = -(-token.projections * n // (token.scores + token.weighted_sum))
    yield message("q·k and weights·v cost more than the projections from {even:,} tokens up.", even=even)
    if preset is not None and preset.note:
        yield message("{note}.", note=preset.note)


Variant: TypeAlias = tuple[str, Cost, Preset | None]  # what it is, its cost, and the model that it is of

_VARIANT: Sequence[Cell[Variant]] = (
    text_cell(message("layer"), lambda variant: variant[0]),
    text_cell(message("attention"), lambda variant: variant[1].layer.kind),
    text_cell(message("KV cache"), lambda variant: binary(variant[1].cache)),
    text_cell(message("next token"), lambda variant: f"{metric(variant[1].next_token.total)}FLOPs"),
    text_cell(message("in q·k and weights·v"), lambda variant: f"{100 * _attending(variant[1].next_token):.4g} %"),
    text_cell(message("parameters"), lambda variant: metric(variant[1].all_parameters)),
    text_cell(message("KV per token"), lambda variant: binary(variant[1].cache_per_token)),
    text_cell(message("context"), lambda variant: f"{variant[1].layer.context:,}"),
    text_cell(message("key heads"), lambda variant: str(variant[1].layer.key_heads)),
    text_cell(message("heads"), lambda variant: str(variant[1].layer.heads)),
    text_cell("d_k", lambda variant: str(variant[1].layer.width)),
    text_cell("d_model", lambda variant: str(variant[1].layer.d_model)),
    text_cell(message("layers"), lambda variant: str(variant[1].layer.layers)),
    text_cell(message("× score"), lambda variant: f"{_scale(variant[1].layer, variant[2])[1]:.4g}"),
    text_cell(message("scale"), lambda variant: SCALE_RULES[_scale(variant[1].layer, variant[2])[0]].label),
)


def _attending(flops: Flops) -> float:
    """Return the share of the operations that are not projections."""
    return 1 - flops.projections / flops.total


def variants(cost_: Cost, preset: Preset | None) -> TextGrid:
    """Return the layer beside what it costs with other key heads, and in other contexts, and beside all models."""
    layer = cost_.layer
    variants: list[Variant] = [(message("this layer"), cost_, preset)]
    for count in _key_heads(layer):
        other = replace(layer, kv_heads=count, kv_latent=0, rotary=0)
        variants.append((counted("{number} key head", "{number} key heads", count), cost(other), preset))
    for context in sorted({4**power for power in range(5, 11)} - {layer.context}):
        words = message("{context} tokens{texts}", context=f"{context:,}", texts="")
        variants.append((words, cost(replace(layer, context=context)), preset))
    beside = grid(_VARIANT, variants)
    return TextGrid(beside.header, [*beside.lines, *_models(layer.cache_format)])


@lru_cache(maxsize=len(FORMATS))
def _models(cache_format: str) -> Sequence[Sequence[str]]:
    """Return a row for each model, which no key changes."""
    layers = [(each, replace(each.layer, cache_format=cache_format)) for each in PRESETS.values()]
    return grid(_VARIANT, [(each.title, cost(layer), each) for each, layer in layers]).lines


_MOST_SHARINGS = 7  # numbers of key heads


def _key_heads(layer: LayerShape) -> list[int]:
    """Return numbers of key heads that divide the heads, each half of the one before, and 1, but the layer's own."""
    counts, half = {layer.heads, layer.key_heads, 1}, layer.heads
    while half % 2 == 0 and len(counts) < _MOST_SHARINGS:
        half //= 2
        counts.add(half)
    return sorted(counts if layer.kv_latent else counts - {layer.key_heads}, reverse=True)
