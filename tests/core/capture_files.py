"""Capture files for tests: written to a folder, opened, and compared with the arrays in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from attn_tui.core.captures.capture import CaptureContents
from attn_tui.core.captures.files import CaptureError
from attn_tui.core.captures.head import CaptureFile, HeadData, read_head
from attn_tui.core.captures.reader import open_capture
from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

Array: TypeAlias = npt.NDArray[Any]
HEADS_FIRST: str = "batch,head,token,d_k"


def numbers(*shape: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Values that every format of a capture holds exactly: multiples of 1/4 from −2 to 2."""
    values = np.random.default_rng(seed).integers(-8, 9, shape) / 4
    return np.ascontiguousarray(values.astype(dtype))


def pair(
    batch: int = 2, heads: int = 4, kv_heads: int = 4, queries: int = 5, keys: int = 6, d_k: int = 8
) -> tuple[Array, Array]:
    """q [batch, heads, queries, d_k] and k [batch, kv_heads, keys, d_k]."""
    return numbers(batch, heads, queries, d_k), numbers(batch, kv_heads, keys, d_k, seed=1)


def named(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Tensors of layer 0, and those of all layers, whose names begin with `*.`."""
    return {
        name.removeprefix("*.") if name.startswith("*.") else f"layers.0.attn.{name}": array
        for name, array in tensors.items()
    }


def layered(count: int) -> dict[str, Array]:
    """The tensors of some layers, all with the same q and k."""
    q, k = pair()
    return {f"layers.{i}.attn.{side}": array for i in range(count) for side, array in (("q", q), ("k", k))}


def save(path: Path, tensors: dict[str, Array], **metadata: object) -> Path:
    """Write a .safetensors file; metadata that is not text is written as JSON."""
    text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, path, text or None)
    return path


def opened(folder: Path, tensors: dict[str, Array], **metadata: object) -> CaptureFile:
    """Write a .safetensors file and open it."""
    return open_capture(save(folder / "opened.safetensors", tensors, **metadata))


def every_head(capture: CaptureFile, layer: int = 0) -> list[HeadData]:
    return [read_head(capture, capture.layers[layer], head) for head in range(capture.layers[layer].heads)]


def visible(capture: CaptureFile, layer: int = 0, head: int = 0) -> Array:
    """The keys that each query of a head may attend to, which must not be all of them."""
    found = read_head(capture, capture.layers[layer], head).visibility
    assert found is not None
    return found.of(slice(None), slice(None))


def assert_holds(capture: CaptureFile, q: Array, k: Array, layer: int = 0) -> None:
    """The layer's heads are those of q [batch, heads, queries, d_k] and k [batch, kv_heads, keys, d_k]."""
    assert capture.layers[layer].sizes == (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    assert (capture.layers[layer].kv_heads, capture.layers[layer].d_k) == (k.shape[1], q.shape[3])
    group = q.shape[1] // k.shape[1]
    for head, read in enumerate(every_head(capture, layer)):
        np.testing.assert_array_equal(read.q, q[:, head].astype(read.q.dtype))
        np.testing.assert_array_equal(read.k, k[:, head // group].astype(read.k.dtype))


def has_note(capture: CaptureContents, *words: str) -> bool:
    """Whether one note has all of these words."""
    return any(all(word in note for word in words) for note in capture.notes)


def refused(path: Path | str, axes: str | None = None) -> str | None:
    """The message with which opening the file or reading one of its heads is refused; None if all can be read."""
    try:
        capture = open_capture(path, axes)
        for layer in range(len(capture.layers)):
            every_head(capture, layer)
    except CaptureError as error:
        message = str(error)
    else:
        return None
    assert message.isprintable()  # so it is one line
    assert len(message) < 600 + len(str(path))
    return message


def refusal(path: Path | str, axes: str | None = None) -> str:
    """The message with which the file is refused."""
    message = refused(path, axes)
    assert message is not None
    return message
