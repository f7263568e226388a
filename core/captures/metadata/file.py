"""The metadata of a file: strings in, typed values or one clear error out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from ...message import message
from ...plain import Plain, plain
from ..files import LARGEST_HEADER, CaptureError
from .keys import KNOWN, OF_ENTRIES, SCHEMAS, by_name, first_name
from .layer import LayerMetadata, layer_metadata
from .values import Values, from_json, sequence, strings

_WHOLE = ("metadata", "meta")  # keys whose value may be all metadata, as one JSON object


def unpacked(path: Path, values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values with those of a JSON object under `metadata` or `meta` beside the others.

    Raise CaptureError for a key that is there twice.
    """
    found = dict(values)
    for whole in _WHOLE:
        try:
            inner = from_json(values.get(whole, ""))
        except ValueError:
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
        self._checked = Values(self._where, {}, self._values)
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
            raise self._checked.error("schema", schema, message("one of {schemas}", schemas=", ".join(SCHEMAS)))

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

    @property
    def config(self) -> Mapping[str, object] | None:
        """The model's configuration; None if the file has none."""
        value = self._values.get("config")
        if value is None:
            return None
        config = self._checked.json("config", value)
        if not isinstance(config, dict):
            raise self._checked.error("config", value, "a JSON object")
        return cast("Mapping[str, object]", config)

    def number(self, key: str) -> int | None:
        """Return a whole number from 0 up."""
        return self._checked.count(key, least=0)

    def line(self, key: str) -> Plain | None:
        """Return free text as one line that is safe to show."""
        value = self._values.get(key)
        return None if value is None else plain(value)

    def texts(self, batch: int) -> tuple[Plain, ...] | None:
        """Return the text of each batch element, from a JSON list of strings or one plain string."""
        value = self._values.get("text")
        if value is None:
            return None
        if value.lstrip().startswith("["):
            try:
                listed = strings(from_json(value))
            except ValueError:
                listed = None  # a plain text may begin with a bracket
            if listed is not None and len(listed) == batch:
                return listed
        return (plain(value),)

    def tokens(self) -> tuple[tuple[Plain, ...], ...] | None:
        """Return the tokens of each batch element, from a JSON list of strings (one text) or a list of such lists."""
        value = self._values.get("tokens")
        if value is None:
            return None
        listed = self._checked.json("tokens", value)
        flat = strings(listed)
        texts = [flat] if flat is not None else [strings(text) for text in sequence(listed)]
        if not texts or None in texts:
            raise self._checked.error("tokens", value, "a JSON list of strings, or a list of such lists")
        return tuple(text for text in texts if text is not None)

    def lengths(self) -> tuple[int, ...] | None:
        """Return the number of tokens of each batch element that are not padding."""
        value = self._values.get("lengths")
        if value is None:
            return None
        numbers = sequence(self._checked.json("lengths", value))
        if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in numbers):
            raise self._checked.error("lengths", value, "a JSON list of positive whole numbers")
        return tuple(cast(Sequence[int], numbers))

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

    def _layer_type(self, index: int | None) -> Mapping[str, str]:
        """Return the type of layer `index` in the list of all layers' types, if there is one."""
        value = self._values.get("layer_types")
        if value is None:
            return {}
        kinds = strings(self._checked.json("layer_types", value))
        if kinds is None or (len({*kinds}) > 1 and (index is None or index >= len(kinds))):
            raise self._checked.error("layer_types", value, "a JSON list with the type of each layer of the model")
        return {"layer_type": kinds[0] if index is None or index >= len(kinds) else kinds[index]}

    def _layer_entries(self) -> list[Mapping[str, object]]:
        value = self._values.get("layers")
        if value is None:
            return []
        entries = sequence(self._checked.json("layers", value))
        if not entries or not all(isinstance(entry, dict) for entry in entries):
            raise self._checked.error("layers", value, "a JSON list of objects, one for each layer")
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
