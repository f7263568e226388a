"""Save the attention of programs without PyTorch (NumPy, JAX, MLX, Keras): what a call was given, as a capture."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial, reduce, wraps
from importlib import import_module
from inspect import signature
from itertools import count
from pathlib import Path
from traceback import walk_stack
from typing import Any
from warnings import warn

import numpy as np
from safetensors.numpy import save as safetensors_of

from ...errors import needed
from ...files import check_replaceable, write_bytes
from .call import Call, call, contents_of


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
    tensors, metadata = contents_of(calls)
    if config is not None:
        metadata["config"] = json.dumps(config, default=str)
    for key, names in (("tokens", tokens), ("query_tokens", query_tokens)):
        if names is not None:
            metadata[key] = json.dumps(list(names))
    write_bytes([safetensors_of(tensors, metadata)], Path(path))


# The arguments of jax.nn.dot_product_attention that are understood: arrays, and others.
_ARRAYS = ("query", "key", "value", "bias", "mask", "query_seq_lengths", "key_value_seq_lengths")
_OTHERS = ("scale", "is_causal", "local_window_size", "implementation", "return_residual")


@contextmanager
def record_jax(
    path: str | os.PathLike[str], *, config: Mapping[str, Any] | None = None, overwrite: bool = False
) -> Generator[None]:
    """Record calls of jax.nn.dot_product_attention in a block, the first of each place, also in compiled functions.

    Functions that were compiled before the block, or hold the function under a name of their own, are not seen.
    Nothing that goes wrong reaches the program: at the end, a warning says which calls are not recorded, and why. If
    the file cannot be written, that is raised as by `save`, or is a warning if the block ends by an exception.
    Raise InputError at once for a file that is not a recording, unless `overwrite`.
    """
    needed("jax", "attn_tui.record_jax needs JAX: pip install jax")
    if not overwrite:
        check_replaceable(Path(path), recording=True, remedy="overwrite=True")
    library: Any = import_module("jax")
    original = library.nn.dot_product_attention
    parameters = signature(original)
    places = count()
    recording, compiled = True, False
    taken: dict[int, Mapping[str, Any]] = {}  # what calls were given and returned, by place
    missed: list[str] = []

    def take(place: int, others: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        if recording:
            taken.setdefault(place, {**others, **arrays})

    def see(given: Mapping[str, Any], out: Any) -> None:
        nonlocal compiled
        place = next(places)
        arrays = {each: library.numpy.asarray(given[each]) for each in _ARRAYS if given.get(each) is not None}
        arrays["out"] = out[0] if isinstance(out, tuple) else out
        others = {name: each for name, each in given.items() if name not in _ARRAYS}
        if hasattr(others.get("scale"), "dtype"):
            arrays["scale"] = others.pop("scale")
        if not any(isinstance(each, library.core.Tracer) for each in arrays.values()):
            take(place, others, {name: np.array(each) for name, each in arrays.items()})
            return
        library.local_devices(backend="cpu")  # which callbacks need: they would raise into the program
        if any(frame.f_globals.get("__name__", "").startswith("jax._src.export") for frame, _ in walk_stack(None)):
            raise ValueError("it is exported")  # which callbacks cannot be
        # NumPy reads the arrays at the end: here it would wait for them, and they for the computation that calls.
        library.debug.callback(partial(take, place, others), arrays)
        compiled = True

    @wraps(original)
    def wrapped(*positional: Any, **named: Any) -> Any:
        out = original(*positional, **named)
        if recording:
            try:
                see(parameters.bind(*positional, **named).arguments, out)
            except Exception as error:
                missed.append(_reason(error))
        return out

    def finish() -> None:
        nonlocal recording
        library.nn.dot_product_attention = original
        with suppress(Exception):  # of the program's own callbacks, which it hears of where it waits for them
            library.effects_barrier()
        recording = False
        with suppress(Exception):
            if compiled:
                library.clear_caches()  # what was compiled in the block would call back for ever
        calls: list[Call] = []
        for place in sorted(taken):
            try:
                calls.append(_call_of_jax(f"call {place}", taken.pop(place)))
            except Exception as error:
                missed.append(_reason(error))
        says = [
            f"attn-tui: not recorded: {times} call{'s' * (times > 1)} of jax.nn.dot_product_attention: {why}"
            for why, times in Counter(missed).items()
        ]
        if not calls and not says:
            says = ["attn-tui: no call of jax.nn.dot_product_attention was seen"]
        try:
            if calls:
                save(path, calls, config=config, overwrite=overwrite)
        finally:
            for each in says:
                warn(each, stacklevel=4)

    library.nn.dot_product_attention = wrapped
    try:
        yield
    except BaseException:
        with suppress(Warning):  # which may be an error, and must not hide that of the program
            try:
                finish()
            except Exception as error:
                warn(f"attn-tui: {_reason(error)}", stacklevel=3)
        raise
    finish()


def _call_of_jax(name: str, given: Mapping[str, Any]) -> Call:
    """Return a call of jax.nn.dot_product_attention by its arguments, and by `out`, what it returned.

    Raise ValueError for what a capture cannot say.
    """
    if unknown := {each for each in given if given[each] is not None} - {*_ARRAYS, *_OTHERS, "out"}:
        raise ValueError(f"{', '.join(sorted(unknown))} is not understood")
    roles = {"query": "q", "key": "k", "value": "v", "out": "o", "bias": "bias", "mask": "mask"}
    # Without batch, they have three axes.
    arrays: dict[str, Any] = {role: np.array(given[each], ndmin=4) for each, role in roles.items() if each in given}
    queries, keys = arrays["q"].shape[1], arrays["k"].shape[1]
    visible: list[Any] = [arrays["mask"]] if "mask" in arrays else []
    if "query_seq_lengths" in given:
        visible.append(np.arange(queries)[:, np.newaxis] < np.expand_dims(given["query_seq_lengths"], (1, 2, 3)))
    if "key_value_seq_lengths" in given:
        visible.append(np.arange(keys) < np.expand_dims(given["key_value_seq_lengths"], (1, 2, 3)))
    if visible:
        arrays["mask"] = reduce(np.logical_and, visible)
    for role in arrays.keys() & {"bias", "mask"}:  # whose last axis is that of keys in a capture, also if it is 1
        arrays[role] = np.broadcast_to(arrays[role], (*arrays[role].shape[:3], keys))
    scale = given.get("scale")
    found = call(
        **arrays,
        name=name,
        axes="batch,token,head,d_k",
        scale=arrays["q"].shape[-1] ** -0.5 if scale is None else float(scale),
        causal="top-left" if given.get("is_causal") else False,
    )
    entry: dict[str, Any] = {**found.entry, "observed": True}  # what was done, which need not be what was meant
    if (window := given.get("local_window_size")) is not None:
        before, after = (window, window) if isinstance(window, int) else map(int, window)
        if before < 0 or after < 0:
            raise ValueError(f"local_window_size {window} is negative")
        entry |= {"window": [before, after], "alignment": "top-left"}
    return replace(found, entry=entry)


def _reason(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
