"""One call of attention: q, k, v and o, and all that the entry and the tensors of a layer in a file may say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from ... import VERSION
from ...errors import InputError, did_you_mean
from ...files import check_replaceable, write_bytes
from ...message import short
from ..axes import FLAT, parse_axes
from ..capture import Layer
from ..features import ALIASES, FEATURES, OF_ENTRIES, SCHEMAS
from ..files.stored import FLOATS, AnyArray, FileContents, memory_array
from ..head import CaptureFile, read_head
from ..reader import capture_of
from ..rules import computation, file_rule
from .texts import layout_of, padded

MEMORY = Path("arrays")  # stands for a file in messages and results
_AXES = ("batch", "head", "token", "d_k")
# The name of each tensor of a layer, and whether it is a mask.
_TENSORS = {feature.tensors[0]: feature.group == "mask" for feature in FEATURES if feature.tensors}
_KEYWORDS = {*OF_ENTRIES, *ALIASES, *_TENSORS}


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
    scale: Any,
    causal: bool | Literal["top-left", "bottom-right"] = False,
    name: str = "",
    axes: str = "batch,head,token,d_k",
    lse: Any = None,
    lengths: Any = None,
    cu_seqlens: Any = None,
    cu_seqlens_k: Any = None,
    block_table: Any = None,
    **said: Any,
) -> Call:
    """Return a call of softmax(scale · q·kᵀ + bias)·v, to be saved.

    q, k, v, o:    arrays of anything that NumPy reads, as they were multiplied; k and v may have fewer heads
    scale:         what q·k was multiplied by; a list if heads differ, None if it is not known
    causal:        whether later keys are hidden; the corner, if there are other queries than keys
    axes:          the order of the arrays' axes; without batch or head, there is one
    lse:           the log-sum-exp of each row, [batch, heads, queries]; True computes it from the rest
    lengths:       keys of each text; those beyond are padding, or what a cache does not hold yet
    cu_seqlens:    where each packed text begins, and the end of the last; with axes "token,head,d_k", and lse [head,
                   token]
    cu_seqlens_k:  the same of keys, if they are others
    block_table:   the pages of each text, if k and v are a cache [page, token, head, d_k]; needs `lengths`
    said:          what else the entry of a layer may say, or its tensors hold, as docs/capture-format.md lists it:
                   softcap, prescaled, window, sinks, alibi_slopes, mask (True is visible), bias, weights, scores, …

    Raise InputError for what a reader of the file would refuse.
    """
    for call in said:
        if call not in _KEYWORDS:
            raise InputError("{name}: unknown name{near}", name=call, near=did_you_mean(call, _KEYWORDS))
    given = {"scale": scale, "causal": causal, "name": name or None, **said}
    given = {key: value for key, value in given.items() if value is not None}
    others = {key: _array(value) for key, value in given.items() if _is_tensor(key, value)}
    entry = {key: _plain(value) for key, value in given.items() if key not in others}
    axes = ",".join(parse_axes(axes, "axes"))
    if FLAT in axes:
        raise InputError("axes: heads and d_k must be separate axes")
    layout = layout_of(cu_seqlens, cu_seqlens_k, block_table, lengths)
    found = {"q": q, "k": k, "v": v, "o": o}
    tensors: dict[str, AnyArray] = {}
    for role, array in found.items():
        if array is not None:
            paged = layout.pages is not None and role in "kv" and "batch" not in axes
            tensors[role] = _ordered(_array(array), f"batch,{axes}" if paged else axes, role)
    if lse is not None and lse is not True:
        of_rows = np.asarray(_array(lse), np.float32)
        tensors["lse"] = of_rows[np.newaxis, ..., np.newaxis] if of_rows.ndim == 2 else of_rows[..., np.newaxis]
    at_end = "bottom-right" in (entry.get("causal"), entry.get("alignment"))
    if layout.moves or lengths is not None:
        if (layout.moves or at_end) and (moved := [*others, *({"chunk", "rows"} & entry.keys())]):
            raise InputError(
                f"{', '.join(moved)} cannot be given for texts that are packed, in pages, or aligned at their ends; "
                "pad them, and give a mask"
            )
        tensors = padded(tensors, layout, at_end)
    if "lse" in tensors:
        tensors["lse"] = tensors["lse"][..., 0]
    queries, keys = tensors["q"].shape[2], tensors["k"].shape[2]
    if causal is True and queries != keys and not {"alignment", "rows"} & entry.keys():
        raise InputError(f"{queries} queries and {keys} keys: causal must be 'top-left' or 'bottom-right'")
    if repeated := tensors.keys() & others.keys():
        raise InputError(f"lengths and {', '.join(repeated)} both say which tokens are padding; keep one of them")
    whole = Call({**tensors, **others}, entry)
    _check(whole)
    if lse is not True:
        return whole
    notes = "lse was computed when this was saved, from what the call says"
    return Call({**whole.tensors, "lse": _log_sum_exp(whole)}, {**entry, "notes": notes})


def contents_of(
    calls: Sequence[Call], config: Mapping[str, Any] | None = None
) -> tuple[dict[str, AnyArray], dict[str, str]]:
    """Return the tensors and the metadata of a file with these calls as its layers, and the model's configuration.

    Raise InputError if two of them have the same index.
    """
    entries = [{"index": i, **call.entry} for i, call in enumerate(calls)]
    numbers = [entry["index"] for entry in entries]
    if len({*numbers}) < len(numbers):
        raise InputError(f"calls have the indexes {numbers}; each must have its own")
    tensors = {f"layers.{i}.attn.{role}": np.ascontiguousarray(array)
               for i, call in zip(numbers, calls, strict=True) for role, array in call.tensors.items()}  # fmt: skip
    metadata = {"schema": SCHEMAS[0], "axes": ",".join(_AXES), "layers": json.dumps(entries, default=str)}
    metadata["versions"] = json.dumps({"attn-tui": VERSION, "numpy": np.__version__})
    if config is not None:
        metadata["config"] = json.dumps(config, default=str)
    return tensors, metadata


def _is_tensor(name: str, value: Any) -> bool:
    """Return whether a value is an array of a file, and not a value of its metadata."""
    return name in _TENSORS and (_TENSORS[name] or name not in OF_ENTRIES or np.ndim(value) > 1)


def _array(value: Any) -> AnyArray:
    """Return an array in its own number format, also of PyTorch, whose bfloat16 and float8 NumPy does not read.

    Raise InputError for what has no numbers to copy, such as a tensor on the device meta, or of a trace.
    """
    try:
        return _copied(value) if hasattr(value, "detach") else np.asarray(value)
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        template = "{kind} cannot be read as an array: {error}"
        raise InputError(template, kind=type(value).__name__, error=short(error)) from error


def _copied(value: Any) -> AnyArray:
    tensor = value.detach().cpu()
    format = FLOATS.get(str(tensor.dtype).removeprefix("torch."))
    if format is None or format.isbuiltin == 1:
        return tensor.numpy()
    bits = {1: "uint8", 2: "int16"}[format.itemsize]
    return tensor.contiguous().view(getattr(sys.modules["torch"], bits)).numpy().view(format)


def _plain(value: Any) -> Any:
    """Return a value of metadata as JSON has it: tuples and arrays are lists."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in cast("Sequence[object]", value)]
    return _array(value).tolist() if hasattr(value, "dtype") else value


