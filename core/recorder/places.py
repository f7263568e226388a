"""Where the program is: the modules whose forward pass is running, their names and what they say of their heads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import currentframe, unwrap
from itertools import count
from types import CodeType
from typing import Any, NamedTuple, cast
from weakref import ref

import torch

from .files.document import Program
from .layers.kinds import is_nested, is_symbolic
from .layers.layer import Site
from .options import Options

_HEADS = ("num_heads", "num_attention_heads", "n_heads", "n_head", "nhead", "heads", "num_head", "nheads")
_LARGEST = 1 << 20  # characters of a configuration: it stands in the header of the file
_WIDTHS = ("hidden_size", "d_model", "n_embd", "dim", "embed_dim")


# Modules that should have attention inside; those that weigh channels or places, or have no softmax, should not.
_ATTENTION = re.compile(
    r"(?<!channel)(?<!spatial)(?<!linear)(?<!pixel)(?<!gated)(?<!fourier)(?:attention|attn|mha)(?:2d|layer|block)?$",
    re.IGNORECASE,
)


def _several(inputs: object) -> tuple[object, ...]:
    return cast("tuple[object, ...]", inputs) if isinstance(inputs, tuple) else ()


def _batch_of(inputs: object) -> int | None:
    """Return the size of the first dimension of the first tensor among a module's inputs."""
    for each in _several(inputs):
        if isinstance(each, torch.Tensor) and each.dim() > 1 and not is_nested(each):
            return each.shape[0]
    return None


def unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module inside the wrappers of torch.compile, DistributedDataParallel and the like."""
    for _ in range(8):
        inner = dict(module.named_children())
        only = inner.get("_orig_mod") or (inner.get("module") if len(inner) == 1 else None)
        if only is None:
            return module
        module = only
    return module


def _codes(kind: type) -> Iterator[CodeType]:
    """Yield the code of the methods of a class of modules."""
    for base in kind.__mro__[: kind.__mro__.index(torch.nn.Module)]:
        for held in vars(base).values():
            code = getattr(unwrap(getattr(held, "__func__", held)), "__code__", None) if callable(held) else None
            if isinstance(code, CodeType):
                yield code


@dataclass
class _Place:
    module: torch.nn.Module
    batch: int | None  # of its input
    real: bool  # whether it computes numbers that are recorded
    seen: bool = False  # whether attention was seen inside


class _ModulePlace(NamedTuple):
    module: ref[torch.nn.Module]
    name: str | None  # in its model; None: outside the given one
    model: int


class Places:
    """The modules around an operation, the outermost first, by their names in the given model.

    Without one, they have the names in the largest model that was called so far.
    """

    def __init__(self, unseen: Callable[[Site], None], model: torch.nn.Module | None = None) -> None:
        self.unseen = unseen  # called with a module that should have attention inside, in which none was seen
        self.stack: list[_Place] = []
        self.attended = False  # whether attention was seen in this pass
        self.other: torch.nn.Module | None = None  # outermost module outside the given model that is running
        self.given = model  # whose modules are recorded; None: all
        self._turns = count(1)
        self._known: dict[int, _ModulePlace] = {}
        self._parts: dict[int, tuple[str, str, int]] = {}  # smaller models: their class, name and larger model

    def clear(self) -> None:
        """Forget the modules of a pass."""
        self.stack.clear()

    def includes(self, module: torch.nn.Module) -> bool:
        """Return whether a module belongs to the given model, which may get more of them before they run."""
        if self.given is None:
            return True
        if (known := self._find(module)) is None:
            self._known |= {id(each): _ModulePlace(ref(each), None, 0) for each in module.modules()}
            self._learn(self.given)
            known = self._known[id(module)]
        return known.name is not None

    def enter(self, module: torch.nn.Module, inputs: object = (), real: bool = True) -> None:
        """Note that a module's forward pass begins, on these inputs; whether its numbers are recorded."""
        if not self.stack:
            self.attended, self.other = False, None
        if self._find(module) is None:  # also where the model got it after its first pass
            outermost = self.stack[0].module if self.stack else module
            self._learn(outermost if self.given is None else self.given)
            if self._find(module) is None:
                self._known[id(module)] = _ModulePlace(ref(module), None, id(outermost))
        real = real and all(place.real for place in self.stack[-1:]) and not any(map(is_symbolic, _several(inputs)))
        self.stack.append(_Place(module, _batch_of(inputs), real))

    def leave(self, module: torch.nn.Module, finished: bool = True) -> bool:
        """Note that a module ended, without an error if `finished`; return whether it was the outermost."""
        while self.stack:
            last = self.stack.pop()
            kind = type(last.module).__name__
            if not last.seen and finished and last.real and _ATTENTION.search(kind):
                self.unseen(Site(self._name(last.module) or kind))
                last.seen = self.attended = True
            if last.seen and self.stack:
                self.stack[-1].seen = True
            if last.module is module:
                break
        return not self.stack

    def modules(self) -> tuple[torch.nn.Module, ...]:
        """Return the modules whose forward pass is running, the outermost first."""
        return tuple(place.module for place in self.stack)

    def site(self, product: tuple[torch.nn.Module, ...] | None = None) -> Site | None:
        """Return where the program sees attention: the innermost module, around the product too if that is given.

        Outside modules, it is a method of the given model's modules that the program calls; None outside of these.
        """
        if self.stack and not self.stack[-1].real:
            return None
        around = self.modules()
        if product is not None:
            around = tuple(own for own, other in zip(around, product, strict=False) if own is other)
        if not around:
            name = "attention" if self.given is None else self._method(self.given)
            if name is None or not self.stack:
                return None if name is None else Site(name, turn=next(self._turns))
        else:
            name = next((found for found in map(self._name, reversed(around)) if found), "")
            self.attended = True
        self.stack[-1].seen = True
        batch = next((place.batch for place in self.stack if place.batch is not None), None)
        model = self._find(self.stack[0].module)
        counts = tuple(dict.fromkeys(self._head_counts()))
        own = 0 if model is None else model.model
        return Site(name or self._outermost(), counts, batch, own, next(self._turns))

    def renamed(self, sites: Iterable[Site]) -> list[Site]:
        """Return sites by their names in the largest models that were called since.

        Where modules of several models have one name, as of two towers, it begins with the class of its model.
        """
        found = [self._in_largest(site) for site in sites]
        models = {site.name: dict.fromkeys(each.model for each in found if each.name == site.name) for site in found}
        return [
            replace(site, name=f"{self._kind(site.model, models[site.name])}.{site.name}")
            if len(models[site.name]) > 1 and self._is_alive(site.model) else site
            for site in found
        ]  # fmt: skip

    def _in_largest(self, site: Site) -> Site:
        while site.model in self._parts:
            kind, part, model = self._parts[site.model]
            inner = "" if site.name == kind else site.name
            site = replace(site, name=".".join(filter(None, (part, inner))) or kind, model=model)
        return site

    def _is_alive(self, model: int) -> bool:
        return model in self._known and self._known[model].module() is not None

    def _kind(self, model: int, models: Iterable[int]) -> str:
        """Return the class of one of these models, with its number if several are of this class."""
        kinds = {model: type(self._known[model].module()).__name__ for model in models if self._is_alive(model)}
        alike = [each for each, kind in kinds.items() if kind == kinds[model]]
        return kinds[model] if len(alike) == 1 else f"{kinds[model]}[{alike.index(model)}]"

    def model(self, module: torch.nn.Module | None) -> torch.nn.Module | None:
        """Return the model that a module belongs to: the given one, or the largest that was called."""
        known = None if module is None else self._find(module)
        if self.given is not None or known is None:
            return self.given if self.given is not None else module
        return self._known[known.model].module()

    def around(self, module: torch.nn.Module | None) -> str:
        """Return what a method of the model calls, and which module the method is of; empty outside of methods."""
        model, name = self.model(module), "" if module is None else self._name(module)
        method = self._method(model) if model is not None and name else None
        return f"{name} was called again inside {method}" if method else ""

    def _find(self, module: torch.nn.Module) -> _ModulePlace | None:
        known = self._known.get(id(module))
        return known if known is not None and known.module() is module else None

    def _name(self, module: torch.nn.Module) -> str | None:
        known = self._find(module)
        return None if known is None else known.name

    def _learn(self, model: torch.nn.Module) -> None:
        """Name all modules of a model, also those of smaller models that were called before."""
        names = {id(module): (module, "") for module in model.modules()}
        names |= {id(module): (module, name) for name, module in unwrapped(model).named_modules()}
        known = {number: place for number, place in self._known.items() if place.module() is not None}
        for part in {place.model for place in known.values()} & names.keys():
            self._parts[part] = (type(unwrapped(names[part][0])).__name__, names[part][1], id(model))
        self._parts.pop(id(model), None)
        self._known = known | {
            number: _ModulePlace(ref(each), name, id(model)) for number, (each, name) in names.items()
        }

    def _outermost(self) -> str:
        return type(unwrapped(self.stack[0].module)).__name__

    def _method(self, model: torch.nn.Module) -> str | None:
        """Return the name of the module of which a method is running, or its class if there are several."""
        if self.other is not None:
            return None
        classes = {kind: name for name, module in unwrapped(model).named_modules() for kind in [type(module)]}
        running = {type(module) for module in self.modules()}
        codes = {code: kind for kind in classes if kind not in running for code in _codes(kind)}
        frame = currentframe()
        while frame is not None and frame.f_code not in codes:
            frame = frame.f_back
        if frame is None:
            return None
        kind = codes[frame.f_code]
        only = sum(type(module) is kind for module in model.modules()) == 1
        return (only and classes[kind]) or kind.__name__

    def _head_counts(self) -> Iterator[int]:
        for place in reversed(self.stack):
            for holder in (place.module, getattr(place.module, "config", None)):
                for name in _HEADS:
                    count = getattr(holder, name, None)
                    if type(count) is int and count > 0:
                        yield count


