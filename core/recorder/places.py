"""Where the program is: the modules whose forward pass is running, their names and what they say of their heads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from .files.document import Program
from .layers.kinds import is_symbolic
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
        if isinstance(each, torch.Tensor) and each.dim() > 1:
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


@dataclass
class _Place:
    module: torch.nn.Module
    batch: int | None  # of its input
    real: bool  # whether it computes numbers
    seen: bool = False  # whether attention was seen inside


class Places:
    """The modules around an operation, the outermost first."""

    def __init__(self, unseen: Callable[[Site], None]) -> None:
        self.unseen = unseen  # called with a module that should have attention inside, in which none was seen
        self.stack: list[_Place] = []
        self._names: dict[int, str] = {}

    def clear(self) -> None:
        """Forget the modules of a pass."""
        self.stack.clear()

    def enter(self, module: torch.nn.Module, inputs: object = ()) -> None:
        """Note that a module's forward pass begins, on these inputs; the first one names the others."""
        if not self.stack:
            self._names = {id(each): name for name, each in unwrapped(module).named_modules()}
        self.stack.append(_Place(module, _batch_of(inputs), not any(map(is_symbolic, _several(inputs)))))

    def leave(self, module: torch.nn.Module, finished: bool = True) -> bool:
        """Note that a module ended, without an error if `finished`; return whether it was the outermost."""
        while self.stack:
            last = self.stack.pop()
            kind = type(last.module).__name__
            if not last.seen and finished and last.real and _ATTENTION.search(kind):
                self.unseen(Site(self._name(last) or kind))
                last.seen = True
            if last.seen and self.stack:
                self.stack[-1].seen = True
            if last.module is module:
                break
        return not self.stack

    def site(self) -> Site:
        """Return where the program sees attention."""
        if self.stack:
            self.stack[-1].seen = True
        name = next((found for found in map(self._name, reversed(self.stack)) if found), "")
        batch = next((place.batch for place in self.stack if place.batch is not None), None)
        return Site(name or self._outermost(), tuple(dict.fromkeys(self._head_counts())), batch)

    def _name(self, place: _Place) -> str:
        return self._names.get(id(place.module), "")

    def _outermost(self) -> str:
        return type(unwrapped(self.stack[0].module)).__name__ if self.stack else "attention"

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
