"""flex_attention: its functions of a score and a pair of positions are evaluated for the kept rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from ..layers.chain import Reading
from ..layers.eager import Recipe, add_values
from ..layers.layer import Layer, Site, chosen_rows, make_layer, products


def is_flex(func: Any) -> bool:
    """Return whether a higher-order operator is flex_attention."""
    return getattr(func, "_name", "") == "flex_attention"


def record_flex(
    args: Sequence[Any], out: Any, factors: tuple[float | None, float | None], site: Site, recipe: Recipe
) -> Layer:
    """Return the layer of a call of flex_attention's operator."""
    q, k, v, score_mod, block_mask, scale = args[:6]
    score_buffers, mask_buffers = (args[7], args[8]) if len(args) > 8 else ((), ())
    queries = q.shape[2]
    batch, rows = min(q.shape[0], recipe.batch), chosen_rows(queries, recipe.rows)
    place = rows.to(q.device)
    kept_q, kept_k = q[:batch].index_select(2, place), k[:batch]
    reading = Reading(scale=float(scale))
    shape = (batch, q.shape[1], len(rows), k.shape[2])
    mask_mod = cast(Any, block_mask[-1] if isinstance(block_mask, tuple) else None)
    if callable(mask_mod):
        seen = _over_pairs(mask_mod, None, shape, place, mask_buffers)
        if not bool(seen.all()):
            reading.hidden = ~seen
    z = products(kept_q, kept_k) * reading.scale
    _read_score_mod(reading, z, lambda score: _over_pairs(score_mod, score, shape, place, score_buffers).double())
    lse = out[1][:batch].index_select(2, place)
    layers = [
        make_layer(site, kept_q, kept_k, rows, queries, reading, lse=lse.double() * base, factors=factors)
        for base in (math.log(2), 1.0)  # which base the log-sum-exp has depends on PyTorch's version
    ]
    layer = min(layers, key=lambda each: each.residual)
    if recipe.values:
        add_values(layer, v[:batch], out[0][:batch].index_select(2, place))
    return layer


def _over_pairs(
    function: Callable[..., Any],
    score: torch.Tensor | None,
    shape: tuple[int, int, int, int],
    rows: torch.Tensor,
    buffers: Sequence[Any],
) -> torch.Tensor:
    """Return the function's values for all texts, heads, rows and keys."""
    own = (None,) * len(buffers)
    first = () if score is None else (0,)
    for axis in (3, 2, 1, 0):
        places = tuple(0 if each == axis else None for each in range(4))
        function = torch.vmap(function, in_dims=(*first, *places, *own))
    device = rows.device
    texts, heads, keys = (torch.arange(shape[axis], device=device) for axis in (0, 1, 3))
    given = () if score is None else (score,)
    return function(*given, texts, heads, rows, keys, *buffers).expand(shape)


def _read_score_mod(reading: Reading, z: torch.Tensor, score_mod: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Tell whether score_mod adds a bias, hides keys, multiplies or soft-caps; else keep its effect as a bias."""
    at_zero, at_one = score_mod(torch.zeros_like(z)), score_mod(torch.ones_like(z))
    hidden = at_zero == -float("inf")
    if bool(hidden.any()):
        reading.hidden = hidden if reading.hidden is None else reading.hidden | hidden
        at_zero, at_one = at_zero.masked_fill(hidden, 0.0), at_one.masked_fill(hidden, 1.0)
    logits = score_mod(z).masked_fill(hidden, 0.0)
    plain = z.masked_fill(hidden, 0.0)
    slope = float((at_one - at_zero).mean())
    close = 1e-5 * (1 + float(plain.abs().max()))
    if float((logits - at_zero - slope * plain).abs().max()) <= close:
        reading.scale *= slope
        reading.bias = at_zero if bool(at_zero.any()) else None
        return
    cap = score_mod(torch.full_like(z, 1e6)).masked_fill(hidden, 0.0).max()
    if bool(torch.isfinite(cap)) and float((logits - cap * torch.tanh(plain / cap)).abs().max()) <= close:
        reading.softcap = float(cap)
        return
    reading.notes.append("bias is the difference of score_mod's result and scale · q·k")
    reading.bias = logits - plain
