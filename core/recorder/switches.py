"""What has to be off while a pass is recorded: compiled graphs, and kernels that fuse whole layers."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch

from .imports import Waiting

_HOOKS_WARNING = r"Using `torch\.compile\(module\)` when there are global hooks on modules"
_TRACERS = ("FakeTensorMode", "ProxyTorchDispatchMode", "FunctionalTensorMode")


class Switches:
    """Switches of PyTorch, and what they were."""

    def __init__(self) -> None:
        self._stance: Any = None
        self._eager = False
        self._quiet: tuple[Any, ...] | None = None  # the filter of warnings
        self._fast: bool | None = None
        self._waiting = Waiting("torch._dynamo", self._set_stance)

    def force_eager(self) -> None:
        """Let compiled functions run as they were written. Without torch.compile there are none."""
        self._eager = True
        self._silence()
        if "torch._dynamo" in sys.modules:
            self._set_stance()
        else:
            self._waiting.start()

    def _set_stance(self) -> None:
        set_stance = getattr(torch.compiler, "set_stance", None)  # since PyTorch 2.6
        if self._eager and self._stance is None and set_stance is not None:
            self._stance = set_stance("force_eager")

    def _silence(self) -> None:
        """Ignore the warning of compiled models that there are global hooks: they are the recorder's."""
        if self._quiet is None:
            warnings.filterwarnings("ignore", _HOOKS_WARNING, UserWarning)
            self._quiet = warnings.filters[0]

    def restore(self) -> None:
        """Let compiled functions run compiled."""
        self._eager = False
        self._waiting.stop()
        if self._quiet is not None:
            with contextlib.suppress(ValueError):  # the program removed it
                cast("list[object]", warnings.filters).remove(self._quiet)
            self._quiet = None
        if self._stance is not None:
            stance, self._stance = self._stance, None
            stance.__exit__(None, None, None)
            _excuse_eager_call()

    def slow_paths(self) -> None:
        """Let nn.MultiheadAttention use operations that can be seen."""
        mha = getattr(torch.backends, "mha", None)
        if mha is not None:
            self._fast = mha.get_fastpath_enabled()
            mha.set_fastpath_enabled(False)

    def fast_paths(self) -> None:
        """Let nn.MultiheadAttention use what it used before."""
        if self._fast is not None:
            torch.backends.mha.set_fastpath_enabled(self._fast)
            self._fast = None


def _excuse_eager_call() -> None:
    """Keep a compiled function that is running eagerly from failing at its end.

    With fullgraph=True, PyTorch raises an error if nothing was compiled during a call and the stance is the default,
    as it is again now. For the call that is running, this count is given up.
    """
    count: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "set_fullgraph_compiled_frame_count", None)
    if count is not None:
        count(-1)


def why_not() -> str | None:
    """Return why the pass that begins cannot be recorded; None if it can."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    if torch._C._current_graph_task_id() != -1:
        return "recomputed during a backward pass"
    if torch._C._get_tracing_state() is not None:
        return "traced by torch.jit.trace"
    if any(type(mode).__name__ in _TRACERS for mode in _get_current_dispatch_mode_stack()):
        return "traced or exported"
    if torch._C._functorch.maybe_current_level() is not None:
        return "inside torch.func"
    if torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return "captured in a CUDA graph"
    return None


def after_optimizer_steps(call: Callable[..., None]) -> Any:
    """Call a function after each step of any optimizer; return the hook, which can be removed."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    return register_optimizer_step_post_hook(call)
