"""Fused kernels, by the names of their arguments: queries, keys and values in, outputs and log-sum-exp out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from ..layers.chain import read
from ..layers.eager import Recipe, add_values
from ..layers.layer import Layer, Site, chosen_rows, make_layer
from ..layers.scores import Step
from ..layers.visibility import Visible

# Names of arguments and results, in PyTorch, flash-attn 2 and 3, and xFormers.
_Q, _K, _V = ("query", "q"), ("key", "k"), ("value", "v")
_SCALE = ("scale", "softmax_scale")
_MASK = ("attn_mask", "attn_bias", "bias")
_CAUSAL = ("is_causal", "causal")
_LSE = ("logsumexp", "softmax_lse", "log_sumexp", "lse")
_STARTS = ("cum_seq_q", "cu_seqlens_q", "cumulative_sequence_length_q", "seqstart_q")
_HEADS_FIRST = (
    "_scaled_dot_product_"  # these take [batch, heads, tokens, d_k], the others [batch, tokens, heads, d_k]
)
_OTHER = ("backward", "bwd", "choice", "multi_head_attention", "transformer_encoder")
_WORDS = ("attention", "attn", "flash", "fmha", "sdpa")


@dataclass(frozen=True)
class Call:
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
    factors: tuple[float | None, float | None] = (1.0, 1.0)


def is_fused(name: str, arguments: Sequence[str]) -> bool:
    """Return whether an operation of this name, with these arguments, is a fused attention kernel."""
    last = name.lower()
    return (
        any(word in last for word in _WORDS)
        and not any(word in last for word in _OTHER)
        and all(any(each in arguments for each in names) for names in (_Q, _K, _V))
    )


def lacks_lse(given: Mapping[str, Any]) -> bool:
    """Return whether a kernel was told not to return its log-sum-exp, and draws no random numbers."""
    return given.get("compute_log_sumexp") is False and not given.get("dropout_p")


def call_of(func: Any, given: Mapping[str, Any], out: Any) -> Call | str:
    """Return the call of a fused kernel, or why it cannot be recorded."""
    name = func._schema.name
    q, k, v = (_first(given, names) for names in (_Q, _K, _V))
    results = dict(zip((result.name for result in func._schema.returns), _listed(out), strict=False))
    o, lse = _listed(out)[0], _lse(results, _listed(out), q)
    if not all(isinstance(each, torch.Tensor) and each.dim() >= 3 for each in (q, k, v, o)):
        return "its tensors have fewer than three dimensions"
    starts = _first(given, _STARTS)
    if starts is not None:
        return "it packs texts of several lengths into one"
    if given.get("block_table") is not None or given.get("page_table") is not None:
        return "it reads a paged cache"
    if _HEADS_FIRST not in name:
        q, k, v, o = (each[:, :, None] if each.dim() == 3 else each for each in (q, k, v, o))
        q, k, v, o = (each.transpose(1, 2) for each in (q, k, v, o))
    if q.dim() != 4 or k.dim() != 4:
        return "its tensors have neither three nor four dimensions"
    scale = _first(given, _SCALE)
    bottom_right = _HEADS_FIRST not in name
    causal = bool(_first(given, _CAUSAL))
    kind = given.get("custom_mask_type", 0)
    causal, bottom_right = causal or kind in (1, 2), bottom_right if not kind else kind == 2
    before, after = given.get("window_size_left", -1), given.get("window_size_right", -1)
    return Call(
        q=q, k=k, v=v, o=o, lse=lse,
        scale=1 / math.sqrt(q.shape[-1]) if scale is None else float(scale),
        offset=(k.shape[2] - q.shape[2] if bottom_right else 0) if causal else None,
        window=(-1 if before is None else int(before), -1 if after is None else int(after)),
        softcap=float(given.get("softcap") or 0.0),
        mask=_first(given, _MASK),
        slopes=given.get("alibi_slopes"),
        sinks=given.get("s_aux", given.get("learnable_sink")),
        dropout=float(given.get("dropout_p") or given.get("p") or 0.0),
    )  # fmt: skip


def record_call(call: Call, site: Site, recipe: Recipe) -> Layer:
    """Return the layer of a fused call."""
    queries, keys = call.q.shape[2], call.k.shape[2]
    batch = min(call.q.shape[0], recipe.batch)
    rows = chosen_rows(queries, recipe.rows)
    place = rows.to(call.q.device)
    heads = call.q.shape[1]

    def pick(operand: torch.Tensor) -> torch.Tensor:
        wide = operand.expand(*operand.shape[:-2], queries, operand.shape[-1])
        wide = wide.reshape((1,) * (4 - wide.dim()) + tuple(wide.shape)) if wide.dim() < 4 else wide
        return wide[:batch].index_select(2, place)[..., :keys]

    steps = [Step("mul", call.scale)]
    if call.softcap:
        steps += [Step("mul", 1 / call.softcap), Step("tanh"), Step("mul", call.softcap)]
    if call.mask is not None:
        boolean = call.mask.dtype == torch.bool
        steps.append(Step("fill", -float("inf"), ~call.mask) if boolean else Step("add", 1.0, call.mask))
    if call.slopes is not None:
        steps.append(Step("add", 1.0, _alibi(call.slopes, queries, keys)))
    band = _band(call, rows)
    reading = read(steps, pick, pick)
    if call.sinks is not None:
        reading.sinks = call.sinks.detach().double().reshape(-1)[:heads]
    if band is not None:
        hidden = ~band.to(call.q.device)
        reading.hidden = hidden if reading.hidden is None else reading.hidden | hidden
    if call.dropout:
        reading.notes.append(f"between softmax and the values: dropout {call.dropout:g}")
    q, k = call.q[:batch].index_select(2, place), call.k[:batch]
    width = _unpadded(call)
    lse = None if call.lse is None else call.lse[:batch, :, :queries].index_select(2, place)
    layer = make_layer(
        site,
        q[..., :width],
        k[..., :width],
        rows,
        queries,
        reading,
        lse=lse,
        factors=call.factors,
        scores=torch.float64 if q.dtype == torch.float64 else torch.float32,
    )
    if recipe.values:
        add_values(layer, call.v[:batch], call.o[:batch].index_select(2, place))
    return layer


def _band(call: Call, rows: torch.Tensor) -> torch.Tensor | None:
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


def _alibi(slopes: torch.Tensor, queries: int, keys: int) -> torch.Tensor:
    """Return flash-attn's bias of these slopes: [batch or 1, heads, queries, keys]."""
    places = torch.arange(queries, device=slopes.device) + (keys - queries)
    distance = (places[:, None] - torch.arange(keys, device=slopes.device)).abs()
    return -slopes.reshape(-1, slopes.shape[-1], 1, 1).float() * distance


def _unpadded(call: Call) -> int:
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
