"""The dispatch mode: sees every operation below autograd, passes it on, and tells the tracer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .flex import is_flex, run_in_blocks
from .tracer import Tracer

_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


class RecordingMode(TorchDispatchMode):
    """Runs operations as they are. An error of the tracer is reported and never reaches the program."""

    supports_higher_order_operators = True

    def __init__(self, tracer: Tracer, failed: Callable[[Exception], None]) -> None:
        super().__init__()
        self._tracer = tracer
        self._failed = failed
        self.operations = 0
        self.deaf = False  # whether the rest of the pass is not recorded

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(kind not in _PLAIN for kind in types):
            return NotImplemented if isinstance(func, torch._ops.OpOverload) else func(*args, **kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            with self:  # what it consists of comes here, too
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        out = run_in_blocks(func, args, kwargs) if is_flex(func) else func(*args, **kwargs)
        if self.deaf:
            return out
        self.operations += 1
        try:
            with torch.no_grad():
                self._tracer.saw(func, args, kwargs, out)
        except Exception as error:
            self._failed(error)
        return out


_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) if hasattr(torch.nn, "Buffer") else (
    torch.Tensor, torch.nn.Parameter)  # fmt: skip


@cache
def _is_composite(func: Any) -> bool:
    """Return whether an operation only calls others."""
    return isinstance(func, torch._ops.OpOverload) and torch._C._dispatch_has_kernel_for_dispatch_key(
        func.name(), "CompositeImplicitAutograd"
    )