def _ordered(array: AnyArray, axes: str, role: str) -> AnyArray:
    """Return an array as [batch, head, token, d]."""
    names = axes.split(",")
    if array.ndim != len(names):
        raise InputError(f"{role} has {array.ndim} axes; axes={axes!r} must name each once, of {', '.join(_AXES)}")
    present = [axis for axis in _AXES if axis in names]
    array = array.transpose([names.index(axis) for axis in present])
    return np.expand_dims(array, [place for place, axis in enumerate(_AXES) if axis not in names])


def opened_calls(calls: Sequence[Call], config: Mapping[str, Any] | None = None) -> CaptureFile:
    """Return calls as a capture that is in no file; raise InputError for what a reader of a file would refuse."""
    arrays, metadata = contents_of(calls, config)
    stored = {name: memory_array(MEMORY, name, array) for name, array in arrays.items()}
    return capture_of(MEMORY, FileContents(stored, metadata, ()))


def _check(call: Call) -> None:
    """Raise InputError if a reader of the file would refuse the layer, or not use one of its tensors."""
    _, metadata = contents_of([call])
    stored = {name: memory_array(MEMORY, name, array) for name, array in call.tensors.items()}
    capture = capture_of(MEMORY, FileContents(stored, metadata, ()))
    if refusal := capture.layers[0].refusal:
        raise InputError("{where}: {refusal}", where=MEMORY, refusal=refusal)
    for name in capture.unused:
        if name in stored:
            raise stored[name].error("{where} of shape {shown} does not fit q and k")


def _log_sum_exp(call: Call) -> AnyArray:
    """Return the log-sum-exp of all rows in float32, as a reader of the file computes them."""
    capture = opened_calls([call])
    layer: Layer = capture.layers[0]
    lses: list[AnyArray] = []
    for head in range(layer.heads):
        data = read_head(capture, layer, head)
        lses.append(computation(file_rule(layer), layer, data).evaluate(data.q, data.k).softmax.lse)
    return np.stack(lses, axis=1).astype(np.float32)


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
    from safetensors.numpy import save as safetensors_of

    if not calls:
        raise ValueError("there is no call to save")
    if not overwrite:
        check_replaceable(Path(path), recording=True, remedy="overwrite=True")
    tensors, metadata = contents_of(calls, config)
    for key, names in (("tokens", tokens), ("query_tokens", query_tokens)):
        if names is not None:
            metadata[key] = json.dumps(list(names))
    write_bytes([safetensors_of(tensors, metadata)], Path(path))