def program_of(module: torch.nn.Module | None, options: Options) -> Program:
    """Return what the outermost module says of the model."""
    tokens = {"tokens": options.tokens, "query_tokens": options.query_tokens}
    if module is None:
        return Program(tokens=tokens, version=options.version, expect=options.expect)
    model = unwrapped(module)
    config = _config(model)
    kind = type(model).__name__
    source = config.get("_name_or_path")
    width = next((config[name] for name in _WIDTHS if type(config.get(name)) is int), None)
    text, remark = _as_json(config)
    name = f"{source} ({kind})" if source else kind
    return Program(name, text, width, tokens, options.version, remark, options.expect)


def _as_json(config: dict[str, Any]) -> tuple[str | None, str]:
    """Return a configuration as JSON, None without one; and why it cannot be recorded."""
    if not config:
        return None, ""
    pieces, size = list[str](), 0
    try:
        for piece in json.JSONEncoder(default=str).iterencode(config):
            pieces.append(piece)
            size += len(piece)
            if size > _LARGEST:
                return None, f"configuration not recorded: it has more than {_LARGEST:,} characters"
    except (ValueError, TypeError, RecursionError) as error:  # it contains itself, or a key is no text
        return None, f"configuration not recorded: {error}"
    return "".join(pieces), ""


def _config(model: torch.nn.Module) -> dict[str, Any]:
    """Return the model's config as plain values; empty if there is none."""
    config: Any = getattr(model, "config", None)
    to_dict: Any = getattr(config, "to_dict", None)
    found: Any = config
    if callable(to_dict):
        found = to_dict()
    elif not isinstance(config, (type, torch.nn.Module, Mapping)):
        found = cast(Any, getattr(config, "__dict__", None))
    if not isinstance(found, Mapping):
        return {}
    return {str(key): value for key, value in cast("Mapping[Any, Any]", found).items()}
