"""The recorder as a function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING

from .options import Options, foreign_file, problem, size_in_bytes, with_earlier_files

if TYPE_CHECKING:
    import torch

    from .recorder import Recorder


def record(
    model: torch.nn.Module | None,
    path: str | os.PathLike[str],
    *,
    every: int | None = None,
    max_steps: int | None = None,
    keep: int | None = None,
    layers: str | None = None,
    rows: int = 256,
    batch: int = 2,
    values: bool = False,
    max_bytes: int | str = "256M",
    ranks: str = "0",
    tokens: Sequence[str] | None = None,
    expect: str | float | None = None,
    query_tokens: Sequence[str] | None = None,
    overwrite: bool = False,
) -> Recorder:
    """Record the attention of a model from now on, until the returned recorder is closed or its `with` block ends.

    model:      the module whose calls are recorded, and those of its methods and of modules inside it; None records
                whatever this thread computes in the block
    path:       a .safetensors file for one step; with `every`, a folder with a file for each recorded step
    every:      steps from one file to the next: steps of an optimizer if there is one, else calls of the module with
                attention that is called first
    max_steps:  files at most
    keep:       newest files to keep in the folder; older ones of this run are removed
    layers:     numbers and ranges ("0,4,8-11"), or a regular expression for module names
    rows:       queries kept of each layer, evenly spaced
    batch:      texts kept
    values:     keep values and outputs, too
    max_bytes:  size of a file, such as "256M"; if it is too small, there are fewer rows, then fewer layers
    ranks:      "0" or "all" processes of a distributed run
    tokens:     the text's tokens, one for each key
    expect:     the multiplier that is intended, for diagnoses of the file: a rule, a number or a formula of d
    query_tokens: those of the queries of cross-attention, which are of another text
    overwrite:  replace files that are not recordings

    Raise ValueError if an argument is not valid, or if a file may not be replaced. Errors while recording never reach
    the program; `summary` of the recorder says what was seen and missed.
    """
    try:
        from .recorder import Recorder  # here: without PyTorch, the function can still be looked at
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ModuleNotFoundError(
            "attn_tui.record needs PyTorch: pip install 'attn-tui[torch]'", name="torch"
        ) from None
    options = Options(
        path=os.path.abspath(path),
        layers=layers,
        rows=rows,
        batch=batch,
        every=every,
        max_steps=max_steps,
        values=values,
        max_bytes=size_in_bytes(max_bytes) if isinstance(max_bytes, str) else max_bytes,
        ranks=ranks,
        keep=keep,
        tokens=None if tokens is None else tuple(tokens),
        expect=None if expect is None else str(expect),
        query_tokens=None if query_tokens is None else tuple(query_tokens),
        version=_version(),
        overwrite=overwrite,
    )
    if (wrong := problem(options)) is not None:
        raise ValueError(" ".join(wrong))
    options = with_earlier_files(options)
    if (file := foreign_file(options)) is not None:
        remedy = "use another name, or overwrite=True"
        raise ValueError(f"{file}: exists and is not a recording; {remedy}")
    return Recorder(options, model, _warn, whole=model is None).start()


def _version() -> str:
    try:
        return metadata.version("attn-tui")
    except metadata.PackageNotFoundError:
        return ""


def _warn(recorder: Recorder) -> None:
    """Warn if anything was missed."""
    if not recorder.complete:
        warnings.warn(f"attn-tui: {recorder.summary}", RuntimeWarning, stacklevel=3)
