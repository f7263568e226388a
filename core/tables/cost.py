"""The cost of an attention layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..attention.cost import SHAPE_FIELDS, Cost, Flops, Matrix
from ..attention.presets import Preset
from .table import Block, Cell, Table, entry, grid, table_of

Figure: TypeAlias = tuple[str, int, str]  # its name, value and unit


def cost_table(cost: Cost, preset: Preset | None) -> Table[Figure]:
    """Return a cost; `preset` is the preset that the layer started from, if any.

    CSV has a line for each figure, which contains the shape, so files can be joined.
    """
    layer = cost.layer
    rule, scale = ("sqrt_d_k", layer.width**-0.5) if preset is None else (preset.scale, preset.multiplier(layer))
    head = {
        "preset": None if preset is None else _preset(preset, cost),
        "layer": _shape(cost) | {"kind": layer.kind, "scale_rule": rule, "scale": scale},
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
    place = {"preset": None if preset is None else preset.name} | _shape(cost)
    return table_of("cost-1", head, "", [*figures(cost)], _CELLS, lambda: _page(cost, preset), place)


_MATRIX: Sequence[Cell[Matrix]] = (
    Cell("name", str, label="matrix"),
    Cell("shape", object, lambda m: [m.rows, m.columns], "shape", lambda m: f"{m.rows} × {m.columns}"),
    Cell("weights", int, label="weights", words=lambda m: f"{m.weights:,}"),
    Cell("bias", int, label="bias", words=lambda m: f"{m.bias:,}"),
    Cell("parameters", int, label="parameters", words=lambda m: f"{m.parameters:,}"),
)
_CELLS: Sequence[Cell[Figure]] = (
    Cell("quantity", str, lambda figure: figure[0], "figure", lambda figure: figure[0].replace("_", " ")),
    Cell("value", int, lambda figure: figure[1], "value", lambda figure: f"{figure[1]:,}"),
    Cell("unit", str, lambda figure: figure[2], "unit"),
)


def _page(cost: Cost, preset: Preset | None) -> list[Block]:
    """Return the layer's shape, a table of its matrices, and a table of the other figures."""
    shape = _shape(cost)
    words = ", ".join(f"{field.label} {shape[field.name]}" for field in SHAPE_FIELDS)
    return [
        words if preset is None else f"{preset.title(cost.layer)}: {words}",
        grid(_MATRIX, cost.matrices),
        grid(_CELLS, [*figures(cost)][len(cost.matrices) :]),
    ]


def _preset(preset: Preset, cost: Cost) -> dict[str, Any]:
    return {
        "name": preset.name,
        "model": preset.model,
        "source": preset.source,
        "note": preset.note or None,
        "changed": preset.changed(cost.layer),
    }


def _shape(cost: Cost) -> dict[str, Any]:
    """Return the shape, including the fields that were not set."""
    layer = cost.layer
    return {field.name: getattr(layer, field.name) for field in SHAPE_FIELDS} | {
        "kv_heads": layer.key_heads,
        "d_k": layer.width,
        "d_v": layer.value_width,
    }


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
