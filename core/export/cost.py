"""Export the cost of an attention layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..attention.cost import SHAPE_FIELDS, Cost, Flops, Matrix
from ..attention.presets import Preset
from .formats import Say, csv_text, escaped, json_text, markdown_table, version

_COST = "attn-tui/cost-1"


def cost_json(cost: Cost, preset: Preset | None) -> str:
    """Return a cost as one JSON object; `preset` is the preset that the layer started from, if any."""
    layer = cost.layer
    rule, scale = ("sqrt_d_k", layer.width**-0.5) if preset is None else (preset.scale, preset.multiplier(layer))
    return json_text(
        {
            "schema": _COST,
            "version": version(),
            "preset": None if preset is None else _preset(preset, cost),
            "layer": _shape(cost) | {"kind": layer.kind, "scale_rule": rule, "scale": scale},
            "parameters": {
                "matrices": [
                    {
                        "name": matrix.name,
                        "shape": [matrix.rows, matrix.columns],
                        "weights": matrix.weights,
                        "bias": matrix.bias,
                        "parameters": matrix.parameters,
                    }
                    for matrix in cost.matrices
                ],
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
    )


def cost_csv(cost: Cost, preset: Preset | None) -> str:
    """Return a line for each figure. Every line contains the shape, so files can be concatenated."""
    place = {"preset": None if preset is None else preset.name} | _shape(cost)
    lines = [[*place.values(), *figure] for figure in _figures(cost)]
    return csv_text([*place, "quantity", "value", "unit"], lines)


def cost_markdown(cost: Cost, preset: Preset | None, say: Say = str) -> str:
    """Return the layer's shape, a table of its matrices, and a table of the other figures."""
    shape = _shape(cost)
    words = ", ".join(f"{field.label} {shape[field.name]}" for field in SHAPE_FIELDS)
    title = words if preset is None else f"{preset.title(cost.layer)}: {words}"
    matrices = [
        (m.name, f"{m.rows} × {m.columns}", f"{m.weights:,}", f"{m.bias:,}", f"{m.parameters:,}")
        for m in cost.matrices
    ]
    of_matrices = [_of_matrix(matrix) for matrix in cost.matrices]
    figures = [
        (name.replace("_", " "), f"{value:,}", unit)
        for name, value, unit in _figures(cost)
        if name not in of_matrices
    ]
    return "\n".join(
        [
            f"{escaped(title, say)}\n",
            markdown_table(("matrix", "shape", "weights", "bias", "parameters"), matrices, say),
            markdown_table(("figure", "value", "unit"), figures, say),
        ]
    )


def _preset(preset: Preset, cost: Cost) -> dict[str, Any]:
    return {
        "name": preset.name,
        "model": preset.model,
        "source": preset.source,
        "note": preset.note or None,
        "changed": preset.changed(cost.layer),
    }


def _of_matrix(matrix: Matrix) -> str:
    return f"parameters_{matrix.name.lower()}"


def _shape(cost: Cost) -> dict[str, Any]:
    """Return the shape, including the fields that were not set."""
    layer = cost.layer
    return {field.name: getattr(layer, field.name) for field in SHAPE_FIELDS} | {
        "kv_heads": layer.key_heads,
        "d_k": layer.width,
        "d_v": layer.value_width,
    }


def _flops(flops: Flops) -> dict[str, int]:
    return {
        "projections": flops.projections,
        "scores": flops.scores,
        "weighted_sum": flops.weighted_sum,
        "total": flops.total,
    }


def _figures(cost: Cost) -> Iterator[tuple[str, int, str]]:
    """Yield the name, value and unit of every figure."""
    for matrix in cost.matrices:
        yield _of_matrix(matrix), matrix.parameters, "parameters"
    yield "parameters_layer", cost.parameters, "parameters"
    yield "parameters_all_layers", cost.all_parameters, "parameters"
    yield "kv_cache_per_token", cost.cache_per_token, "bytes"
    yield "kv_cache", cost.cache, "bytes"
    for when, flops in (("next_token", cost.next_token), ("whole_context", cost.whole_context)):
        for what, value in _flops(flops).items():
            yield f"flops_{when}_{what}", value, "FLOPs"
