"""The dispatch mode: sees every operation below autograd, passes it on, and tells the tracer."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)

from ..layers.kinds import is_nested, is_plain, is_sparse, is_symbolic, is_symbolic_kind
from ..switches import RECOMPUTED, why_not
from .flex import is_flex, run_in_blocks
from .tracer import Tracer

_PATIENCE = 5_000  # operations without attention between passes, after which no more are followed
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


def unseen(call: Callable[[], object]) -> None:
    """Call a function, hidden from gradients and from the program's modes, such as counters of operations.

    A signal handler of the program may raise an error between any two calls of Python code. PyTorch must be as it was
    then, too: only what is written in C enters and leaves here.
    """
    grad = torch.is_grad_enabled()
    with torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction():
        try:
            torch._C._set_grad_enabled(False)
            call()
        finally:
            torch._C._set_grad_enabled(grad)


class RecordingMode(TorchDispatchMode):
    """Runs operations as they are. An error of the tracer is reported and never reaches the program."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: else PyTorch loads its compiler to define this class, in the program's first pass.

        That takes as long as the import of PyTorch, and needs room on the disk. While this mode is on, functions that
        are compiled run eagerly, and exporters take it off, so that nothing compiles the method below.
        """
        return False

    def __init__(self, tracer: Tracer, failed: Callable[[Exception], None]) -> None:
        super().__init__()
        self._tracer = tracer
        self._failed = failed
        self.operations = 0
        self.skips_rest = False  # whether the rest of the pass is not recorded
        self.between = False  # whether this waits for attention between passes
        self.backward = False  # whether a backward pass began meanwhile
        self._most = sys.maxsize  # operations, after which waiting ends
        self._thread = threading.get_ident()

    def wait(self, whole: bool) -> None:
        """Follow what the program does between passes, for a while unless the `whole` of it is recorded."""
        self.between, self.backward = True, False
        self._most = sys.maxsize if whole else self.operations + _PATIENCE

    def follows(self) -> bool:
        """Return whether all that this thread does was followed: another one did nothing, and waiting did not end."""
        return not self.skips_rest and self._thread == threading.get_ident()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if any(map(is_nested, args)):
            return func(*args, **kwargs)
        if not all(map(is_plain, types)):
            # What a subclass consists of comes here, unless it is symbolic, or a tracer of PyTorch waits below.
            own = torch._C._len_torch_dispatch_stack() == 0 and not any(map(is_symbolic_kind, types))
            return NotImplemented if own and isinstance(func, torch._ops.OpOverload) else func(*args, **kwargs)
        if _is_composite(func):  # without autograd, as in inference mode, no one has taken it apart
            with self:
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        out = self._flex(func, args, kwargs) if is_flex(func) else func(*args, **kwargs)
        if self.skips_rest or is_symbolic(out):
            return out
        if self.between and (reason := why_not()) is not None:
            self.backward |= reason == RECOMPUTED
            return out
        if self.between and self.operations > self._most:
            self.skips_rest = True
            return out
        self.operations += 1
        try:
            unseen(partial(self._tracer.saw, func, args, kwargs, out))
        except Exception as error:
            if not any(map(is_sparse, (*args, out))):  # which is no attention that could be missed
                self._failed(error)
        return out

    def _flex(self, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return run_in_blocks(func, args, kwargs)
        except Exception as error:  # the program's, too: it is raised again
            self._failed(error)
            return func(*args, **kwargs)


def put(mode: RecordingMode) -> None:
    """Put a mode below those of the program, which may leave theirs in any order: PyTorch takes off the last one."""
    above = [each for each in _get_current_dispatch_mode_stack() if getattr(each, "_mode_key", None) is None]
    for _ in above:
        _pop_mode()
    for each in (mode, *above):
        _push_mode(each)


def take(mode: RecordingMode) -> bool:
    """Take a mode off the stack, wherever it is; return whether it was there."""
    if mode not in _get_current_dispatch_mode_stack():
        return False
    above: list[Any] = []
    while (top := _pop_mode()) is not mode:
        above.append(top)
    for each in reversed(above):
        _push_mode(each)
    return True


@cache
def _is_composite(func: Any) -> bool:
    """Return whether an operation only calls others."""
    return isinstance(func, torch._ops.OpOverload) and torch._C._dispatch_has_kernel_for_dispatch_key(
        func.name(), "CompositeImplicitAutograd"
    )
