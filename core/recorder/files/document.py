"""A file of schema attn-tui/qk-2: which tensors and metadata say what was recorded, and what fits."""

from __future__ import annotations

import json
import math
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..layers.cache import joined
from ..layers.layer import LayerCall, RecordedLayer, chosen_rows

SCHEMA = "attn-tui/qk-2"
FEWEST_ROWS = 16


@dataclass(frozen=True)
class Program:
    """What is known of the recorded program."""

    model: str = ""
    config: str | None = None  # JSON
    d_model: int | None = None
    tokens: Mapping[str, Sequence[str] | None] = field(default_factory=dict[str, Any])  # by key of metadata
    version: str = ""  # of attn-tui
    remark: str = ""  # what could not be recorded of it
    expect: str | None = None  # the multiplier that is intended


def layer_number(name: str) -> int | None:
    """Return the number of the layer that a module's name contains, if it contains one."""
    numbers = re.findall(r"(?:^|\.)(\d{1,6})(?=\.|$)", name)
    return int(numbers[0]) if numbers else None


def contents(
    layers: Sequence[RecordedLayer], program: Program, step: int | None, remarks: Sequence[str] = ()
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the tensors and metadata of a file."""
    numbers = [layer_number(layer.site.name) for layer in layers]
    are_numbered = all(number is not None for number in numbers) and len(set(numbers)) == len(numbers)
    tensors: dict[str, torch.Tensor] = {}
    entries: list[dict[str, Any]] = []
    for place, layer in enumerate(layers):
        index = numbers[place] if are_numbered else place
        entry, held = layer_contents(layer)
        entries.append({"index": index, **entry})
        tensors.update({f"layers.{index}.attn.{name}": tensor for name, tensor in held.items()})
    metadata = {
        "schema": SCHEMA,
        "model": program.model,
        "axes": "batch,head,token,d_k",
        "observed": "true",
        "layers": json.dumps(entries),
        "versions": json.dumps(_versions(program.version)),
    }
    said = {"config": program.config, "expect": program.expect, "d_model": program.d_model}
    said |= {key: tokens if tokens is None else json.dumps(tokens) for key, tokens in program.tokens.items()}
    said |= {"step": step, "notes": "; ".join(filter(None, (*remarks, program.remark))) or None}
    return tensors, metadata | {key: str(value) for key, value in said.items() if value is not None}


def layer_contents(layer: RecordedLayer) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return a layer's metadata and its tensors by their last name, once these are there."""
    layer.copied.synchronize()
    part = joined(layer)
    k = layer.k
    tensors = {**part.tensors, "k": k}
    if layer.sinks is not None:
        tensors["sinks"] = layer.sinks.clamp(min=torch.finfo(layer.sinks.dtype).min)  # as weak as −∞
    if layer.v is not None:
        tensors["v"] = layer.v
    entry: dict[str, Any] = {
        "name": layer.site.name,
        "heads": part.q.shape[1],
        "kv_heads": k.shape[1],
        "d_k": k.shape[-1],
    }
    notes = [*layer.notes, *_of_weights(layer), *_self_check(layer)]
    scales = [layer.scale * own for own in ([1.0] if layer.head_scales is None else layer.head_scales.tolist())]
    if not all(0 < scale < math.inf for scale in scales):
        notes.append(f"the multiplier is not a positive number: {', '.join(f'{scale:.4g}' for scale in scales)}")
    elif layer.head_scales is None:
        entry["scale"] = layer.scale
    else:
        entry["head_scales"] = scales
    if layer.prescaled != (1.0, 1.0):
        entry["prescaled"] = list(layer.prescaled)
    if layer.over_heads:
        entry["attention"] = "heads"
    elif part.visible.offset is None and part.queries != part.keys and part.queries > 1:
        entry["attention"] = "cross"  # the queries are not tokens of the keys' text, whose last ones would be causal
    entry["causal"] = part.visible.offset is not None
    if part.visible.offset is not None:
        entry["alignment"] = "bottom-right" if part.visible.offset == part.keys - part.queries else "top-left"
    said = {
        "window": part.visible.window,
        "softcap": layer.softcap,
        "softmax_axis": "queries" if layer.over_queries else None,
        "weights_dropout": layer.dropout or None,
        "weights_changed": list(layer.changed) or None,
        "weights_followed": None if layer.followed else False,
        "not_finite": [*map(list, layer.not_finite)] if any(count for count, _ in layer.not_finite) else None,
    }
    entry |= {key: value for key, value in said.items() if value is not None}
    entry |= {"scores": layer.scores, "notes": "; ".join(notes)}
    if len(part.rows) < part.queries:
        shift = part.keys - part.queries if entry.get("alignment") == "bottom-right" else 0
        tensors["rows"] = part.rows + shift
    return entry, tensors


def _of_weights(layer: RecordedLayer) -> list[str]:
    """Return for people what became of the weights after softmax."""
    said = [*layer.changed, *([f"dropout {layer.dropout:g}"] if layer.dropout else [])]
    notes = [f"between softmax and the values: {', '.join(said)}"] if said else []
    return notes if layer.followed else [*notes, "how the weights met the values was not followed"]


def _self_check(layer: RecordedLayer) -> list[str]:
    if layer.checked == "bias":  # a note says why
        return []
    if not layer.checked:
        return ["not verified: neither logits nor their log-sum-exp were seen"]
    seeing, rows = layer.rows_checked
    if not seeing:
        return ["not verified: no query that was compared sees a key"]
    sure = "to rounding" if layer.exact else "NOT to rounding"
    what = "logits" if layer.checked == "logits" else "the kernel's log-sum-exp"
    others = "" if seeing == rows else f", in {seeing} of {rows} rows; the others see no key"
    return [f"verified {sure}: {what} − (scale · q·k …) at most {layer.residual:.2g}{others}"]


def thinned(layer: RecordedLayer, rows: int) -> RecordedLayer:
    """Return the layer with at most this many of its kept rows in each call."""
    if all(len(part.rows) <= rows for part in layer.parts):
        return layer
    layer.copied.synchronize()
    return replace(layer, parts=[_thin(part, chosen_rows(len(part.rows), rows)) for part in layer.parts])


def _thin(part: LayerCall, some: torch.Tensor) -> LayerCall:
    thin = part.cut(lambda tensor: tensor if tensor.shape[2] == 1 else tensor[:, :, some].contiguous())
    return replace(thin, rows=part.rows[some])


def one_text(layer: RecordedLayer) -> RecordedLayer:
    """Return the layer with its first text only."""
    layer.copied.synchronize()

    def first(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[:1].contiguous()

    parts = [part.cut(first) for part in layer.parts]
    return replace(layer, parts=parts, k=first(layer.k), v=None if layer.v is None else first(layer.v))


@dataclass
class Budget:
    """Keeps layers within a number of bytes: first fewer rows, then one text, then fewer layers, but never none."""

    most: int
    rows: int
    stride: int = 1  # every how many layers are kept
    one_text: bool = False
    seen: int = 0

    def add(self, layers: list[RecordedLayer], layer: RecordedLayer) -> None:
        """Append a layer to the list, and shorten the list until it fits."""
        self.seen += 1
        if (self.seen - 1) % self.stride:
            return
        layers.append(self.cut(layer))
        self.fit(layers)

    def fit(self, layers: list[RecordedLayer]) -> None:
        """Shorten the list until it fits."""
        while sum(layer.nbytes for layer in layers) > self.most:
            if self.rows > FEWEST_ROWS:
                self.rows = max(FEWEST_ROWS, self.rows // 2)
            elif not self.one_text:
                self.one_text = True
            elif len(layers) > 1:
                self.stride *= 2
                del layers[1::2]
                continue
            elif self.rows > 1:
                self.rows = 1
            else:
                return
            layers[:] = [self.cut(layer) for layer in layers]

    def cut(self, layer: RecordedLayer) -> RecordedLayer:
        """Return a layer with what is kept of each."""
        layer = thinned(layer, self.rows)
        return one_text(layer) if self.one_text else layer

    def remarks(self, asked: int) -> list[str]:
        """Return what was left out to stay within the limit."""
        said: list[str] = []
        if self.rows < asked:
            said.append(f"at most {self.rows} rows of a layer")
        if self.one_text:
            said.append("one text")
        if self.stride > 1:
            said.append(f"1 of {self.stride} layers")
        return [f"to stay below {self.most:,} bytes, only {', '.join(said)}"] if said else []


def _versions(own: str) -> dict[str, str]:
    versions = {"torch": torch.__version__, "python": platform.python_version()}
    for name in ("transformers", "flash_attn", "lightning", "accelerate", "diffusers"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            versions[name] = version
    return {**versions, "attn-tui": own} if own else versions
