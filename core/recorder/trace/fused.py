"""Fused kernels, by the names of their arguments: queries, keys and values in, outputs and log-sum-exp out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch

from ..layers.chain import ScoreChain, read
from ..layers.eager import RecordingLimits, add_values
from ..layers.layer import RecordedLayer, Site, chosen_rows, make_layer
from ..layers.scores import PLAIN, ScoreFactors, ScoreStep
from ..layers.visibility import Visible

# Names of arguments and results, in PyTorch, flash-attn 2 and 3, and xFormers.
_Q, _K, _V = ("query", "q"), ("key", "k"), ("value", "v")
_SCALE = ("scale", "softmax_scale")
_MASK = ("attn_mask", "attn_bias", "bias")
_CAUSAL = ("is_causal", "causal")
_SINKS = ("s_aux", "learnable_sink", "sinks")
_LSE = ("logsumexp", "softmax_lse", "log_sumexp", "lse")
_STARTS = ("cum_seq_q", "cu_seq_q", "cu_seqlens_q", "cumulative_sequence_length_q", "seqstart_q")
_PAGES = ("block_table", "page_table")
_USED = ("seqused_k", "seqused_q", "seqlen_k", "leftpad_k", "cache_seqlens")
# Arguments that change nothing beside those above.
_OTHERS = (
    "rng_state", "seed", "offset", "philox_seed", "philox_offset", "generator", "out", "out_", "scheduler_metadata",
    "max_seqlen_q", "max_seqlen_k")  # fmt: skip
# Whose operators are known, with the order of their axes; those of others have to prove what they do.
_KNOWN = ("aten", "flash_attn", "flash_attn_3", "xformers", "xformers_flash", "xformers_flash3", "torch_attn")
_HEADS_FIRST = "_scaled_dot_product_"  # takes [batch, heads, tokens, d_k]; others [batch, tokens, heads, d_k]
_OTHER = ("backward", "bwd", "choice", "multi_head_attention", "transformer_encoder")
_WORDS = ("attention", "attn", "flash", "fmha", "sdpa")


UNKNOWN = "unknown operator; docs/engines.md says how to save what it was given"


@dataclass(frozen=True)
class FusedCall:
    """A call of a fused kernel, in PyTorch's axes: [batch, heads, tokens, d]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    lse: torch.Tensor | None  # [batch, heads, tokens]
    scale: float
    offset: int | None = None  # query i sees keys up to i + offset; None: not causal
    window: tuple[int, int] = (-1, -1)  # keys seen before and after that one; -1: all
    softcap: float = 0.0
    mask: torch.Tensor | None = None  # boolean (True = visible) or additive
    slopes: torch.Tensor | None = None  # of ALiBi, [heads] or [batch, heads]
    sinks: torch.Tensor | None = None  # [heads]
    dropout: float = 0.0
    factors: ScoreFactors = PLAIN
    notes: tuple[str, ...] = ()  # for people


def is_fused(name: str, arguments: Sequence[str]) -> bool:
    """Return whether an operation of this name, with these arguments, is a fused attention kernel."""
    last = name.lower()
    return (
        any(word in last for word in _WORDS)
        and not any(word in last for word in _OTHER)
        and all(any(each in arguments for each in names) for names in (_Q, _K, _V))
    )


def is_known(func: Any) -> bool:
    """Return whether it is known what an operator does."""
    return func._schema.name.partition("::")[0] in _KNOWN


def with_lse(func: Any, given: Mapping[str, Any], out: Any) -> Any:
    """Return the results of a kernel; if it was told not to return its log-sum-exp, with that of another call.

    The other call is of the same numbers, without dropout, which draws random numbers and does not change it.
    """
    default = next(
        (argument.default_value for argument in func._schema.arguments if argument.name == "compute_log_sumexp"), None
    )
    if given.get("compute_log_sumexp", default) is not False:
        return out
    again = func(**{**given, "compute_log_sumexp": True, **({"dropout_p": 0.0} if given.get("dropout_p") else {})})
    return (out[0], *again[1:])


def calls_of(func: Any, given: Mapping[str, Any], out: Any) -> list[FusedCall] | str:
    """Return the call of a fused kernel, or why it cannot be recorded.

    An operator that is not known needs a log-sum-exp to prove what it did: there is a call for each order of axes.
    """
    known = is_known(func)
    orders = (_HEADS_FIRST in func._schema.name,) if known else (True, False)
    found = [_call_of(func, given, out, heads_first) for heads_first in orders]
    calls = [call for call in found if not isinstance(call, str) and (known or call.lse is not None)]
    if calls:
        return calls
    return found[0] if known and isinstance(found[0], str) else UNKNOWN


