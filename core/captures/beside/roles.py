"""Match the tensors beside queries and keys to layers, by name: masks, biases, sinks, scales, …

A tensor that changes attention and is not understood is never ignored: the layers it may belong to are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ...message import message
from ..capture import Meaning
from ..files import quoted
from ..naming import WORDS, Pair

# The names of each role, in order of preference. A layer's tensor has the prefix or the number of its queries; one
# without either belongs to every layer that has none.
ROLES: dict[str, tuple[str, ...]] = {
    "mask": ("mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "memory_mask"),
    "causal_mask": ("causal_mask",),
    "padding": (
        *("key_padding_mask", "padding_mask"),
        *("src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"),
    ),
    "key_mask": ("key_mask", "kv_mask"),
    "query_mask": ("query_mask", "q_mask"),
    "bias": ("bias", "attn_bias", "attention_bias", "position_bias", "relative_position_bias", "alibi"),
    "slopes": ("alibi_slopes", "slopes"),
    "sinks": ("sinks", "attn_sinks", "sink"),
    "scales": ("scale", "scales", "head_scales"),
    "rows": ("rows",),
    "v": ("v", "V", "hook_v", "Vcur", "value", "v_proj"),
    "o": ("o", "out", "output", "hook_z", "z"),
    "lse": ("lse", "logsumexp", "softmax_lse"),
    "weights": ("weights", "attn_weights", "hook_pattern", "pattern", "kq_soft_max"),
}
MASKS = ("mask", "causal_mask", "padding", "key_mask", "query_mask")  # roles of masks, all of which are applied
SHARED = (*MASKS, "bias", "slopes", "sinks", "scales", "rows")  # roles of tensors that may belong to all layers
EVIDENCE = ("v", "o", "lse", "weights")  # roles of tensors that do not change the logits

# Masks whose values have to tell what True means: both are common under their names.
_BY_VALUES = ("attn_mask", "src_mask", "tgt_mask", "memory_mask", "causal_mask")
# The modules whose queries and keys are of different texts.
CROSS = ("cross_attn", "crossattention", "cross_attention", "encoder_attn", "encdecattention", "multihead_attn")

# Words in the names of tensors and metadata that change attention.
_CHANGES = {
    *("bias", "biases", "mask", "masks", "alibi", "slope", "slopes", "sink", "sinks", "scale", "scales", "scaling"),
    *("temperature", "temperatures", "window", "softcap", "softcapping", "cap", "relative", "rel", "decay"),
    *("forget", "lambda", "dropout", "prescale", "prescaled", "multiplier", "scalar", "chunk", "segments", "packed"),
    *("tau", "gain", "descale", "rpb", "rpe", "seqlens", "segment", "rows", "causal", "capping", "masked", "windows"),
}  # fmt: skip
_EVERYWHERE = {"relative", "rel", "position", "positions", "pos", "alibi"}  # often stored once, for all layers
# Modules whose parameters have been applied before attention, or are applied after it.
_OUTSIDE = re.compile(
    r"(?:^|[._])(?:mlp|ffn|feed_forward|fc\d*|[a-z_]*norm\d*|ln_?\w*|embed\w*|lm_head|[a-z_]*proj|dense|qkv|c_attn"
    r"|query|key|value|[qkvo])\."
    r"|(?:^|[._])(?:(?:in|out)_proj|[qkv]|qkv|in|out)_bias$|(?:^|\.)[vo]_scale$|(?:^|[._])rope_scaling$|logits_scaling$",
    re.IGNORECASE,
)
_PARTS = {word for words in WORDS for word in words.rotary or ()}  # of queries and keys: never to be left out


@dataclass(frozen=True)
class Found:
    """The tensors of one layer by role, and why the layer is refused, if it is."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    shared: frozenset[str] = frozenset()  # the roles whose tensor belongs to every layer without its own
    refusal: str = ""


def changes_attention(name: str) -> bool:
    """Return whether a tensor or a metadata key of this name may change attention."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return name.rpartition(".")[2] in _PARTS or (not _CHANGES.isdisjoint(words) and not _OUTSIDE.search(name))


def find_roles(pair: Pair, names: Collection[str]) -> Found:
    """Return the tensors of a layer by role; its refusal names two tensors of one role."""
    roles: dict[str, str] = {}
    shared: set[str] = set()
    refusal = ""
    for role, words in ROLES.items():
        own = [name for name in map(pair.named, words) if name in names]
        if not own and role in SHARED and (pair.before or pair.after):
            own = [word for word in words if word in names and _is_for(word, pair)]
            shared |= {role} if own else set()
        if len(own) > 1 and role not in ("mask", *EVIDENCE):
            refusal = message(
                "{quoted} and {quoted2} are both there; keep one of them",
                quoted=quoted(own[0]),
                quoted2=quoted(own[1]),
            )
        if own:
            roles[role] = own[0]
    return Found(roles, frozenset(shared), refusal)


def _is_for(word: str, pair: Pair) -> bool:
    """Return whether a tensor of nn.Transformer that all layers may share is for this one, by its module."""
    module = pair.before.lower()
    cross = any(other in module for other in CROSS)
    if word.startswith("memory_"):
        return cross
    if word.startswith("src_"):
        return not cross and "decoder" not in module
    return not (word.startswith("tgt_") and (cross or "encoder" in module))


def meaning_of(word: str, floats: bool) -> Meaning | None:
    """Return what True means in a mask of this name; None if its values have to tell.

    Masks of padding keys mean hidden, as in nn.MultiheadAttention, unless they are numbers.
    """
    if word in ROLES["padding"]:
        return None if floats else "hidden"
    return None if word in _BY_VALUES else "visible"


class Unknown:
    """Unused tensors, by the layers that they may belong to: a layer's own, and those of no layer in particular."""

    def __init__(self, unused: Iterable[str]) -> None:
        self._changing: dict[str, list[str]] = {}  # those that may change attention, by prefix, suffix, or neither
        self._modules: dict[str, list[str]] = {}  # all, by module or suffix
        for name in unused:
            module, dot, _ = name.rpartition(".")
            suffix = _SUFFIX.search(name)
            for place in (module + dot, suffix[0] if suffix else ""):
                self._modules.setdefault(place, []).append(name)
            if not changes_attention(name):
                continue
            parts = name.split(".")
            places = {".".join(parts[:count]) + "." for count in range(1, min(len(parts), _DEEPEST + 1))} | {"."}
            if len(parts) > _DEEPEST or not _EVERYWHERE.isdisjoint(re.split(r"[^a-z]+", name.lower())):
                places = {_ALL}
            else:
                places |= {message("numbered {suffix}", suffix=suffix[0]) if suffix else "numbered"}
                places |= set() if re.search(r"(?:^|\.)\d+\.", name) else {"no layer"}
            for place in places:
                self._changing.setdefault(place, []).append(name)

    def change(self, pair: Pair) -> str:
        """Return why a layer is refused for a tensor that may change its attention; empty if there is none."""
        places = (
            ["numbered", message("numbered {after}", after=pair.after)]
            if pair.after
            else ["no layer", pair.root or "."]
        )
        names = [self._changing[place][0] for place in (_ALL, *places) if place in self._changing]
        return (
            message("tensor {quoted} may change attention, and attn-tui does not know it", quoted=quoted(min(names)))
            if names
            else ""
        )

    def beside(self, pair: Pair) -> list[str]:
        """Return the tensors of the layer's module, or with its number."""
        return self._modules.get(pair.after or pair.before, [])


_SUFFIX = re.compile(r"[.-]\d+$")
_ALL = "all layers"
_DEEPEST = 32  # parts of a name; one with more may belong to any layer
