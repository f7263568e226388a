"""What has to be off while a pass is recorded: compiled graphs, and kernels that fuse whole layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.modules import module as modules

from .imports import ImportWatcher
from .layers.kinds import parameters_of

_OFF = 0  # False, and not what a program sets
_HAS_HOOKS = "_has_any_global_hook"  # a function of PyTorch's
RECOMPUTED = "recomputed during a backward pass"
TRACED = "traced by torch.jit.trace"
_TRACERS = ("FakeTensorMode", "ProxyTorchDispatchMode", "FunctionalTensorMode")


class Switches:
    """Switches of PyTorch, and what they were.

    PyTorch fails if a mode that was on when inference_mode or a compiled function began is off at its end:
    there, `pause` takes it off for a moment, and `enter` for longer.
    """

    def __init__(self, enter: Callable[[], object], pause: Callable[[], AbstractContextManager[None]]) -> None:
        self._enter, self._pause = enter, pause
        self._guards: dict[str, Callable[..., Any]] = {}  # methods of inference_mode
        self._eager = False
        self._holds_stance = False
        self._fast: bool | None = None
        self._waiting = ImportWatcher("torch._dynamo", self._hold_stance)

    def force_eager(self) -> None:
        """Let compiled functions run as they were written. Without torch.compile there are none."""
        self._eager = True
        for name in () if self._guards else ("__enter__", "__exit__"):
            self._guards[name] = guard = getattr(torch.inference_mode, name)
            setattr(torch.inference_mode, name, self._paused(guard))
        self.hide_hooks()
        if "torch._dynamo" in sys.modules:
            self._hold_stance()
        else:
            self._waiting.start()

    def hide_hooks(self) -> None:
        """Hide the recorder's hooks from compiled modules, which warn of global hooks at each call."""
        original = getattr(modules, _HAS_HOOKS, None)
        if original is not None and not hasattr(original, "original"):

            def has_hooks() -> bool:
                return len(_global_hooks()) > len(_global_hooks(of_recorders=True))

            has_hooks.original = original  # pyright: ignore[reportFunctionMemberAccess]
            setattr(modules, _HAS_HOOKS, has_hooks)

    def _hold_stance(self) -> None:
        decorators = sys.modules.get("torch._dynamo.decorators")
        if self._eager and not self._holds_stance and hasattr(decorators, "_set_stance"):  # since PyTorch 2.6
            self._holds_stance = True
            _hold_stance(decorators).enter.append(self._enter)

    def _paused(self, guard: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(guard)
        def call(*args: Any) -> Any:
            with self._pause():
                return guard(*args)

        return call

    def restore(self) -> None:
        """Let compiled functions run as the program wants."""
        self._eager = False
        for name, guard in self._guards.items():
            setattr(torch.inference_mode, name, guard)
        self._guards.clear()
        self._waiting.stop()
        _show_hooks()
        if self._holds_stance:
            self._holds_stance = False
            _release_stance(sys.modules["torch._dynamo.decorators"], self._enter)
            _excuse_eager_call()

    def slow_paths(self) -> None:
        """Let nn.MultiheadAttention use operations that can be seen."""
        mha = getattr(torch.backends, "mha", None)
        if mha is not None:
            self._fast = mha.get_fastpath_enabled()
            mha.set_fastpath_enabled(_OFF)

    def fast_paths(self) -> None:
        """Let nn.MultiheadAttention use what it used before."""
        fast, self._fast = self._fast, None
        if fast is not None and torch.backends.mha.get_fastpath_enabled() is _OFF:  # else the program has set it
            torch.backends.mha.set_fastpath_enabled(fast)


# In a module of PyTorch, for all recorders of the process, of which there may be two copies.
_HELD = "_attn_tui_stance"
_ENTRY = "_is_skip_guard_eval_unsafe_stance"  # called at the beginning of compiled functions, of `eval_frame`


def _hold_stance(decorators: Any) -> Any:
    """Set the stance of the compiler to eager; one that the program sets meanwhile has to wait."""
    held = getattr(decorators, _HELD, None)
    if held is None:
        set_stance = decorators._set_stance
        held = SimpleNamespace(set=set_stance, stance=set_stance(decorators.DynamoStance("force_eager")), recorders=0)
        eval_frame = sys.modules["torch._dynamo.eval_frame"]
        held.enter, held.entry = list[Callable[[], object]](), getattr(eval_frame, _ENTRY, None)

        def enter() -> Any:
            for call in held.enter:
                call()
            return held.entry()

        if held.entry is not None:
            setattr(eval_frame, _ENTRY, enter)

        def hold(stance: Any) -> Any:
            before, held.stance = held.stance, stance
            return before

        decorators._set_stance = hold
        setattr(decorators, _HELD, held)
    held.recorders += 1
    return held


def _release_stance(decorators: Any, enter: Callable[[], object]) -> None:
    """Set the stance that the program wants, if no other recorder holds it."""
    held = getattr(decorators, _HELD)
    held.recorders -= 1
    held.enter.remove(enter)
    if not held.recorders:
        delattr(decorators, _HELD)
        decorators._set_stance = held.set
        if held.entry is not None:
            setattr(sys.modules["torch._dynamo.eval_frame"], _ENTRY, held.entry)
        held.set(held.stance)


def _show_hooks() -> None:
    """Let compiled modules see all hooks again, if none is of a recorder."""
    original = getattr(getattr(modules, _HAS_HOOKS, None), "original", None)
    if original is not None and not _global_hooks(of_recorders=True):
        setattr(modules, _HAS_HOOKS, original)


def _global_hooks(of_recorders: bool = False) -> list[Any]:
    names = ("backward_pre", "backward", "forward_pre", "forward")
    hooks: list[Any] = [hook for name in names for hook in getattr(modules, f"_global_{name}_hooks").values()]
    return [hook for hook in hooks if not of_recorders or _is_of_recorder(hook)]


def _is_of_recorder(hook: Any) -> bool:
    return type(getattr(hook, "__self__", None)).__qualname__ == "Recorder"


def _excuse_eager_call() -> None:
    """Keep a compiled function that is running eagerly from failing at its end.

    With fullgraph=True, PyTorch raises an error if nothing was compiled during a call and the stance is the default,
    as it is again now. For the call that is running, this count is given up.
    """
    count: Any = getattr(sys.modules.get("torch._dynamo.eval_frame"), "set_fullgraph_compiled_frame_count", None)
    if count is not None:
        count(-1)


def why_not(module: torch.nn.Module | None = None) -> str | None:
    """Return why the pass of a module that begins, or a call outside modules, cannot be recorded; None if it can."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

    if torch._C._current_graph_task_id() != -1:
        return RECOMPUTED
    if torch._C._get_tracing_state() is not None:
        return TRACED
    if any(type(mode).__name__ in _TRACERS for mode in _get_current_dispatch_mode_stack()):
        return "traced or exported"
    if module is not None and any(map(torch.nn.parameter.is_lazy, parameters_of(module))):
        return "with parameters that are not initialised yet"
    if torch._C._functorch.maybe_current_level() is not None:
        return "inside torch.func"
    if torch.cuda.is_available() and torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing():
        return "captured in a CUDA graph"
    return None


def after_optimizer_steps(call: Callable[..., None]) -> Any:
    """Call a function after each step of any optimizer; return the hook, which can be removed."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    return register_optimizer_step_post_hook(call)
