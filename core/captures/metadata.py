"""Validate a file's metadata: strings in, typed values or one clear error out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from .files import LARGEST_HEADER, CaptureError, plain, quoted, short

SCHEMA = "attn-tui/qk-1"

KEYS = (
    "schema", "model", "model_source", "model_licence", "text", "text_licence", "tokens", "lengths",
    "heads", "kv_heads", "d_k", "axes", "scale", "causal", "softcap", "layers",
)  # fmt: skip

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
    causal: Causal | None
    softcap: float | None
    heads: int | None
    kv_heads: int | None
    d_k: int | None
    mask: str | None
    unmasked: bool  # whether the mask is explicitly null


class Metadata:
    """The metadata of one file. Every method raises CaptureError, naming the key, for a value it cannot read."""

    def __init__(self, path: Path, values: Mapping[str, str]) -> None:
        self._where = f"{plain(path)}: metadata"
        self._values = values
        length = sum(len(value) for value in values.values())
        if length > LARGEST_HEADER:
            raise CaptureError(f"{self._where} must have at most {LARGEST_HEADER} characters, not {length}")
        self._entries = self._layer_entries()
        self._indexed = any("index" in entry for entry in self._entries)
        numbered = ((entry.get("index"), entry) for entry in reversed(self._entries))  # of two, the first is used
        self._by_index = {index: entry for index, entry in numbered if isinstance(index, (int, float))}

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

    def layer(self, position: int, index: int, layers: int) -> LayerMetadata:
        """Return the metadata of layer `index`, at `position` of `layers`; its own entries override the file's."""
        own = self._entry(position, index, layers)
        mask = own.get("mask", self._values.get("mask"))
        if mask is not None and not isinstance(mask, str):
            raise self._error("mask", mask, "the name of a tensor, or null")
        name = own.get("name")
        return LayerMetadata(
            name=None if name is None else plain(name),
            scale=self._positive("scale", own),
            causal=self._causal(own),
            softcap=self._positive("softcap", own, zero_is_none=True),
            heads=self._count("heads", own),
            kv_heads=self._count("kv_heads", own),
            d_k=self._count("d_k", own),
            mask=mask,
            unmasked="mask" in own and mask is None,
        )

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

    def _count(self, key: str, own: Mapping[str, object]) -> int | None:
        value = own.get(key, self._values.get(key))
        if value is None:
            return None
        text = str(value).strip()
        if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
            raise self._error(key, value, "a positive whole number")
        return int(text)

    def _causal(self, own: Mapping[str, object]) -> Causal | None:
        value = own.get("causal", self._values.get("causal"))
        if value is None:
            return None
        word = str(value).strip().lower().replace("-", "_").replace(" ", "_")
        if word not in _CAUSAL:
            raise self._error("causal", value, "true, false, top-left or bottom-right")
        return _CAUSAL[word]

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


def _strings(value: object) -> tuple[str, ...] | None:
    """Return a list of strings, each safe to show; None for anything else."""
    listed = _sequence(value)
    if not listed or not all(isinstance(text, str) for text in listed):
        return None
    return tuple(plain(text) for text in listed)