def _call_of(func: Any, given: Mapping[str, Any], out: Any, heads_first: bool) -> FusedCall | str:
    """Return the call of a fused kernel, or why it cannot be recorded."""
    q, k, v = (_first(given, names) for names in (_Q, _K, _V))
    results = dict(zip((result.name for result in func._schema.returns), _listed(out), strict=False))
    o, lse = _listed(out)[0], _lse(results, _listed(out), q)
    if not all(isinstance(tensor, torch.Tensor) and tensor.dim() >= 3 for tensor in (q, k, v, o)):
        return "its tensors have fewer than three dimensions"
    if _first(given, _STARTS) is not None:
        return "it packs texts of several lengths into one"
    if _first(given, _PAGES) is not None:
        return "it reads a paged cache"
    if _first(given, _USED) is not None:
        return "it reads only a part of the keys of each text"
    if given.get("attention_chunk"):
        return "it attends within chunks"
    understood = (*_Q, *_K, *_V, *_MASK, *_SINKS, *_OTHERS, "alibi_slopes")
    for argument, value in given.items():
        if isinstance(value, torch.Tensor) and argument not in understood:
            return f"its argument {argument} is not understood"
    if not heads_first:
        q, k, v, o = (tensor[:, :, None] if tensor.dim() == 3 else tensor for tensor in (q, k, v, o))
        q, k, v, o = (tensor.transpose(1, 2) for tensor in (q, k, v, o))
    if q.dim() != 4 or k.dim() != 4:
        return "its tensors have neither three nor four dimensions"
    if q.shape[0] != k.shape[0] or q.shape[-1] != k.shape[-1] or q.shape[1] % max(1, k.shape[1]):
        return "its queries and keys do not fit together"
    scale = _first(given, _SCALE)
    kind = given.get("custom_mask_type", 0)
    causal = bool(_first(given, _CAUSAL)) or kind in (1, 2)
    bottom_right = kind == 2 if kind else not heads_first
    window = given.get("window_size")
    if isinstance(window, int):
        window = (window - 1, None)
    before, after = window or (given.get("window_size_left"), given.get("window_size_right"))
    return FusedCall(
        q=q, k=k, v=v, o=o, lse=lse,
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        offset=(k.shape[2] - q.shape[2] if bottom_right else 0) if causal else None,
        window=(-1 if before is None else int(before), -1 if after is None else int(after)),
        softcap=float(given.get("softcap") or 0.0),
        mask=_first(given, _MASK),
        slopes=given.get("alibi_slopes"),
        sinks=_first(given, _SINKS),
        dropout=float(given.get("dropout_p") or given.get("p") or 0.0),
    )  # fmt: skip


