"""Compute attention from a recorded file, from nothing but its tensors and metadata, in float64."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from pytorch import torch


def load(path: Path | str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Return the tensors and metadata of a file; `layers` and `versions` as JSON values."""
    library: Any = importlib.import_module("safetensors")
    with library.safe_open(str(path), "pt") as file:
        metadata: dict[str, str] = file.metadata()
        tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in list(file.keys())}
    return tensors, {**metadata, "layers": json.loads(metadata["layers"])}


def visible(layer: dict[str, Any], tensors: dict[str, torch.Tensor], prefix: str) -> torch.Tensor:
    """Return the keys that each kept query sees, [batch or 1, heads or 1, rows, keys]."""
    q, k = tensors[f"{prefix}.q"], tensors[f"{prefix}.k"]
    rows, keys = q.shape[2], k.shape[2]
    seen = torch.ones(1, 1, rows, keys, dtype=torch.bool)
    if layer["causal"]:
        places = tensors.get(f"{prefix}.rows")
        if places is None:
            places = torch.arange(rows) + (keys - rows if layer["alignment"] == "bottom-right" else 0)
        distance = places[:, None] - torch.arange(keys)
        seen = seen & (distance >= 0)
        if "window" in layer:
            seen = seen & (distance < layer["window"])
    mask = tensors.get(f"{prefix}.mask")
    return seen if mask is None else seen & mask


def replay(layer: dict[str, Any], tensors: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the log-sum-exp and, if there are values, the output of a layer's kept rows."""
    prefix = f"layers.{layer['index']}.attn"
    q, k = tensors[f"{prefix}.q"].double(), tensors[f"{prefix}.k"].double()
    group = q.shape[1] // k.shape[1]
    scale = layer.get("scale")
    factor = torch.tensor(layer["head_scales"] if scale is None else [scale], dtype=torch.float64)
    z = q @ k.repeat_interleave(group, 1).transpose(-1, -2) * factor[:, None, None]
    if "softcap" in layer:
        z = layer["softcap"] * torch.tanh(z / layer["softcap"])
    if f"{prefix}.bias" in tensors:
        z = z + tensors[f"{prefix}.bias"].double()
    z = z.masked_fill(~visible(layer, tensors, prefix), -torch.inf)
    sinks = tensors.get(f"{prefix}.sinks")
    if sinks is not None:
        column = sinks.double()[None, :, None, None].expand(*z.shape[:3], 1)
        lse = torch.logsumexp(torch.cat((z, column), -1), -1)
    else:
        lse = torch.logsumexp(z, -1)
    v = tensors.get(f"{prefix}.v")
    if v is None:
        return lse, None
    return lse, torch.exp(z - lse[..., None]).nan_to_num() @ v.double().repeat_interleave(group, 1)
