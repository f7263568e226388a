"""Where a call of a JAX program stands: its name, the loops around it, and the function that is traced.

JAX runs Python only while it traces. What it does with the trace is read from the frames that are on the stack: how
long the scan is whose body this is, how many elements are mapped, and whether the same trace may be called again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from inspect import currentframe
from types import CodeType, FrameType
from typing import Any
from weakref import ref

_LOOPS = "jax._src.lax.control_flow.loops"


@dataclass(frozen=True, eq=False)
class Place:
    """Where a call stands.

    name:        of the name stack, such as "Model.blocks.attn"; empty without one
    code:        the positions in functions, from the call up to the one that jax.jit traces
    trace:       the trace of that one, which ends; None if there is none, or if it cannot be told
    iterations:  of the scans around it, multiplied; None in a while loop
    mapped:      the elements that jax.vmap maps around it
    shared:      what may call its trace several times: "jax.jit" inside a compiled function, or "jax.checkpoint"
    recomputed:  whether jax.checkpoint runs it again for gradients
    exported:    whether jax.export traces it
    caller:      the function that calls, such as "model.attend"
    """

    name: str
    code: tuple[tuple[CodeType, int], ...] = ()
    trace: ref[Any] | None = None
    iterations: int | None = 1
    mapped: int = 1
    shared: str = ""
    recomputed: bool = False
    exported: bool = False
    caller: str = ""


def place() -> Place:
    """Return where this function is called."""
    frame = currentframe()
    code: list[tuple[CodeType, int]] = []
    outside: list[tuple[CodeType, int]] = []
    trace: Any = None
    caller = ""
    iterations: int | None = 1
    mapped, compiled = 1, 0
    exported = checkpoint = differentiated = False
    while frame is not None:
        module, function = frame.f_globals.get("__name__", ""), frame.f_code.co_name
        if module.partition(".")[0] != "jax":
            if not caller and not module.startswith(("attn_tui.", "keras.src.")):
                caller = f"{module}.{frame.f_code.co_qualname}"
            outside.append((frame.f_code, frame.f_lasti))
        elif module == _LOOPS and function in ("scan", "while_loop"):
            length = _local(frame, "length")  # which a while loop does not have
            iterations = None if iterations is None or not isinstance(length, int) else iterations * length
        elif function == "vmap_f":
            size = _local(frame, "axis_size_")
            mapped *= size if isinstance(size, int) else 1
        elif function.startswith("trace_to_jaxpr"):
            trace, code = _local(frame, "trace") or trace, [*outside]
        elif module == "jax._src.pjit" and function in ("cache_miss", "_python_pjit_helper"):
            compiled += 1
        checkpoint |= function == "fun_remat"
        differentiated |= module == "jax._src.api" and function in ("vjp", "linearize", "value_and_grad_f")
        exported |= module.startswith("jax._src.export")
        frame = frame.f_back
    known = None
    with suppress(TypeError):  # if it has no weak references
        known = ref(trace) if trace is not None and compiled else None
    shared = "jax.jit" if compiled > 1 else "jax.checkpoint" if checkpoint and iterations == 1 else ""
    again = checkpoint and differentiated
    return Place(_name(), tuple(code), known, iterations, mapped, shared, again, exported, caller)


def _local(frame: FrameType, name: str) -> Any:
    """Return a variable of a function that runs; None without it."""
    local = frame.f_locals
    value = local.get(name)
    if type(local) is dict:  # before Python 3.13, a copy that lasts as long as the frame: JAX would find its tracers
        local.clear()
    return value


def _name() -> str:
    """Return the scopes of the name stack, joined by dots: without the transformations of JAX."""
    try:
        scopes = import_module("jax.extend.source_info_util").current_name_stack().stack
        names = [scope.name for scope in scopes if type(scope).__name__ == "Scope"]
    except Exception:  # what is private to JAX may raise anything, and no name is worth the program
        return ""
    return ".".join(names).replace("/", ".")
