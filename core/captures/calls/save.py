"""Save the attention of programs without PyTorch (NumPy, JAX, MLX, Keras): what a call was given, as a capture."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.numpy import save as safetensors_of

from ...files import check_replaceable, write_bytes
from .call import Call, contents_of


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
    tensors, metadata = contents_of(calls, config)
    for key, names in (("tokens", tokens), ("query_tokens", query_tokens)):
        if names is not None:
            metadata[key] = json.dumps(list(names))
    write_bytes([safetensors_of(tensors, metadata)], Path(path))
