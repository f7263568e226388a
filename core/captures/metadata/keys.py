"""The keys of metadata, and their other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ..files import CaptureError

V = TypeVar("V")

SCHEMAS = ("attn-tui/qk-2", "attn-tui/qk-1")

# The keys that may differ between layers: those of the file, and of an entry of `layers`.
OF_LAYERS = (
    "heads", "kv_heads", "d_k", "scale", "head_scales", "prescaled", "causal", "alignment", "window", "chunk",
    "softcap", "sinks", "alibi_slopes", "rows", "attention", "mask_true", "scores", "observed", "softmax_axis",
)  # fmt: skip
OF_ENTRIES = ("index", "name", *OF_LAYERS, "mask", "backend", "notes", "layer_type")
KEYS = (
    "schema", "model", "model_source", "model_licence", "text", "text_licence", "tokens", "lengths",
    "axes", *OF_LAYERS, "scale_rule", "layers", "layer_types",
    "d_model", "n_heads", "config", "step", "versions", "capture", "notes",
)  # fmt: skip
# Other names of keys: those of model configurations.
ALIASES = {
    "sliding_window": "window", "window_size": "window", "attention_chunk_size": "chunk",
    "attn_logit_softcapping": "softcap",
}  # fmt: skip
_SLOPES = ("alibi", "slopes")  # of each head, if they are lists
# What a misspelt key may have meant, if it changes what is measured.
MEANT = {*OF_LAYERS, *ALIASES, "mask", "axes", "lengths"} - {"heads", "kv_heads", "d_k", "scores", "observed"}
# `mask` names a tensor, and is one itself in an .npz file; `format` is written by libraries.
KNOWN = (*KEYS, "mask", "format")

# Values of a key that say that there is nothing.
NOTHING = ("", "none", "null", "false", "off", "no", "[]", "0", "0.0")
# Keys near one that changes what is measured, but other words.
OTHERS = ("length", "row", "rows", "task", "layer", "final_logit_softcapping")


def first_name(key: str, value: object) -> str:
    """Return the first name of a key: `alibi` is another name of slopes if it lists them."""
    listed = isinstance(value, list) or (isinstance(value, str) and value.strip().startswith("["))
    return "alibi_slopes" if key in _SLOPES and listed else ALIASES.get(key, key)


def by_name(where: str, values: Mapping[str, V]) -> dict[str, V]:
    """Return values by the first name of their keys; raise CaptureError if two keys mean the same."""
    found: dict[str, V] = {}
    for key, value in values.items():
        name = first_name(key, value)
        if name in found:
            other = next(other for other in values if first_name(other, values[other]) == name)
            raise CaptureError(
                "{where} has both {other!r} and {key!r}; keep one of them", where=where, other=other, key=key
            )
        found[name] = value
    return found