def _unfolded(call: FusedCall, head_counts: Sequence[int]) -> FusedCall:
    """Return a call of one query whose heads that share keys came as rows; modules say how many heads there are."""
    _, kv_heads, group, _ = call.q.shape
    mask = call.mask
    folded = group > 1 and call.k.shape[1] == kv_heads not in head_counts and kv_heads * group in head_counts
    band = call.offset is not None or call.window != (-1, -1) or call.slopes is not None or call.sinks is not None
    of_rows = mask is not None and mask.shape[-2] > 1 and mask.shape[-3:-2] != (kv_heads,)
    if not folded or band or of_rows:
        return call

    def unfold(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.expand(-1, kv_heads, group, -1).reshape(tensor.shape[0], kv_heads * group, 1, -1)

    if mask is not None and mask.dim() == 4 and mask.shape[1] > 1:
        mask = unfold(mask)
    lse = None if call.lse is None else unfold(call.lse[:, :, :group, None])[..., 0]
    return replace(call, q=unfold(call.q), o=unfold(call.o), lse=lse, mask=mask, factors=call.factors.of(unfold))


def record_call(call: FusedCall, site: Site, recipe: RecordingLimits) -> RecordedLayer:
    """Return the layer of a fused call."""
    call = _unfolded(call, site.head_counts)
    queries, keys = call.q.shape[2], call.k.shape[2]
    batch = min(call.q.shape[0], recipe.batch)
    first = _unwritten(call.q)
    rows = first + chosen_rows(queries - first, recipe.rows)
    place = rows.to(call.q.device)
    heads = call.q.shape[1]

    def read_rows(some: torch.Tensor) -> ScoreChain:
        there, where = rows[some], place[some.to(place.device)]

        def pick(operand: torch.Tensor) -> torch.Tensor:
            wide = operand.expand(*operand.shape[:-2], queries, operand.shape[-1])
            wide = wide.reshape((1,) * (4 - wide.dim()) + tuple(wide.shape)) if wide.dim() < 4 else wide
            return wide[:batch].index_select(2, where)[..., :keys]

        steps = [ScoreStep("mul", call.scale)]
        if call.softcap:
            steps += [ScoreStep("mul", 1 / call.softcap), ScoreStep("tanh"), ScoreStep("mul", call.softcap)]
        if call.mask is not None and call.mask.dtype != torch.bool:
            steps.append(ScoreStep("add", 1.0, call.mask))
        reading = read(steps, pick, pick)
        if call.mask is not None and call.mask.dtype == torch.bool:
            reading.hide(~pick(call.mask))
        if (band := _band(call, there)) is not None:
            reading.hide(~band.to(call.q.device))
        if call.slopes is not None:
            bias = _alibi(call.slopes[..., :heads], where + (keys - queries), keys)
            reading.bias = bias if reading.bias is None else reading.bias + bias
        if call.sinks is not None:
            reading.sinks = call.sinks.detach().double().reshape(-1)[:heads]
        return reading

    q, k = call.q[:batch].index_select(2, place), call.k[:batch]
    width = _unpadded(call)
    lse = None if call.lse is None else call.lse[:batch, :, :queries].index_select(2, place)
    layer = make_layer(
        site,
        q[..., :width],
        k[..., :width],
        rows,
        queries,
        read_rows,
        lse=lse,
        factors=call.factors.of(lambda rows: rows[:batch].index_select(2, place)),
        scores=torch.float64 if q.dtype == torch.float64 else torch.float32,
    )
    layer.dropout = call.dropout
    layer.notes += call.notes
    if first:
        layer.notes.append(f"{first} queries are left out: they look like memory that nothing was written to")
    if recipe.values and not call.dropout:
        add_values(layer, call.v[:batch], call.o[:batch].index_select(2, place))
    return layer


_WILD = 1e8  # times the size of the last query, which no query that was computed has


def _unwritten(q: torch.Tensor) -> int:
    """Return how many first queries look like memory that nothing was written to: sglang has them for a prefix."""
    if not q.numel():
        return 0
    sizes = (q if q.element_size() > 1 else q.float()).detach().abs().amax(dim=(0, 1, 3)).double()
    wild = (sizes > _WILD * sizes[-1]) & (sizes[-1] > 0)
    return int(wild.nonzero()[-1]) + 1 if bool(wild.any()) else 0


def _band(call: FusedCall, rows: torch.Tensor) -> torch.Tensor | None:
    """Return the keys that causality and the window leave visible: [1, 1, rows, keys]."""
    queries, keys = call.q.shape[2], call.k.shape[2]
    before, after = call.window
    if call.offset is None and before < 0 and after < 0:
        return None
    if call.offset is not None and before < 0:
        return Visible(call.offset).pairs(rows, keys)
    distance = (rows + (keys - queries))[:, None] - torch.arange(keys)
    seen = torch.ones_like(distance, dtype=torch.bool)
    if before >= 0:
        seen &= distance <= before
    if call.offset is not None or after >= 0:
        seen &= distance >= -max(after, 0) if call.offset is None else distance >= 0
    return seen[None, None]


def _alibi(slopes: torch.Tensor, places: torch.Tensor, keys: int) -> torch.Tensor:
    """Return flash-attn's bias of these slopes, for queries at these places: [batch or 1, heads, queries, keys]."""
    distance = (places[:, None] - torch.arange(keys, device=slopes.device)).abs()
    return -slopes.reshape(-1, slopes.shape[-1], 1, 1).double() * distance


def _unpadded(call: FusedCall) -> int:
    """Return the width of queries and keys before a kernel had them padded with zeros.

    The scale tells it: PyTorch computes 1/√d_k before it pads.
    """
    width = call.q.shape[-1]
    if call.scale <= 0:
        return width
    before = round(1 / call.scale**2)
    if not width - 8 < before < width or abs(call.scale * math.sqrt(before) - 1) > 1e-6:
        return width
    return width if bool(call.q[..., before:].any()) or bool(call.k[..., before:].any()) else before


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((given[name] for name in names if given.get(name) is not None), None)


def _listed(out: Any) -> tuple[Any, ...]:
    return tuple(cast("Sequence[Any]", out)) if isinstance(out, (tuple, list)) else (out,)


def _lse(results: Mapping[str, Any], listed: Sequence[Any], q: torch.Tensor) -> torch.Tensor | None:
    """Return the log-sum-exp among a kernel's results: by name, else the second one if its shape fits."""
    found: Any = _first(results, _LSE)
    if found is None and len(listed) > 1 and isinstance(listed[1], torch.Tensor) and listed[1].dim() == 3:
        found = listed[1]
    if not isinstance(found, torch.Tensor) or found.dim() < 3 or found.numel() == 0:
        return None
    if found.dim() == 4 and found.shape[-1] == 1:  # cuDNN
        found = found[..., 0]
    return found if found.dim() == 3 else None
