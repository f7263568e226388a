"""The metadata of a file and of each of its layers: strings in, typed values or one clear error out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from ..message import Plain, message, plain, quoted
from ..texts import TextError, from_json
from .capture import Corner, Layer, Meaning, StatedLayer
from .features import (
    KNOWN,
    MEANT,
    OF_ENTRIES,
    OF_LAYERS,
    SCHEMAS,
    Causal,
    Values,
    by_name,
    first_name,
    sequence,
    strings,
)
from .files import LARGEST_HEADER, CaptureError
from .unknown import denied_changes_attention, metadata_changes_attention, unknown_change

_WHOLE = ("metadata", "meta")  # keys whose value may be all metadata, as one JSON object
# Values of a key that say that there is nothing.
_NOTHING = ("", "none", "null", "false", "off", "no", "[]", "0", "0.0")
# Keys near one that changes what is measured, but other words.
_OTHER_KEYS = ("length", "row", "rows", "task", "layer", "final_logit_softcapping")
# Types of layers whose weights are not softmax of scaled scores of every key.
_OTHER_LAYERS = re.compile(
    r"linear|sparse_att|block_sparse|recurrent|mamba|conv|delta|compressed|sigmoid|differential"
)
_LISTED = 8  # layers in a note
# Keys that apply to layers of a type, by a word of it.
_OF_TYPES = {"sliding_window": "slid", "attention_chunk_size": "chunk"}
# What models of a type have without a key that says so.
_LACKING = {"bloom": "ALiBi", "gpt_oss": message("sinks")}
# transformers: modeling_opt.py, modeling_whisper.py and modeling_esm.py scale q before attention, and pass scaling=1.
_PRESCALED = ("opt", "whisper", "esm")


@dataclass(frozen=True, kw_only=True)
class LayerMetadata(StatedLayer):
    """The metadata of one layer, by the names of FEATURES; None where a value is missing."""

    index: int | None = None  # the layer's number, in its entry
    name: Plain | None = None
    heads: int | None = None
    kv_heads: int | None = None
    d_k: int | None = None
    causal: Causal | None = None
    alignment: Corner | None = None  # of a window, and of a causal mask
    slopes: tuple[float, ...] | None = None  # of each head, for distances of query and key (ALiBi)
    sinks: tuple[float, ...] | None = None  # a logit of no key for each head
    rows: tuple[int, ...] | None = None  # the position of each query
    attention: Literal["self", "cross", "heads"] | None = None  # what queries and keys are
    mask_true: Meaning | None = None
    notes: Plain | None = None  # a recorder's
    mask: str | None = None
    flash: bool = False  # whether the alignment is flash-attention's, since the window has its name and form
    unmasked: bool = False  # whether the mask is explicitly null
    left_padded: bool = False  # whether padding precedes the tokens of texts
    refusal: str = ""  # why the layer cannot be measured


def layer_metadata(
    where: str, entry: Mapping[str, object], shared: Mapping[str, str], given: Collection[str]
) -> LayerMetadata:
    """Return the metadata of a layer with this entry in a file with the `shared` values, under their first names.

    `given` are the keys as the file has them. Raise CaptureError, naming the key, for a value that is not accepted.
    """
    members = by_name(where, entry)
    kind = _kind(members)
    others = [key for key, word in (("window", "slid"), ("chunk", "chunk")) if word not in kind]
    if any(word in kind for word in ("full", "global", "slid", "chunk")):  # the file's are of other layers
        shared = {key: value for key, value in shared.items() if key not in others}
    values = Values(where, members, shared)
    parsed: dict[str, Any] = {
        feature.name: feature.parse(values) for feature in OF_LAYERS if feature.parse is not None
    }
    parsed |= {key: None for key in ("name", "index") if key not in members}  # the file's own are not a layer's
    flash = parsed["alignment"] is None and "window_size" in (entry if "window" in members else given)
    flash = flash and not str(values.get("window")).strip().isdigit()
    parsed["alignment"] = "bottom_right" if flash else parsed["alignment"]
    return LayerMetadata(
        **parsed,
        flash=flash,
        unmasked="mask" in members and members["mask"] is None,
        left_padded=str(values.get("padding_side")).strip().lower() == "left",
        refusal=_unknown_change(values) or _missing_window(kind, parsed),
    )


def _kind(members: Mapping[str, object]) -> str:
    """Return the type of a layer; local attention is of a sliding window, as in GPT-Neo and ModernBERT."""
    return str(members.get("layer_type") or "").lower().replace("local", "sliding")


def _missing_window(kind: str, parsed: Mapping[str, object]) -> str:
    """Return why a layer is refused for its type, which is unknown, or needs a window or chunks that are missing."""
    if _OTHER_LAYERS.search(kind):
        return message("metadata 'layer_type' is {kind}, which attn-tui does not know", kind=quoted(kind))
    for missing, word in (("chunk", "chunk"), ("window", "slid")):
        if word in kind and parsed[missing] is None:
            return message(
                "metadata 'layer_type' is {kind}, but {missing!r} is missing", kind=quoted(kind), missing=missing
            )
    return ""


def _unknown_change(values: Values) -> str:
    """Return why a layer is refused for a key that may change its attention; empty if there is none."""
    unknown = {key: value for key, value in values.shared.items() if key not in KNOWN}
    unknown |= {key: value for key, value in values.own.items() if key not in OF_ENTRIES}
    for key, value in unknown.items():
        nothing = str(value).strip().lower() in _NOTHING
        if nothing and not denied_changes_attention(key, value):
            continue
        near = [] if nothing or key in _OTHER_KEYS else get_close_matches(key.lower(), MEANT, 1, 0.8)
        if near or nothing or metadata_changes_attention(key, value):
            hint = message("; did you mean {near!r}?", near=near[0]) if near else ""
            return unknown_change(message("metadata {key}", key=quoted(key)), key, hint)
    return ""


def unpacked(path: Path, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values with those of a JSON object under `metadata` or `meta` beside the others.

    Raise CaptureError for a key that is there twice.
    """
    found = dict(values)
    for whole in _WHOLE:
        try:
            inner = from_json(values.get(whole, ""))
        except TextError:
            continue
        if not isinstance(inner, dict):
            continue
        del found[whole]
        for key, value in cast("Mapping[str, object]", inner).items():
            if key in found:
                raise CaptureError(
                    "{path}: metadata has {key!r} twice, once in {whole!r}; keep one of them",
                    path=plain(path),
                    key=key,
                    whole=whole,
                )
            found[key] = value if isinstance(value, str) else json.dumps(value)
    return found


