"""Record what a block of a JAX program computes, also in functions that are compiled in it."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any
from warnings import warn
from weakref import ref

import numpy as np

from ...errors import needed
from ...files import check_replaceable
from .call import Call, save
from .jax_functions import ARRAYS, Function, Given, attention_call, functions
from .jax_place import Place, place

# Of a function that is traced once: what would record all its calls.
_SHARED = {
    "jax.jit": "of a compiled function inside another: with jax.disable_jit() in the block, each is recorded",
    "jax.checkpoint": "of a function under jax.checkpoint, in later steps or other layers: layers that have one "
    "each, as in jax.checkpoint(lambda x: layer(x)), are recorded",
}


@dataclass(eq=False)
class _Layer:
    """A place in the program: what was computed there when it first ran, once for each iteration of its loops."""

    number: int
    name: str
    ran: _Trace | None = None  # first
    given: list[Given] = field(default_factory=list[Given])


@dataclass(eq=False)
class _Trace:
    """A call while a function is traced, or one outside of such functions."""

    layer: _Layer
    place: Place
    runs: int = 0


class JaxRecording:
    """What a block computes. After it, `summary` says what was recorded and what was missed, in a few lines.

    Outside of compiled functions, each call is a layer. In one, a call is a layer however often the function is
    called or traced again, and each iteration of the scans around it is one. There are `max_calls` layers at most.
    """

    def __init__(self, library: Any, max_calls: int) -> None:
        self.summary = "the block has not ended"
        self.complete = False
        self._library = library
        self._max_calls = max_calls
        self._layers: dict[object, _Layer] = {}
        self._named: dict[str, list[object]] = {}  # of traced functions
        self._traced: tuple[ref[Any], Counter[object]] | None = (
            None  # the last trace; how often each place came in it
        )
        self._stored = 0
        self._open: list[Given] = []  # what is known of the calls that are being computed
        self._missed: Counter[str] = Counter()
        self._softmax: Counter[tuple[str, bool]] = Counter()  # by name, and by whether it has axes of attention
        self._again = 0
        self._others_mapped = 0
        self._compiled = self._ended = False
        self._restore: list[Callable[[], None]] = []

    def start(self) -> None:
        """Replace the functions that compute attention, and have compiled functions traced again."""
        for function in functions(self._library):
            self._replace(function.holder, function.attribute, self._recorded(function))
        if hasattr(self._library.nn, "softmax"):
            self._replace(self._library.nn, "softmax", self._seen(self._library.nn.softmax))
        with suppress(Exception):
            self._library.clear_caches()

    def end(self) -> list[Call]:
        """Restore the functions, and return what was recorded."""
        for patch in self._restore:
            patch()
        with suppress(Exception):  # of the program's own callbacks, which it hears of where it waits for them
            self._library.effects_barrier()
        self._ended = True
        with suppress(Exception):
            if self._compiled:
                self._library.clear_caches()  # what was compiled in the block would call back for ever
        named = [(layer.name or f"call {layer.number}", layer.given) for layer in self._layers.values()]
        counts = Counter[str]()
        for name, given in named:
            counts[name] += len(given)
        calls, times = list[Call](), Counter[str]()
        for name, given in named:
            while given:  # which lets go of the arrays
                numbered = name if counts[name] == 1 else f"{name}[{times[name]}]"
                times[name] += 1
                one = given.pop(0)
                function = one.pop("function")
                try:
                    calls.append(attention_call(numbered, one))
                except Exception as error:
                    self._miss(function, _reason(error))
        return calls

    def conclude(self, path: Path, calls: int) -> list[str]:
        """Set the summary of a file with this number of calls; return the lines that a warning should have."""
        lines = [f"not recorded: {_times(times, 'call')} {why}" for why, times in self._missed.items()]
        doubtful = {
            name: times for (name, likely), times in self._softmax.items() if likely or not calls + len(lines)
        }
        lines += [
            f"not recorded: {_times(times, 'call')} of jax.nn.softmax in {name}: if this is attention, call "
            "jax.nn.dot_product_attention there, or save its arrays with attn_tui.save"
            for name, times in doubtful.items()
        ]
        self.complete = bool(calls) and not lines
        if calls:
            seen = calls + self._missed.total()
            size = path.stat().st_size / 1e6
            first = f"{path}: {_times(seen, 'attention call')} seen, {calls} recorded, {size:.3g} MB"
        else:
            first = "nothing recorded" if lines else "no call of jax.nn.dot_product_attention was seen"
        notes = list[str]()
        if self._again:
            notes.append(f"not stored: {_times(self._again, 'call')} at the same places: later steps, recomputation")
        if self._others_mapped:
            notes.append("inside jax.vmap, one element of each call is recorded")
        self.summary = "\n".join([first, *lines, *notes])
        return lines if calls or lines else [first]

    def _replace(self, holder: Any, attribute: str, function: Callable[..., Any]) -> None:
        """Replace a function, also in modules that imported it by its name, but JAX's own."""
        original = getattr(holder, attribute)
        holders = [(holder, attribute)]
        for name, module in [*sys.modules.items()]:
            if name.partition(".")[0] != "jax":
                held = [*getattr(module, "__dict__", {}).items()]
                holders += [(module, key) for key, each in held if each is original]
        for holder, attribute in holders:
            with suppress(Exception):  # a module may refuse
                setattr(holder, attribute, function)
                self._restore.append(partial(setattr, holder, attribute, original))

    def _recorded(self, function: Function) -> Callable[..., Any]:
        """Return a function that records its calls; one that calls another such function is recorded as that one."""
        original = function.original
        parameters = signature(original)

        @wraps(original)
        def wrapped(*positional: Any, **named: Any) -> Any:
            if self._ended:
                return original(*positional, **named)
            self._open.append({})
            try:
                out = original(*positional, **named)
            finally:
                known = self._open.pop()
            if "inside" not in known:
                try:
                    given = function.given(parameters.bind(*positional, **named).arguments, out)
                    self._see({**given, **known}, function.name)
                except Exception as error:
                    self._miss(function.name, _reason(error))
            for outer in self._open:
                outer["inside"] = True
            return out

        return wrapped

    def _seen(self, softmax: Callable[..., Any]) -> Callable[..., Any]:
        """Return softmax that says what entered it to the call that it belongs to, or is counted."""
        parameters = signature(softmax)

        @wraps(softmax)
        def wrapped(*positional: Any, **named: Any) -> Any:
            out = softmax(*positional, **named)
            if not self._ended:
                with suppress(Exception):
                    given = parameters.bind(*positional, **named).arguments
                    last = given.get("axis", -1) in (-1, out.ndim - 1)
                    if self._open and last:
                        self._open[-1].setdefault("logits", given["x"])
                    elif not self._open and out.ndim > 1:
                        at = place()
                        self._softmax[at.name or at.caller, out.ndim > 3 or at.mapped > 1] += 1
            return out

        return wrapped

    def _see(self, given: Given, function: str) -> None:
        """Record a call now, or whenever the function runs that is traced."""
        library, at = self._library, place()
        arrays = {name: library.numpy.asarray(given[name]) for name in ARRAYS if given.get(name) is not None}
        others = {"function": function, **{name: argument for name, argument in given.items() if name not in ARRAYS}}
        if hasattr(others.get("scale"), "dtype"):
            arrays["scale"] = others.pop("scale")
        if not any(isinstance(array, library.core.Tracer) for array in arrays.values()):
            self._take(
                _Trace(self._layer(Place(at.name)), Place(at.name)),
                others,
                {name: np.array(array) for name, array in arrays.items()},
            )
            return
        library.local_devices(backend="cpu")  # which callbacks need: they would raise into the program
        if at.exported:
            raise ValueError("it is exported")  # which callbacks cannot be
        # NumPy reads the arrays at the end: here it would wait for them, and they for the computation that calls.
        library.debug.callback(partial(self._take, _Trace(self._layer(at), at), others), arrays)
        self._compiled = True

    def _layer(self, at: Place) -> _Layer:
        """Return the layer of a place: that of an earlier trace, if its modules or traced function are the same."""
        key: object = object()
        if at.trace is not None:
            if self._traced is None or self._traced[0]() is not at.trace():
                self._traced = (at.trace, Counter())
            scope = at.name or at.code
            self._traced[1][scope] += 1
            times = self._traced[1][scope]
            key = (at.name, at.code, times)
            known = self._named.setdefault(at.name, [])
            if at.name and times == 1 and len(known) == 1:  # another function calls what has this name
                return self._layers[known[0]]
            if key not in self._layers:
                known.append(key)
        return self._layers.setdefault(key, _Layer(len(self._layers), at.name))

    def _take(self, trace: _Trace, others: Given, arrays: Mapping[str, Any]) -> None:
        """Store what a call was given, if it is the first at its place."""
        layer, at = trace.layer, trace.place
        if self._ended:
            return
        layer.ran = layer.ran or trace
        iteration, element = divmod(trace.runs, at.mapped)
        trace.runs += 1
        if layer.ran is not trace or (at.iterations is not None and iteration >= at.iterations):
            times, again = divmod(iteration // (at.iterations or 1), 1 + at.recomputed)
            if at.shared and layer.ran is trace and times and not again:
                self._missed[_SHARED[at.shared]] += 1
            else:
                self._again += 1
        elif element:
            self._others_mapped += 1
        elif at.iterations is None and iteration:
            self._miss(others["function"], "in a while loop, after its first iteration")
        elif self._stored >= self._max_calls:
            self._miss(others["function"], f"there are more than {self._max_calls}; max_calls=… keeps more")
        else:
            self._stored += 1
            layer.given.append({**others, **arrays})

    def _miss(self, function: str, why: str) -> None:
        self._missed[f"of {function}: {why}"] += 1


@contextmanager
def record_jax(
    path: str | os.PathLike[str],
    *,
    config: Mapping[str, Any] | None = None,
    max_calls: int = 128,
    overwrite: bool = False,
) -> Generator[JaxRecording]:
    """Record the attention of a block of a JAX program, also in compiled functions: a layer for each call.

    Calls of jax.nn.dot_product_attention are seen, and attention of Flax and Keras that does not call it; functions
    that the program holds under a name of its own are not. A call in a compiled function is a layer, however often
    the function is called or traced, and so is each iteration of a scan; otherwise every call is one, up to
    `max_calls`.
    Nothing that goes wrong reaches the program: at the end, a warning says which calls are not recorded, and why, and
    `summary` of the recording what was. If the file cannot be written, that is raised as by `save`, or is a warning
    if the block ends by an exception. Raise InputError at once for a file that is not a recording, unless
    `overwrite`.
    """
    needed("jax", "attn_tui.record_jax needs JAX: pip install jax")
    if not overwrite:
        check_replaceable(Path(path), recording=True, remedy="overwrite=True")
    recording = JaxRecording(import_module("jax"), max_calls)

    def finish() -> None:
        calls = recording.end()
        if calls:
            save(path, calls, config=config, overwrite=overwrite)
        for line in recording.conclude(Path(path), len(calls)):
            warn(f"attn-tui: {line}", stacklevel=4)

    recording.start()
    try:
        yield recording
    except BaseException:
        with suppress(Warning):  # which may be an error, and must not hide that of the program
            try:
                finish()
            except Exception as error:
                warn(f"attn-tui: {_reason(error)}", stacklevel=3)
        raise
    finish()


def _reason(error: Exception) -> str:
    """Return the first line of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _times(number: int, one: str) -> str:
    """Return a number and its noun."""
    return f"{number:,} {one}{'s' * (number != 1)}"
