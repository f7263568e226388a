"""Save the attention of a GGUF model in llama.cpp: python examples/from_llama_cpp.py model.gguf heads.safetensors

llama.cpp hands every node of its graph to an eval callback. With flash attention, one node has a layer's attention:
its sources are q, k, v, the mask and sinks, and its parameters the scale, the largest bias of ALiBi and the soft-cap.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import attn_tui
import llama_cpp
import numpy as np
from llama_cpp._ggml import libggml

libggml.ggml_op_name.restype = ctypes.c_char_p
FORMATS = {0: np.dtype(np.float32), 1: np.dtype(np.float16)}  # of ggml; caches of others are not read here
SAME = ("PERMUTE", "VIEW", "RESHAPE", "CONT", "TRANSPOSE")


class Node(ctypes.Structure):
    """A ggml_tensor, of ggml.h."""

    _fields_ = (
        ("type", ctypes.c_int), ("buffer", ctypes.c_void_p), ("ne", ctypes.c_int64 * 4), ("nb", ctypes.c_size_t * 4),
        ("op", ctypes.c_int), ("params", ctypes.c_float * 16), ("flags", ctypes.c_int32),
        ("src", ctypes.c_void_p * 10), ("view_src", ctypes.c_void_p), ("view_offs", ctypes.c_size_t),
        ("data", ctypes.c_void_p), ("name", ctypes.c_char * 64),
    )  # fmt: skip


def node(address: int | None) -> Any:
    return None if address is None else ctypes.cast(address, ctypes.POINTER(Node)).contents


def operation(of: Any) -> str:
    return libggml.ggml_op_name(of.op).decode()


def array(of: Any) -> Any:
    """Return the numbers of a node; the last axis is ggml's first."""
    format = FORMATS[of.type]
    size = format.itemsize + sum((n - 1) * step for n, step in zip(of.ne, of.nb, strict=True))
    memory = np.frombuffer(ctypes.string_at(of.data, size), np.uint8)
    shape, strides = tuple(of.ne)[::-1], tuple(of.nb)[::-1]
    return np.lib.stride_tricks.as_strided(memory.view(format), shape, strides).copy()


def slopes(heads: int, largest: float) -> Any:
    """Return the slopes of ALiBi, as ggml computes them."""
    first = 2 ** int(np.log2(heads))
    whole = 2.0 ** (-largest / first * np.arange(1, first + 1))
    return np.concatenate([whole, 2.0 ** (-largest / 2 / first * np.arange(1, 2 * (heads - first), 2))])


def call(of: Any) -> Any:
    """Return the attention call of a FLASH_ATTN_EXT node."""
    q, k, v, mask, sinks = (node(address) for address in of.src[:5])
    scale, largest, softcap = of.params[:3]
    name, inside, source = of.name.decode(), 1.0, q
    while operation(source) in SAME:
        source = node(source.src[0])
    if operation(source) == "SCALE":  # Gemma's q has the scale inside
        inside = source.params[0]
    q, k, v, o = array(q), array(k), array(v), array(of).swapaxes(1, 2)
    said: dict[str, Any] = {"sinks": None if sinks is None else array(sinks)[0, 0, 0]}
    if mask is not None:
        added = array(mask)[:, :1, : q.shape[2]].astype(np.float32)
        used = np.isfinite(added).any(axis=(0, 1, 2))  # of a cache that is longer than the text
        k, v, added = k[:, :, used], v[:, :, used], added[..., used]
        said["mask"] = np.isfinite(added)
        if largest:
            steps = slopes(q.shape[1], largest)[:, np.newaxis, np.newaxis].astype(np.float32)
            said["bias"] = steps * np.where(said["mask"], added, 0)
        earlier = np.tri(q.shape[2], k.shape[2], k.shape[2] - q.shape[2], np.bool_)
        if not (said["mask"] & ~earlier).any():
            said |= {"causal": "bottom-right", "mask": None if said["mask"].all(where=earlier) else said["mask"]}
    said |= {"scale": scale, "prescaled": [inside, 1], "softcap": softcap or None}
    return attn_tui.call(
        q, k, v, o, name=name, observed=True, **said
    )  # what was done, which may not be what was meant


def save(model: str, tokens: Sequence[int], path: str, **said: Any) -> None:
    """Run a model on a prompt, and save each of its layers."""
    calls: list[Any] = []

    @llama_cpp.ggml_backend_sched_eval_callback
    def callback(address: int, ask: bool, _: Any) -> bool:
        if operation(node(address)) == "FLASH_ATTN_EXT" and not ask:
            calls.append(call(node(address)))
        return not ask or operation(node(address)) == "FLASH_ATTN_EXT"

    loaded = llama_cpp.llama_model_load_from_file(model.encode(), llama_cpp.llama_model_default_params())
    parameters = llama_cpp.llama_context_default_params()
    parameters.n_ctx, parameters.cb_eval, parameters.flash_attn_type = 512, callback, 1
    context = llama_cpp.llama_init_from_model(loaded, parameters)
    numbers = (llama_cpp.llama_token * len(tokens))(*tokens)  # which the batch points to
    if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(numbers, len(tokens))):
        raise RuntimeError(f"{model}: llama.cpp could not decode {len(tokens)} tokens")
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(loaded)
    attn_tui.save(path, calls, **said)


if __name__ == "__main__":
    text = llama_cpp.Llama(sys.argv[1], vocab_only=True, verbose=False).tokenize(b"The capital of France is Paris.")
    save(sys.argv[1], text, sys.argv[2])
    print(repr(attn_tui.diagnose(sys.argv[2], expect="1/sqrt(d)")))
