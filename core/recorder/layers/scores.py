"""Scores on their way from the product of queries and keys to softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

import torch

from .geometry import Geometry

EIGHT_BITS, NORM = "a product of 8-bit numbers", "a norm"


@dataclass(frozen=True)
class ScoreStep:
    """One operation on scores. The operand has the canonical dimensions of the scores at that time.

    Its last dimensions may be those of the keys, such as height and width.
    """

    kind: str  # mul, tanh, add, shift, fill, clamp, sink
    number: float = 1.0
    operand: torch.Tensor | None = None
    upper: float = float("inf")


@dataclass(frozen=True)
class ScoreFactors:
    """What queries and keys were multiplied by before their product; None if it is not one known number."""

    q: float | None = 1.0
    k: float | None = 1.0
    rows: torch.Tensor | None = None  # of each row of the queries, beside their factor: [..., rows, 1]

    @property
    def both(self) -> float | None:
        """The factor of the product; None if it is not one known number."""
        return None if self.q is None or self.k is None or self.rows is not None else self.q * self.k

    def of(self, pick: Callable[[torch.Tensor], torch.Tensor]) -> ScoreFactors:
        """Return the factors of the kept rows, [batch, heads, rows, 1], which `pick` takes from those of all."""
        return self if self.rows is None else replace(self, rows=pick(self.rows))

    def turned(self) -> ScoreFactors:
        """Return those of queries and keys that are exchanged: rows of keys have no factors of their own here."""
        return ScoreFactors(self.k, self.q if self.rows is None else None)


PLAIN = ScoreFactors()


@dataclass(frozen=True)
class Product:
    """A batched product of what may be queries and keys: [N, rows, d] and [N, keys, d]."""

    q: torch.Tensor
    k: torch.Tensor
    factors: ScoreFactors
    width: int | None
    d_k: int
    modules: tuple[torch.nn.Module, ...]  # that were running


@dataclass(frozen=True)
class Scores:
    """Scores on their way to softmax."""

    product: Product
    geometry: Geometry
    dtype: torch.dtype  # the narrowest format they were in
    steps: tuple[ScoreStep, ...] = ()
    sinks: int = 0  # columns of no key at the end
    lost: str = ""  # the operation that is not understood
    part_of: Scores | None = None  # these are the result of the steps on a part of those, which it may replace

    @property
    def multiple(self) -> float | None:
        """What the product is multiplied by; None if anything else was done to it."""
        plain = not self.lost and all((step.kind, step.operand) == ("mul", None) for step in self.steps)
        return prod(step.number for step in self.steps) if plain else None

    @property
    def factor(self) -> float | None:
        """The factor multiplied onto the product, where it is used as vectors; None if it is not one known number."""
        if self.lost in (EIGHT_BITS, NORM):  # as of a linear layer
            return 1.0
        factor = None if self.lost or self.product.factors.both is None else 1.0
        for step in self.steps:
            if factor is None or (step.kind, step.operand) == ("mul", None):
                factor = None if factor is None else factor * step.number
            elif step.kind != "add" or factor != 1:
                factor = None
        return factor

    def then(self, step: ScoreStep) -> Scores:
        """Return the scores after one more step."""
        return replace(self, steps=(*self.steps, step))

    def turned(self) -> Scores:
        """Return the scores with queries and keys exchanged: softmax runs over the product's rows."""
        product = replace(self.product, q=self.product.k, k=self.product.q, factors=self.product.factors.turned())
        keys = self.geometry.keys
        steps = (
            step if step.operand is None else replace(step, operand=_one_key_axis(step.operand, keys).mT)
            for step in self.steps
        )
        return replace(self, product=product, steps=tuple(steps))


def _one_key_axis(operand: torch.Tensor, keys: int) -> torch.Tensor:
    """Return an operand whose last dimensions may be those of the keys with these as one."""
    first = next(axis for axis in range(operand.dim() - 1, -1, -1) if prod(operand.shape[axis:]) in (keys, 1))
    return operand.flatten(first)