class Metadata:
    """The metadata of one file. Every method raises CaptureError, naming the key, for a value it cannot read."""

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self._where = message("{path}: metadata", path=plain(path))
        self._given = frozenset(values)
        self._values = by_name(self._where, values)
        self.values = Values(self._where, {}, self._values)
        length = sum(len(value) for value in values.values())
        if length > LARGEST_HEADER:
            raise CaptureError(
                "{where} must have at most {largest_header} characters, not {length}",
                where=self._where,
                largest_header=LARGEST_HEADER,
                length=length,
            )
        self._entries = self._layer_entries()
        self._read: set[int] = set()  # identities of the entries that belong to a layer
        self._indexed = any("index" in entry for entry in self._entries)
        self._by_index: dict[int, Mapping[str, object]] = {}
        for entry in self._entries if self._indexed else []:
            index = Values(self._where, entry, {}).count("index", least=0)
            if index is None or index in self._by_index:
                raise CaptureError(
                    "{where} 'layers' must have a different \"index\" in each entry, or in none", where=self._where
                )
            self._by_index[index] = entry
        schema = values.get("schema")
        if schema is not None and schema.startswith("attn-tui/") and schema not in SCHEMAS:
            raise self.values.error("schema", schema, message("one of {schemas}", schemas=", ".join(SCHEMAS)))

    @property
    def unused(self) -> tuple[str, ...]:
        """The keys without meaning here: those of the file, and as `layers[].key` those of its entries."""
        unknown = [key for key in self._values if key not in KNOWN]
        if self._values.get("schema", SCHEMAS[0]) not in SCHEMAS:
            unknown.append("schema")
        for number, entry in enumerate(self._entries):
            unknown += [f"layers[{number}]"] if id(entry) not in self._read else []
            unknown += [f"layers[].{key}" for key in entry if first_name(key, entry[key]) not in OF_ENTRIES]
        return tuple(dict.fromkeys(unknown))

    @cached_property
    def config(self) -> Mapping[str, object] | None:
        """The model's configuration; None if the file has none."""
        value = self._values.get("config")
        if value is None:
            return None
        config = self.values.json("config", value)
        if not isinstance(config, dict):
            raise self.values.error("config", value, "a JSON object")
        return cast("Mapping[str, object]", config)

    def texts(self, batch: int) -> tuple[Plain, ...] | None:
        """Return the text of each batch element, from a JSON list of strings or one plain string."""
        value = self._values.get("text")
        if value is None:
            return None
        if value.lstrip().startswith("["):
            try:
                listed = strings(from_json(value))
            except TextError:
                listed = None  # a plain text may begin with a bracket
            if listed is not None and len(listed) == batch:
                return listed
        return (plain(value),)

    def tokens(self, key: str = "tokens") -> tuple[tuple[Plain, ...], ...] | None:
        """Return the tokens of each batch element, from a JSON list of strings (one text) or a list of such lists."""
        value = self._values.get(key)
        if value is None:
            return None
        listed = self.values.json(key, value)
        flat = strings(listed)
        texts = [flat] if flat is not None else [strings(text) for text in sequence(listed)]
        if not texts or None in texts:
            raise self.values.error(key, value, "a JSON list of strings, or a list of such lists")
        return tuple(text for text in texts if text is not None)

    def lengths(self) -> tuple[int, ...] | None:
        """Return the number of tokens of each batch element that are not padding."""
        return self.values.whole_numbers("lengths", 1, "a JSON list of positive whole numbers", math.inf)

    def layer(self, position: int, index: int, layers: int, numbered: bool = True) -> LayerMetadata:
        """Return the metadata of layer `index`, at `position` of `layers`; its own entries override the file's.

        The only entry belongs to an only layer that is not `numbered`, and gives it its number.
        """
        entry = self._entries[0] if layers == len(self._entries) == 1 and not numbered else None
        entry = entry or self._entry(position, index, layers)
        if entry and id(entry) in self._read:
            raise CaptureError(
                "{where} 'layers' has one entry for several layers with the number {index}; leave out \"index\", and "
                "list all layers in order",
                where=self._where,
                index=index,
            )
        self._read.add(id(entry))
        kind = self._layer_type(index if numbered else None)
        return layer_metadata(self._where, {**kind, **entry}, self._values, self._given)

    def check_entries(self, layers: Sequence[Layer], labels: Sequence[str]) -> None:
        """Raise CaptureError for an entry of `layers` that is of another layer by its name, or of none by its index.

        `labels` are the parts that the names of each layer's tensors share.
        """
        for layer, label in zip(layers, labels, strict=True):
            name = self._entry(layer.position, layer.index, len(layers)).get("name")
            if isinstance(name, str) and name != label and name in labels:
                raise CaptureError(
                    "{where} 'layers' names the entry of layer {index} {name}, which is layer {own}; correct its "
                    '"index"',
                    where=self._where,
                    index=layer.index,
                    name=quoted(name),
                    own=layers[labels.index(name)].index,
                )
        for number, entry in enumerate(self._entries if self._indexed else ()):
            if id(entry) not in self._read:
                raise CaptureError(
                    "{where} 'layers'[{number}] has index {index}, which no layer has; layers are {known}",
                    where=self._where,
                    number=number,
                    index=quoted(entry.get("index")),
                    known=", ".join(str(layer.index) for layer in layers[:8]) + (", …" if len(layers) > 8 else ""),
                )

    def _layer_type(self, index: int | None) -> Mapping[str, str]:
        """Return the type of layer `index` in the list of all layers' types, if there is one."""
        value = self._values.get("layer_types")
        if value is None:
            return {}
        kinds = strings(self.values.json("layer_types", value))
        if kinds is None or (len({*kinds}) > 1 and (index is None or index >= len(kinds))):
            raise self.values.error("layer_types", value, "a JSON list with the type of each layer of the model")
        return {"layer_type": kinds[0] if index is None or index >= len(kinds) else kinds[index]}

    def _layer_entries(self) -> list[Mapping[str, object]]:
        value = self._values.get("layers")
        if value is None:
            return []
        entries = sequence(self.values.json("layers", value))
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self.values.error("layers", value, "a JSON list of objects, one for each layer")
        return cast("list[Mapping[str, object]]", entries)

    def _entry(self, position: int, index: int, layers: int) -> Mapping[str, object]:
        """Return the layer's entry, by explicit index, else position, else number if there are more entries."""
        entries = self._entries
        nothing: Mapping[str, object] = {}
        if not entries:
            return nothing
        if self._indexed:
            return self._by_index.get(index, nothing)
        if len(entries) == layers:
            return entries[position]
        if index < len(entries):
            return entries[index]
        raise CaptureError(
            "{where} 'layers' has {count} entries for {layers} layers; add an \"index\" to each entry",
            where=self._where,
            count=len(entries),
            layers=layers,
        )


def heads_of(config: Mapping[str, object], shape: tuple[int, ...], by_width: bool = False) -> dict[str, Any]:
    """Return the heads that a model's configuration gives to queries with heads side by side, and their width.

    With `by_width`, only if the configuration says that all heads are as wide as the last axis.
    """
    for inner in (config, _inner(config, "text_config")):
        heads = config_heads(inner)
        if heads is None or not 1 < len(shape) < 4 or shape[-1] % heads:
            continue
        head_dim, hidden = inner.get("head_dim"), inner.get("hidden_size")
        width = heads * head_dim if type(head_dim) is int else hidden
        if not by_width or (heads > 1 and shape[-1] == width):
            return {"heads": heads, "d_k": shape[-1] // heads}
    return {}


def config_heads(config: Mapping[str, object]) -> int | None:
    """Return the number of heads of a layer in a model's configuration."""
    for key in ("num_attention_heads", "n_head", "n_heads", "num_heads"):
        heads = config.get(key)
        if type(heads) is int and heads > 0:
            return heads
    return None


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
