"""Validate a file's metadata: strings in, typed values or one clear error out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from .files import LARGEST_HEADER, CaptureError, plain, quoted, short
from .roles import changes_attention

V = TypeVar("V")

SCHEMAS = ("attn-tui/qk-2", "attn-tui/qk-1")

# The keys that may differ between layers: those of the file, and of an entry of `layers`.
OF_LAYERS = (
    "heads", "kv_heads", "d_k", "scale", "head_scales", "prescaled", "causal", "alignment", "window", "chunk",
    "softcap", "sinks", "alibi_slopes", "rows", "attention", "mask_true", "scores",
)  # fmt: skip
OF_ENTRIES = ("index", "name", *OF_LAYERS, "mask", "backend", "notes", "layer_type")
KEYS = (
    "schema", "model", "model_source", "model_licence", "text", "text_licence", "tokens", "lengths",
    "axes", *OF_LAYERS, "scale_rule", "layers",
    "d_model", "n_heads", "config", "step", "versions", "capture", "notes",
)  # fmt: skip
# Other names of keys: those of model configurations.
ALIASES = {
    "sliding_window": "window", "window_size": "window", "attention_chunk_size": "chunk",
    "attn_logit_softcapping": "softcap",
}  # fmt: skip
# What a misspelt key may have meant, if it changes what is measured.
_MEANT = {*OF_LAYERS, *ALIASES, "mask", "axes", "lengths"} - {"heads", "kv_heads", "d_k", "scores"}
# `mask` names a tensor, and is one itself in an .npz file; `format` is written by libraries.
_KNOWN = (*KEYS, "mask", "format")

# Values of a key that say that there is nothing.
_NOTHING = ("", "none", "null", "false", "off", "no", "[]", "0", "0.0")
# Keys near one that changes what is measured, but other words.
_OTHERS = ("length", "row", "rows", "task", "layer")

Causal = Literal["yes", "no", "top_left", "bottom_right"]  # "yes": corner not specified

_CAUSAL: dict[str, Causal] = {
    "true": "yes", "yes": "yes", "1": "yes", "causal": "yes",
    "false": "no", "no": "no", "0": "no", "none": "no", "null": "no",
    "top_left": "top_left", "upper_left": "top_left",
    "bottom_right": "bottom_right", "lower_right": "bottom_right",
}  # fmt: skip


@dataclass(frozen=True)
class LayerMetadata:
    """The metadata of one layer; None where a value is missing."""

    name: str | None
    scale: float | None
    head_scales: tuple[float, ...] | None
    prescaled: tuple[float, float]  # the factors in the stored queries and keys
    causal: Causal | None
    alignment: Literal["top_left", "bottom_right"] | None  # of a window, and of a causal mask
    flash: bool  # whether the alignment is flash-attention's, since the window has its name and form
    window: tuple[int | None, int | None] | None  # keys before and after a query that it sees; None: all
    chunk: int | None
    softcap: float | None
    sinks: tuple[float, ...] | None  # a logit of no key for each head
    slopes: tuple[float, ...] | None  # of each head, for distances of query and key (ALiBi)
    rows: tuple[int, ...] | None  # the position of each query
    cross: bool | None  # whether queries and keys are of different texts
    heads: int | None
    kv_heads: int | None
    d_k: int | None
    mask: str | None
    unmasked: bool  # whether the mask is explicitly null
    mask_true: Literal["visible", "hidden"] | None
    scores: str | None  # the number format of what entered softmax
    index: int | None = None  # the layer's number, in its entry
    refusal: str = ""  # why the layer cannot be measured


class Metadata:
    """The metadata of one file. Every method raises CaptureError, naming the key, for a value it cannot read."""

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self._where = f"{plain(path)}: metadata"
        self._given = frozenset(values)
        self._values = self._by_name(values)
        length = sum(len(value) for value in values.values())
        if length > LARGEST_HEADER:
            raise CaptureError(f"{self._where} must have at most {LARGEST_HEADER} characters, not {length}")
        self._entries = self._layer_entries()
        self._read: set[int] = set()  # identities of the entries that belong to a layer
        self._indexed = any("index" in entry for entry in self._entries)
        self._by_index: dict[int, Mapping[str, object]] = {}
        for entry in self._entries if self._indexed else []:
            index = self._count("index", entry, least=0)
            if index is None or index in self._by_index:
                raise CaptureError(
                    f"{self._where} 'layers' must have a different \"index\" in each entry, or in none"
                )
            self._by_index[index] = entry
        schema = values.get("schema")
        if schema is not None and schema.startswith("attn-tui/") and schema not in SCHEMAS:
            raise self._error("schema", schema, f"one of {', '.join(SCHEMAS)}")

    @property
    def unused(self) -> tuple[str, ...]:
        """The keys without meaning here: those of the file, and as `layers[].key` those of its entries."""
        unknown = [key for key in self._values if key not in _KNOWN]
        if self._values.get("schema", SCHEMAS[0]) not in SCHEMAS:
            unknown.append("schema")
        for number, entry in enumerate(self._entries):
            unknown += [f"layers[{number}]"] if id(entry) not in self._read else []
            unknown += [f"layers[].{key}" for key in entry if ALIASES.get(key, key) not in OF_ENTRIES]
        return tuple(dict.fromkeys(unknown))

    @property
    def config(self) -> Mapping[str, object] | None:
        """The model's configuration; None if the file has none."""
        value = self._values.get("config")
        if value is None:
            return None
        config = self._json("config", value)
        if not isinstance(config, dict):
            raise self._error("config", value, "a JSON object")
        return cast("Mapping[str, object]", config)

    def number(self, key: str) -> int | None:
        """Return a whole number from 0 up."""
        return self._count(key, {}, least=0)

    def line(self, key: str) -> str | None:
        """Return free text as one line that is safe to show."""
        value = self._values.get(key)
        return None if value is None else plain(value)

    def texts(self, batch: int) -> tuple[str, ...] | None:
        """Return the text of each batch element, from a JSON list of strings or one plain string."""
        value = self._values.get("text")
        if value is None:
            return None
        if value.lstrip().startswith("["):
            try:
                listed = _strings(from_json(value))
            except ValueError:
                listed = None  # a plain text may begin with a bracket
            if listed is not None and len(listed) == batch:
                return listed
        return (plain(value),)

    def tokens(self) -> tuple[tuple[str, ...], ...] | None:
        """Return the tokens of each batch element, from a JSON list of strings (one text) or a list of such lists."""
        value = self._values.get("tokens")
        if value is None:
            return None
        listed = self._json("tokens", value)
        flat = _strings(listed)
        texts = [flat] if flat is not None else [_strings(text) for text in _sequence(listed)]
        if not texts or None in texts:
            raise self._error("tokens", value, "a JSON list of strings, or a list of such lists")
        return tuple(text for text in texts if text is not None)

    def lengths(self) -> tuple[int, ...] | None:
        """Return the number of tokens of each batch element that are not padding."""
        value = self._values.get("lengths")
        if value is None:
            return None
        numbers = _sequence(self._json("lengths", value))
        if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in numbers):
            raise self._error("lengths", value, "a JSON list of positive whole numbers")
        return tuple(cast(Sequence[int], numbers))

    def layer(self, position: int, index: int, layers: int, numbered: bool = True) -> LayerMetadata:
        """Return the metadata of layer `index`, at `position` of `layers`; its own entries override the file's.

        The only entry belongs to an only layer that is not `numbered`, and gives it its number.
        """
        entry = self._entries[0] if layers == len(self._entries) == 1 and not numbered else None
        entry = entry or self._entry(position, index, layers)
        own = self._by_name(entry)
        self._read.add(id(entry))
        mask = own.get("mask", self._values.get("mask"))
        if mask is not None and not isinstance(mask, str):
            raise self._error("mask", mask, "the name of a tensor, or null")
        name = own.get("name")
        causal = self._causal(own)
        alignment = self._alignment(own)
        flash = False
        window_size = own.get("window") if "window" in own else self._values.get("window")
        if "window_size" in (entry if "window" in own else self._given) and not str(window_size).strip().isdigit():
            flash = alignment is None
            alignment = alignment or "bottom_right"
        scale, head_scales = self._scales(own)
        return LayerMetadata(
            name=None if name is None else plain(name),
            scale=scale,
            head_scales=head_scales,
            prescaled=self._factors(own),
            causal=causal,
            alignment=alignment,
            flash=flash,
            window=self._window(own, causal),
            chunk=self._count("chunk", own, none=True),
            softcap=self._positive("softcap", own, zero_is_none=True),
            sinks=self._numbers("sinks", own, least=-math.inf),
            slopes=self._numbers("alibi_slopes", own, least=0),
            rows=self._rows(own),
            cross=self._word("attention", own, {"self": False, "cross": True}),
            heads=self._count("heads", own),
            kv_heads=self._count("kv_heads", own),
            d_k=self._count("d_k", own),
            mask=mask,
            unmasked="mask" in own and mask is None,
            mask_true=self._word("mask_true", own, {"visible": "visible", "hidden": "hidden"}),
            scores=None if (scores := own.get("scores", self._values.get("scores"))) is None else plain(scores),
            index=self._count("index", own, least=0),
            refusal=self._unknown_change(own) or self._missing_window(own, causal),
        )

    def _missing_window(self, own: Mapping[str, object], causal: Causal | None) -> str:
        """Return why a layer is refused whose type needs a window or chunks that it does not have; empty if not."""
        kind = str(own.get("layer_type", "")).lower()
        missing = "window" if "slid" in kind and self._window(own, causal) is None else ""
        missing = "chunk" if "chunk" in kind and self._count("chunk", own, none=True) is None else missing
        return f"metadata 'layer_type' is {quoted(kind)}, but {missing!r} is missing" if missing else ""

    def _unknown_change(self, own: Mapping[str, object]) -> str:
        """Return why a layer is refused for a key that may change its attention; empty if there is none."""
        unknown = {key: value for key, value in self._values.items() if key not in _KNOWN}
        unknown |= {key: value for key, value in own.items() if key not in OF_ENTRIES}
        for key, value in unknown.items():
            if value is None or str(value).strip().lower() in _NOTHING:
                continue
            near = [] if key in _OTHERS else get_close_matches(key.lower(), _MEANT, 1, 0.8)
            if near or changes_attention(key):
                hint = f"; did you mean {near[0]!r}?" if near else ""
                return f"metadata {quoted(key)} may change attention, and attn-tui does not know it{hint}"
        return ""

    def _layer_entries(self) -> list[Mapping[str, object]]:
        value = self._values.get("layers")
        if value is None:
            return []
        entries = _sequence(self._json("layers", value))
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self._error("layers", value, "a JSON list of objects, one for each layer")
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
            f"{self._where} 'layers' has {len(entries)} entries for {layers} layers; add an \"index\" to each entry"
        )

    def _positive(self, key: str, own: Mapping[str, object], zero_is_none: bool = False) -> float | None:
        value = own.get(key, self._values.get(key))
        if value is None:
            return None
        try:
            number = float(cast(str, value)) if isinstance(value, (str, int, float)) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if zero_is_none and (number == 0 or value in ("none", "null")):
            return None
        if isinstance(value, bool) or not 0 < number < math.inf:
            raise self._error(key, value, "a positive number")
        return number

    def _count(self, key: str, own: Mapping[str, object], least: int = 1, none: bool = False) -> int | None:
        """Return a whole number; with `none`, 0 and "none" mean None."""
        value = own.get(key, self._values.get(key))
        if value is None:
            return None
        text = str(value).strip()
        if none and text.lower() in ("0", "none", "null"):
            return None
        if isinstance(value, bool) or not (
            text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least
        ):
            raise self._error(key, value, "a positive whole number" if least else "a whole number from 0 up")
        return int(text)

    def _numbers(self, key: str, own: Mapping[str, object], least: float | None = None) -> tuple[float, ...] | None:
        """Return a list of finite numbers from `least` up, by default of positive ones."""
        value = own.get(key, self._values.get(key))
        if value is None:
            return None
        listed = _sequence(self._json(key, value) if isinstance(value, str) else value)
        floats = [_float(each) for each in listed]
        if not floats or not all(
            math.isfinite(each) and (each > 0 if least is None else each >= least) for each in floats
        ):
            kind = "positive numbers" if least is None else "numbers from 0 up" if least == 0 else "numbers"
            raise self._error(key, value, f"a JSON list of {kind}")
        return tuple(floats)

    def _scales(self, own: Mapping[str, object]) -> tuple[float | None, tuple[float, ...] | None]:
        """Return the multiplier, or that of each head, which may be lists under either key."""
        value = own.get("scale", self._values.get("scale"))
        head_scales = self._numbers("head_scales", own)
        if not (isinstance(value, list) or (isinstance(value, str) and value.strip().startswith("["))):
            return self._positive("scale", own), head_scales
        listed = self._numbers("scale", own)
        assert listed is not None, "there is a list"
        if head_scales is not None:
            raise CaptureError(f"{self._where} has both 'scale' and 'head_scales' for each head; keep one of them")
        return (listed[0], None) if len(listed) == 1 else (None, listed)

    def _rows(self, own: Mapping[str, object]) -> tuple[int, ...] | None:
        value = own.get("rows", self._values.get("rows"))
        if value is None:
            return None
        listed = _sequence(self._json("rows", value) if isinstance(value, str) else value)
        if not listed or not all(type(row) is int and 0 <= row < 1 << 62 for row in listed):
            raise self._error("rows", value, "a JSON list of whole numbers from 0 up, the position of each query")
        return tuple(cast("Sequence[int]", listed))

    def _factors(self, own: Mapping[str, object]) -> tuple[float, float]:
        factors = self._numbers("prescaled", own)
        if factors is None:
            return 1.0, 1.0
        if len(factors) != 2:
            raise self._error("prescaled", list(factors), "two numbers: the factors in the stored q and k")
        return factors[0], factors[1]

    def _window(self, own: Mapping[str, object], causal: Causal | None) -> tuple[int | None, int | None] | None:
        """Return how many keys before and after a query it sees; None if it sees all."""
        value = own.get("window", self._values.get("window"))
        text = str(value).strip()
        if value is None or text.lower() in ("0", "none", "null"):
            return None
        if text.startswith("(") and text.endswith(")"):  # a tuple of Python
            text = f"[{text[1:-1]}]"
        listed = _sequence(self._json("window", text) if text.startswith("[") and isinstance(value, str) else value)
        if len(listed) == 2 and all(isinstance(side, int) and not isinstance(side, bool) for side in listed):
            before, after = (None if cast(int, side) < 0 else cast(int, side) for side in listed)
            return None if before is None and after is None else (before, after)
        if listed or isinstance(value, bool) or not (text.isascii() and text.isdigit() and 0 < len(text) < 10):
            raise self._error(
                "window", value, "a positive whole number, or [keys before, keys after], where -1 means all"
            )
        if causal in (None, "no"):
            raise self._error(
                "window", value, "[keys before, keys after] where attention is not causal, as in flash-attention"
            )
        return int(text) - 1, 0

    def _word(self, key: str, own: Mapping[str, object], accepted: Mapping[str, Any]) -> Any:
        value = own.get(key, self._values.get(key))
        if value is None:
            return None
        word = str(value).strip().lower()
        if word not in accepted:
            raise self._error(key, value, " or ".join(accepted))
        return accepted[word]

    def _causal(self, own: Mapping[str, object]) -> Causal | None:
        value = own.get("causal", self._values.get("causal"))
        alignment: Causal | None = self._alignment(own)
        if value is None:
            return None
        word = str(value).strip().lower().replace("-", "_").replace(" ", "_")
        if word not in _CAUSAL:
            raise self._error("causal", value, "true, false, top-left or bottom-right")
        found = _CAUSAL[word]
        if alignment is None or found == "no":
            return found
        if found not in ("yes", alignment):
            raise self._error(
                "alignment", own.get("alignment", self._values.get("alignment")), f"that of 'causal', {word}"
            )
        return alignment

    def _alignment(self, own: Mapping[str, object]) -> Literal["top_left", "bottom_right"] | None:
        return self._word("alignment", own, {"top-left": "top_left", "bottom-right": "bottom_right"})

    def _by_name(self, values: Mapping[str, V]) -> dict[str, V]:
        """Return values by the first name of their keys; raise CaptureError if two keys mean the same."""
        found: dict[str, V] = {}
        for key, value in values.items():
            name = ALIASES.get(key, key)
            if name in found:
                other = next(other for other in values if ALIASES.get(other, other) == name)
                raise CaptureError(f"{self._where} has both {other!r} and {key!r}; keep one of them")
            found[name] = value
        return found

    def _json(self, key: str, value: str) -> object:
        try:
            return from_json(value)
        except ValueError as error:
            raise CaptureError(f"{self._where} {key!r} is not JSON: {short(error)}") from error

    def _error(self, key: str, value: object, accepted: str) -> CaptureError:
        return CaptureError(f"{self._where} {key!r} must be {accepted}, not {quoted(value)}")


def from_json(text: str) -> object:
    """Return the value of a JSON text; raise ValueError if it is invalid or nested too deeply."""
    try:
        return cast(object, json.loads(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _sequence(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()


def _float(value: object) -> float:
    """Return a number of JSON; NaN if it is none, or too large."""
    try:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def _strings(value: object) -> tuple[str, ...] | None:
    """Return a list of strings, each safe to show; None for anything else."""
    listed = _sequence(value)
    if not listed or not all(isinstance(text, str) for text in listed):
        return None
    return tuple(plain(text) for text in listed)
