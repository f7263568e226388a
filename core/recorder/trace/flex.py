"""flex_attention: its functions of a score and a pair of positions are evaluated for the kept rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from ..layers.chain import ScoreChain
from ..layers.eager import RecordingLimits, add_values
from ..layers.layer import AT_ONCE, RecordedLayer, Site, chosen_rows, make_layer, products
from ..layers.scores import ScoreFactors


def is_flex(func: Any) -> bool:
    """Return whether a higher-order operator is flex_attention."""
    return getattr(func, "_name", "") == "flex_attention"


def run_in_blocks(func: Any, args: Sequence[Any], kwargs: Any) -> Any:
    """Run flex_attention's operator as PyTorch does without compiling it, but some queries at a time.

    Unfused, it makes all scores, which a compiled program that is recorded has no memory for.
    """
    q, k, v, score_mod, block_mask, *others = args
    most = max(1, AT_ONCE // (q.shape[0] * q.shape[1] * k.shape[2]))
    if q.shape[2] <= most:
        return func(*args, **kwargs)
    whole: tuple[torch.Tensor, ...] = ()
    for start in range(0, q.shape[2], most):
        mods = _later(score_mod, 3, start), (*block_mask[:-1], _later(block_mask[-1], 2, start))
        part = func(q[:, :, start : start + most], k, v, *mods, *others, **kwargs)
        whole = whole or tuple(each.new_empty((*each.shape[:2], q.shape[2], *each.shape[3:])) for each in part)
        for rows, found in zip(whole, part, strict=True):
            rows[:, :, start : start + most] = found
    return whole


def _later(function: Callable[..., Any], place: int, start: int) -> Callable[..., Any]:
    """Return a function of pairs for queries that begin later; `place` is that of the query in its arguments."""

    def moved(*given: Any) -> Any:
        return function(*given[:place], given[place] + start, *given[place + 1 :])

    return moved


def record_flex(
    args: Sequence[Any], out: Any, factors: ScoreFactors, site: Site, recipe: RecordingLimits
) -> RecordedLayer:
    """Return the layer of a call of flex_attention's operator."""
    q, k, v, score_mod, block_mask, scale = args[:6]
    score_buffers, mask_buffers = (args[7], args[8]) if len(args) > 8 else ((), ())
    queries = q.shape[2]
    batch, rows = min(q.shape[0], recipe.batch), chosen_rows(queries, recipe.rows)
    place = rows.to(q.device)
    kept_q, kept_k = q[:batch].index_select(2, place), k[:batch]
    factors = factors.of(lambda rows: rows[:batch].index_select(2, place))
    mask_mod = cast(Any, block_mask[-1] if isinstance(block_mask, tuple) else None)

    def read_rows(some: torch.Tensor) -> ScoreChain:
        reading, there = ScoreChain(scale=float(scale)), place[some.to(place.device)]
        shape = (batch, q.shape[1], len(some), k.shape[2])
        if callable(mask_mod):
            seen = _over_pairs(mask_mod, None, shape, there, mask_buffers)
            if not bool(seen.all()):
                reading.hide(~seen)
        z = products(kept_q[:, :, some.to(place.device)], kept_k) * reading.scale
        _read_score_mod(reading, z, lambda score: _over_pairs(score_mod, score, shape, there, score_buffers).double())
        return reading

    lse = out[1][:batch].index_select(2, place)
    layers: list[RecordedLayer] = []
    for base in (math.log(2), 1.0):  # which base the log-sum-exp has depends on PyTorch's version
        in_nats = lse.double() * base
        layers.append(make_layer(site, kept_q, kept_k, rows, queries, read_rows, lse=in_nats, factors=factors))
        if layers[-1].exact:
            break
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
        places = tuple(0 if place == axis else None for place in range(4))
        function = torch.vmap(function, in_dims=(*first, *places, *own))
    device = rows.device
    texts, heads, keys = (torch.arange(shape[axis], device=device) for axis in (0, 1, 3))
    given = () if score is None else (score,)
    return function(*given, texts, heads, rows, keys, *buffers).expand(shape)


def _read_score_mod(reading: ScoreChain, z: torch.Tensor, score_mod: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Tell whether score_mod adds a bias, hides keys, multiplies or soft-caps; else keep its effect as a bias."""
    at_zero, at_one = score_mod(torch.zeros_like(z)), score_mod(torch.ones_like(z))
    hidden = at_zero == -float("inf")
    if bool(hidden.any()):
        reading.hide(hidden)
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
    reading.bias, reading.unknown = logits - plain, True  # it may hide another multiplier
