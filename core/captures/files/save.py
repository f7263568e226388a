"""Save the attention of programs without PyTorch (NumPy, JAX, MLX, Keras): what a call was given, as a capture."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from safetensors.numpy import save as safetensors_of

from ... import VERSION
from ...arrays import FloatArray
from ...attention.computation import Computation
from ...attention.visibility import Bias, Visibility
from ...files import check_replaceable, write_bytes
from .stored import FLOATS

Corner = Literal["top-left", "bottom-right"]
_AXES = ("batch", "head", "token", "d_k")


@dataclass(frozen=True)
class Call:
    """One attention call: its tensors by their last name, as [batch, head, token, d], and its entry in `layers`."""

    tensors: Mapping[str, Any]
    entry: Mapping[str, Any]


def call(
    q: Any,
    k: Any,
    v: Any = None,
    o: Any = None,
    *,
    scale: float,
    causal: bool | Corner = False,
    name: str = "",
    axes: str = "batch,head,token,d_k",
    mask: Any = None,
    bias: Any = None,
    lse: Any = None,
) -> Call:
    """Return a call of softmax(scale · q·kᵀ + bias)·v, to be saved.

    q, k, v, o:  arrays of anything that NumPy reads, as they were multiplied; k and v may have fewer heads
    scale:       what q·k was multiplied by
    causal:      whether later keys are hidden; the corner, if there are other queries than keys
    axes:        the order of the arrays' axes; without batch or head, there is one
    mask, bias:  [batch or 1, heads or 1, queries, keys]; True is visible
    lse:         the log-sum-exp of each row, [batch, heads, queries]; True computes it from the above

    Raise ValueError for axes or shapes that do not fit, and for numbers that no capture holds.
    """
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be a positive number, not {scale}")
    found = {"q": q, "k": k, "v": v, "o": o}
    tensors = {role: _ordered(array, axes, role) for role, array in found.items() if array is not None}
    tensors |= {role: np.asarray(each) for role, each in {"mask": mask, "bias": bias}.items() if each is not None}
    for role, each in tensors.items():
        if role != "mask" and each.dtype.name not in FLOATS:
            raise ValueError(f"{role} holds {each.dtype}; must be one of {', '.join(FLOATS)}")
        if not each.size:
            raise ValueError(f"{role} is empty: its shape is {each.shape}")
    own, keys = tensors["q"].shape, tensors["k"].shape
    if own[0] != keys[0] or own[3] != keys[3] or own[1] % keys[1]:
        raise ValueError(f"q and k do not fit together: {own} and {keys} as batch, head, token, d_k")
    if causal is True and own[2] != keys[2]:
        raise ValueError(f"{own[2]} queries and {keys[2]} keys: causal must be 'top-left' or 'bottom-right'")
    entry: dict[str, Any] = {"name": name, "scale": float(scale), "causal": causal is not False}
    if causal is not False:
        entry["alignment"] = "top-left" if causal is True else causal
    if lse is True:
        tensors["lse"] = _log_sum_exp(tensors, float(scale), entry.get("alignment"))
        entry["notes"] = "lse was computed when this was saved, from what the call says"
    elif lse is not None:
        tensors["lse"] = np.asarray(lse, np.float32)
    return Call(tensors, entry)


def save(
    path: str | os.PathLike[str],
    calls: Sequence[Call],
    *,
    config: Mapping[str, Any] | None = None,
    tokens: Sequence[str] | None = None,
    query_tokens: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write calls as the layers of a .safetensors file, with the model's configuration and the tokens of keys and,
    in cross-attention, of queries.

    Raise InputError for a file that cannot be written, or that is not a recording unless `overwrite`.
    """
    if not calls:
        raise ValueError("there is no call to save")
    if not overwrite:
        check_replaceable(Path(path), recording=True, remedy="overwrite=True")
    tensors = {f"layers.{i}.attn.{role}": np.ascontiguousarray(array)
               for i, each in enumerate(calls) for role, array in each.tensors.items()}  # fmt: skip
    entries = [{"index": i, **each.entry} for i, each in enumerate(calls)]
    metadata = {"schema": "attn-tui/qk-2", "axes": ",".join(_AXES), "layers": json.dumps(entries)}
    metadata["versions"] = json.dumps({"attn-tui": VERSION, "numpy": np.__version__})
    if any("mask" in each.tensors for each in calls):
        metadata["mask_true"] = "visible"
    if config is not None:
        metadata["config"] = json.dumps(config, default=str)
    for key, names in (("tokens", tokens), ("query_tokens", query_tokens)):
        if names is not None:
            metadata[key] = json.dumps(list(names))
    write_bytes([safetensors_of(tensors, metadata)], Path(path))


def _ordered(array: Any, axes: str, role: str) -> Any:
    """Return an array as [batch, head, token, d]."""
    names, found = [each.strip() for each in axes.split(",")], np.asarray(array)
    if not set(names) <= {*_AXES} or len({*names}) != len(names) or found.ndim != len(names):
        raise ValueError(f"{role} has {found.ndim} axes; axes={axes!r} must name each once, of {', '.join(_AXES)}")
    present = [each for each in _AXES if each in names]
    found = found.transpose([names.index(each) for each in present])
    return np.expand_dims(found, [place for place, each in enumerate(_AXES) if each not in names])


def _log_sum_exp(tensors: Mapping[str, Any], scale: float, corner: Corner | None) -> Any:
    """Return the log-sum-exp of all rows in float32, computed head by head in float64."""
    q, k = (tensors[role].astype(np.float64) for role in "qk")
    heads, queries = q.shape[1:3]
    kv_heads, keys = k.shape[1:3]
    positions = np.arange(queries, dtype=np.int64) + (keys - queries if corner == "bottom-right" else 0)
    found: list[FloatArray] = []
    for head in range(heads):
        own = {role: tensors[role][:, head % tensors[role].shape[1]] for role in ("bias", "mask") if role in tensors}
        after = None if corner is None else 0
        seen = Visibility(keys, positions, own.get("mask"), after=after, self_attention=False)
        biases = (Bias(own["bias"]),) if "bias" in own else ()
        c = Computation(multiplier=scale, biases=biases, visibility=seen)
        found.append(c.evaluate(q[:, head], k[:, head * kv_heads // heads]).softmax.lse)
    return np.stack(found, axis=1).astype(np.float32)
