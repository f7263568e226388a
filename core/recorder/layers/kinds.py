"""Kinds of tensors: plain ones, and symbolic ones, which have a shape and no numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

import torch


@cache
def is_plain(kind: type) -> bool:
    """Return whether PyTorch itself computes with tensors of a class, which defines no dispatch."""
    return getattr(kind, "__torch_dispatch__", None) == torch._C._disabled_torch_dispatch_impl


@cache
def is_symbolic_kind(kind: type) -> bool:
    """Return whether tensors of a class stand for others, as PyTorch's compiler and exporter make them."""
    return any(base.__name__ in ("FakeTensor", "FunctionalTensor") for base in kind.__mro__)


def is_symbolic(value: object) -> bool:
    """Return whether a value, or the first of several, is a fake, functional, meta or Keras tensor."""
    several = cast("Sequence[object]", value) if isinstance(value, (tuple, list)) else (value,)
    first = next(iter(several), None)
    if isinstance(first, torch.Tensor):
        return first.is_meta or is_symbolic_kind(type(first))
    return type(first).__name__ == "KerasTensor"


def is_nested(value: object) -> bool:
    """Return whether a value is a tensor of texts of different lengths, which has no shape and kernels of its own."""
    return isinstance(value, torch.Tensor) and value.is_nested


def is_sparse(value: object) -> bool:
    """Return whether a value is a tensor without strides."""
    return isinstance(value, torch.Tensor) and value.layout != torch.strided


def parameters_of(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield a module's parameters without its own method, which may create them, as that of Keras."""
    for each in torch.nn.Module.modules(module):
        yield from (parameter for parameter in each._parameters.values() if parameter is not None)
