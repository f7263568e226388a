"""Functions of PyTorch that read the code of modules, or trace it: strict export, torch.jit.trace and the like.

They fail on modules with hooks that they cannot read, and "force_eager" would keep them from compiling. So the
recorder takes both back while one of them runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial, wraps
from types import FunctionType
from typing import Any

from .imports import ImportWatcher

# Modules and functions, some private: those that a release of PyTorch lacks are left out.
_FUNCTIONS = {
    "torch.export._trace": ("_export_to_torch_ir",),
    "torch._dynamo.aot_compile": ("aot_compile_fullgraph",),
    "torch._dynamo.functional_export": ("_dynamo_graph_capture_for_export", "dynamo_graph_capture_for_export"),
    "torch._dynamo.eval_frame": ("export", "explain"),
    "torch._dynamo": ("export", "explain"),  # the same functions under their public names
    "torch.jit._trace": ("trace", "trace_module"),  # which run a graph, in which some operations fail under any mode
    "torch.jit": ("trace", "trace_module"),
}


class Exporters:
    """Wraps these functions while the recorder waits for passes.

    `pause` takes its hooks out for a while; it is given what torch.jit.trace is given, else None.
    """

    def __init__(self, pause: Callable[[object], AbstractContextManager[None]]) -> None:
        self._pause = pause
        self._waiting = {name: ImportWatcher(name, partial(self._wrap, name)) for name in _FUNCTIONS}
        self._originals: dict[tuple[str, str], Any] = {}
        self._known: dict[Any, Any] = {}  # by the wrapped function

    def start(self) -> None:
        """Wrap the functions of modules that are loaded, and those of others once they are."""
        for name, waiting in self._waiting.items():
            if name in sys.modules:
                self._wrap(name)
            else:
                waiting.start()

    def stop(self) -> None:
        """Put the functions back."""
        for waiting in self._waiting.values():
            waiting.stop()
        for (module, name), original in self._originals.items():
            setattr(sys.modules[module], name, original)
        self._originals.clear()
        self._known.clear()

    def _wrap(self, module: str) -> None:
        for name in _FUNCTIONS[module]:
            function: Any = getattr(sys.modules[module], name, None)
            if function is not None and (module, name) not in self._originals:
                original = self._known.get(function, function)  # if it is wrapped under its other name
                self._originals[module, name] = original
                wrapped = function if original is not function else self._paused(function, ".jit" in module)
                self._known[wrapped] = original
                setattr(sys.modules[module], name, wrapped)

    def _paused(self, function: Callable[..., Any], traces: bool = False) -> Callable[..., Any]:
        """Wrap a function, and what it returns if that is a function, to run without hooks."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._pause(args[0] if traces and args else None):
                out = function(*args, **kwargs)
            return self._paused(out) if isinstance(out, FunctionType) else out

        return call
