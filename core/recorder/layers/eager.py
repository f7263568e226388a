"""Attention written as product, softmax, product: from what is known of the scores to a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .chain import ScoreChain, read
from .copies import copied, kept
from .layer import RecordedLayer, Site, chosen_rows, make_layer
from .layout import TensorLayout, layout_of
from .outputs import Outputs
from .scores import Scores


@dataclass(frozen=True)
class RecordingLimits:
    """How much of each call is kept."""

    rows: int = 256
    batch: int = 2
    values: bool = False


@dataclass
class Pending:
    """A layer whose weights have not met the values yet."""

    layer: RecordedLayer | None = None
    done: bool = False
    alone: bool = False  # whether it is attention though no values follow: neither a classifier nor mere exponentials
    layout: TensorLayout | None = None
    keys: int = 0
    rows: torch.Tensor | None = None
    batch: int = 0
    shift: torch.Tensor | None = None  # added to whole rows before softmax
    over_queries: Callable[[], RecordedLayer | None] | None = None  # gives the layer if values meet the other axis
    outputs: Outputs | None = None  # if the weights meet the values in parts, or in another order
    met: bool = False  # whether the weights were multiplied by a matrix that may hold values
    weights: Any = None  # what was done to the weights that have met some values
    reached: tuple[str, ...] = ()  # what was done to weights by the last operation whose result is not followed

    def normalise(self, sums: torch.Tensor) -> None:
        """Take the log-sum-exp from what exponentials were divided by, with canonical dimensions."""
        if self.layer is None or self.layout is None or self.rows is None:
            return
        self.alone = True
        picked = self.layout.arrange(sums, self.layout.queries, 1)[: self.batch, :, self.rows.to(sums.device), 0]
        lse = picked.double().log()
        if self.shift is not None:
            lse = lse - self.shift[..., 0].to(lse)
        part = self.layer.parts[0]
        self.layer.parts[0] = replace(part, lse=kept(lse.float()))
        self.layer.copied = copied(lse.device)

    def gathered(self, keep: bool) -> Outputs | None:
        """Return the values and outputs that were met so far; None if the layer is not recorded."""
        if self.outputs is None and self.layout is not None and self.rows is not None:
            self.outputs = Outputs(self.layout, self.keys, self.rows, self.batch, keep)
        return self.outputs

    def add_values(self, v: torch.Tensor, o: torch.Tensor) -> None:
        """Keep values [N, keys, d_v], and outputs [N, queries, d_v] of the kept rows."""
        if self.layer is None or self.layout is None or self.rows is None:
            return
        width = v.shape[-1]
        values = self.layout.arrange(v, self.keys, width)
        outputs = self.layout.arrange(o, self.layout.queries, width)[: self.batch, :, self.rows.to(o.device)]
        add_values(self.layer, values[: self.batch], outputs)


def add_values(layer: RecordedLayer, v: torch.Tensor, o: torch.Tensor) -> None:
    """Keep values [batch, heads or kv_heads, keys, d_v] and outputs [batch, heads, rows, d_v]."""
    values, heads = v, layer.k.shape[1]
    if values.shape[1] != heads:
        group = values.shape[1] // heads
        groups = values.unflatten(1, (heads, group)) if group and values.shape[1] % heads == 0 else None
        if groups is not None and bool((groups == groups[:, :, :1]).all()):
            values = groups[:, :, 0]
        elif groups is not None:  # keys are shared by heads whose values are not
            layer.copied.synchronize()
            layer.k = layer.k.repeat_interleave(group, 1)
        else:
            layer.notes.append("values are not kept: they have other heads than keys")
            return
    layer.v = kept(values)
    layer.parts[0] = replace(layer.parts[0], o=kept(o))
    layer.copied = copied(o.device)


def capture(
    pending: Pending, scores: Scores, x: torch.Tensor, site: Site, recipe: RecordingLimits, raw: bool
) -> RecordedLayer | None:
    """Return the layer of scores x, with canonical dimensions, whose softmax is taken, or `raw` exponentials.

    None if one matrix is multiplied by all texts: a classifier, or features of a kernel, as of Performer.
    """
    product = scores.product
    stacked, d_k = product.q.shape[0], product.d_k
    keys = product.k.shape[1]
    layout = layout_of(tuple(x.shape[:-1]), product.q.shape[1], site.head_counts, site.batch)
    shared = stacked == 1 or (raw and product.k.stride(0) == 0)
    if shared and layout.batch * (layout.heads if raw else 1) > 1:
        return None
    batch = min(layout.batch, recipe.batch)
    rows = chosen_rows(layout.queries, recipe.rows)
    place = rows.to(x.device)

    def pick(operand: torch.Tensor, some: torch.Tensor, keys: int | None = None) -> torch.Tensor:
        return layout.pick(operand, place[some.to(place.device)], batch)[..., :keys]

    q = layout.pick(product.q, place, batch)
    k = layout.arrange(product.k, keys, d_k)[:batch]
    if product.width is not None and not bool(k[..., product.width :].any()):
        q, k = q[..., : product.width], k[..., : product.width]
    notes: list[str] = []

    def read_rows(some: torch.Tensor) -> ScoreChain:
        reading = read(scores.steps, lambda operand: pick(operand, some, keys), lambda operand: pick(operand, some))
        reading.notes += notes
        reading.logits = pick(x, some)
        return reading

    if layout.assumed:
        notes.append(f"{stacked} stacked matrices are taken for {layout.heads} heads of {layout.batch} texts")
    factors = product.factors.of(lambda of_rows: layout.pick(of_rows, place, batch))
    layer = make_layer(site, q, k, rows, layout.queries, read_rows, factors=factors, scores=scores.dtype)
    if any(step.kind == "shift" for step in scores.steps):
        pending.shift = read_rows(torch.arange(len(rows))).shift
    pending.alone = not raw and (stacked > 1 or x.dim() > 2)
    pending.layout, pending.keys, pending.rows, pending.batch = layout, keys, rows, batch
    return layer
