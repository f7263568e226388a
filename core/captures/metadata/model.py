"""What the configuration of the model, its config.json in the metadata, says of attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...message import message
from ..capture import Layer

_LISTED = 8  # layers in a note


def heads_of(config: Mapping[str, object], shape: tuple[int, ...]) -> dict[str, Any]:
    """Return the heads that a model's configuration gives to queries with heads side by side, and their width."""
    for inner in (config, config.get("text_config")):
        if not isinstance(inner, Mapping):
            continue
        known = cast("Mapping[str, object]", inner)
        for key in ("num_attention_heads", "n_head", "n_heads", "num_heads"):
            heads = known.get(key)
            if type(heads) is int and heads > 0 and 1 < len(shape) < 4 and shape[-1] % heads == 0:
                return {"heads": heads, "d_k": shape[-1] // heads}
    return {}


def context_factor(config: Mapping[str, object]) -> float | None:
    """Return how many times longer the model's configuration makes its context; None if it does not say."""
    for key in ("rope_scaling", "rope_parameters"):
        scaling = config.get(key)
        if isinstance(scaling, dict):
            factor = cast("dict[str, object]", scaling).get("factor")
            if isinstance(factor, (int, float)) and not isinstance(factor, bool) and factor >= 1:
                return float(factor)
    return None


def only_in_config(config: Mapping[str, object], layers: Sequence[Layer]) -> list[str]:
    """Return a note for each thing that changes attention in the model's configuration, but not in the capture."""
    inner = config.get("text_config")
    known = {**cast("Mapping[str, object]", inner), **config} if isinstance(inner, Mapping) else config
    without = {
        "attn_logit_softcapping": [layer for layer in layers if layer.softcap is None],
        "sliding_window": [layer for layer in layers if not (layer.window or layer.mask or layer.bias)],
        "attention_chunk_size": [layer for layer in layers if not (layer.chunk or layer.mask or layer.bias)],
    }
    if known.get("use_sliding_window") is False:
        del without["sliding_window"]
    notes: list[str] = []
    for key, lacking in without.items():
        value = known.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
            continue
        if key != "attn_logit_softcapping":
            types = known.get("layer_types")
            listed = cast("list[object]", types) if isinstance(types, list) else []
            word = "chunk" if "chunk" in key else "slid"
            lacking = [layer for layer in lacking if layer.keys > value and _has_type(listed, layer.index, word)]
        if lacking:
            which = ", ".join(str(layer.index) for layer in lacking[:_LISTED])
            more = ", …" if len(lacking) > _LISTED else ""
            said = message(
                "the model's configuration has {key} {value:g}, but the capture does not", key=key, value=value
            )
            notes.append(message("{said}: not applied in layer {which}{more}", said=said, which=which, more=more))
    return notes


def _has_type(types: Sequence[object], index: int, word: str) -> bool:
    """Return whether a layer has this word in its type, or no type is known."""
    return index >= len(types) or word in str(types[index])
