"""Match the tensors beside queries and keys to layers, by name: masks, biases, sinks, scales, …"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ...message import message
from ...plain import quoted
from ..capture import Meaning
from ..naming import Pair

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
# Names of biases that are of positions alone: other layers of a model have them too.
OF_POSITIONS = ("position_bias", "relative_position_bias", "alibi", "alibi_slopes", "slopes")
EVIDENCE = ("v", "o", "lse", "weights")  # roles of tensors that do not change the logits

# Masks whose values have to tell what True means: both are common under their names.
_BY_VALUES = ("attn_mask", "src_mask", "tgt_mask", "memory_mask", "causal_mask")
# Modules whose queries and keys are of different texts: BART's encoder_attn, ESPnet's src_attn, diffusers' attn2, …
_CROSS = re.compile(
    r"cross_?att|(?:^|[._])cross(?:[._]|$)|encoder_attn|enc_?dec_?att|(?:^|[._])(?:enc|src|context|x)_?attn\b"
    r"|multihead_attn|transformer_blocks\.\d+\.attn2\b"
)


@dataclass(frozen=True)
class Found:
    """The tensors of one layer by role, and why the layer is refused, if it is."""

    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    shared: frozenset[str] = frozenset()  # the roles whose tensor belongs to every layer without its own
    refusal: str = ""


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
                "{one} and {other} are both there; keep one of them",
                one=quoted(own[0]),
                other=quoted(own[1]),
            )
        if own:
            roles[role] = own[0]
    return Found(roles, frozenset(shared), refusal)


def _is_for(word: str, pair: Pair) -> bool:
    """Return whether a tensor that all layers may share is for this one, by its module: nn.Transformer's masks, and
    biases of relative positions, which T5 adds in self-attention only."""
    module = pair.before.lower()
    cross = is_cross(module)
    if cross and word in OF_POSITIONS:
        return False
    if word.startswith("memory_"):
        return cross
    if word.startswith("src_"):
        return not cross and "decoder" not in module
    return not (word.startswith("tgt_") and (cross or "encoder" in module))


def is_cross(modules: str) -> bool:
    """Return whether modules of these names, in lower case, have queries and keys of different texts."""
    return bool(_CROSS.search(modules))


def meaning_of(word: str, kind: str) -> Meaning | None:
    """Return what True means in a mask of this name, of booleans b, integers i or u, or floats f; None if its values
    have to tell.

    Masks of padding keys mean hidden, as in nn.MultiheadAttention, unless they are numbers, or integers in the
    padding_mask of Keras, where 1 is visible.
    """
    if word in ROLES["padding"]:
        return None if kind == "f" or (kind != "b" and word == "padding_mask") else "hidden"
    return None if word in _BY_VALUES else "visible"
