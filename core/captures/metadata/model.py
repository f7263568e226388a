"""What the configuration of the model, its config.json in the metadata, says of attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...message import message
from ..capture import Layer

_LISTED = 8  # layers in a note
# Keys that apply to layers of a type, by a word of it.
_OF_TYPES = {"sliding_window": "slid", "attention_chunk_size": "chunk"}
# What models of a type have without a key that says so.
_LACKING = {"bloom": "ALiBi", "gpt_oss": message("sinks")}
# transformers: modeling_opt.py, modeling_whisper.py and modeling_esm.py scale q before attention, and pass scaling=1.
_PRESCALED = ("opt", "whisper", "esm")


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
    known = {**_inner(config, "text_config"), **_inner(config, "attn_config"), **config}
    unscaled = [layer for layer in layers if layer.scale is None and not (layer.head_scales or layer.scales)]
    unbiased = [layer for layer in layers if not (layer.bias or layer.cross)]
    without = {
        "attn_logit_softcapping": [layer for layer in layers if layer.softcap is None],
        "sliding_window": [layer for layer in layers if not (layer.window or layer.mask or layer.bias)],
        "attention_chunk_size": [layer for layer in layers if not (layer.chunk or layer.mask or layer.bias)],
        "query_pre_attn_scalar": unscaled,
        "attention_multiplier": unscaled,
        "scale_attn_by_inverse_layer_idx": unscaled,
        "alibi": unbiased,
        "relative_attention_num_buckets": unbiased,
    }
    if known.get("use_sliding_window") is False:
        del without["sliding_window"]
    notes: list[str] = []
    for key, lacking in without.items():
        value = known.get(key)
        if not isinstance(value, (int, float)) or not value > 0:
            continue
        if key in _OF_TYPES:
            types = known.get("layer_types")
            listed = cast("list[object]", types) if isinstance(types, list) else []
            lacking = [
                layer for layer in lacking if layer.keys > value and _has_type(listed, layer.index, _OF_TYPES[key])
            ]
        shown = "true" if value is True else f"{value:g}"
        said = message("the model's configuration has {key} {value}, but the capture does not", key=key, value=shown)
        notes += _not_applied(said, lacking)
    kind = str(known.get("model_type"))
    if kind in _LACKING:
        said = message("models of type {kind} have {what}, but the capture does not", kind=kind, what=_LACKING[kind])
        notes += _not_applied(said, unbiased if kind != "gpt_oss" else [layer for layer in layers if not layer.sinks])
    if kind in _PRESCALED and any(layer.scale == 1 and layer.own_factor == 1 for layer in layers):
        notes.append(
            message(
                "models of type {kind} multiply q by 1/√d_k before attention: if the stored q contains it, metadata "
                "'prescaled' says so",
                kind=kind,
            )
        )
    return notes


def _inner(config: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return a configuration inside another one; an empty one if there is none."""
    found = config.get(key)
    return cast("Mapping[str, object]", found) if isinstance(found, Mapping) else {}


def _not_applied(said: str, lacking: Sequence[Layer]) -> list[str]:
    """Return the note on what layers lack; none if no layer does."""
    if not lacking:
        return []
    which = ", ".join(str(layer.index) for layer in lacking[:_LISTED])
    more = ", …" if len(lacking) > _LISTED else ""
    return [message("{said}: not applied in layer {which}{more}", said=said, which=which, more=more)]


def _has_type(types: Sequence[object], index: int, word: str) -> bool:
    """Return whether a layer has this word in its type, or no type is known."""
    return index >= len(types) or word in str(types[index])
