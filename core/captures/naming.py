"""Match tensors to the queries and keys of layers by name."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from .files import quoted

Axes = tuple[str, ...]
HEADS_FIRST: Axes = ("batch", "head", "token", "d_k")
TOKENS_FIRST: Axes = ("batch", "token", "head", "d_k")

ACCEPTED = (
    "layers.N.attn.q/k, …self_attn.q_proj/k_proj, encoder.layer.N…query/key, blocks.N.attn.hook_q/k, "
    "Qcur-N/Kcur-N, q.N/k.N, q/k, Q/K, query/key"
)


@dataclass(frozen=True)
class Words:
    """The last words of a pair's names, and what they imply about the axes."""

    q: str
    k: str
    axes: Axes | None = None
    maker: str = ""  # the software with this axis order
    projection: bool = False  # the output of a linear layer, [batch, token, head·d_k] if it has three axes


# A layer's first complete pair is used, so names for tensors after rotary embedding and QK-norm precede names for
# tensors that may be captured before them.
WORDS = (
    Words("hook_rot_q", "hook_rot_k", TOKENS_FIRST, "TransformerLens"),
    Words("q", "k"),
    Words("Q", "K"),
    Words("hook_q", "hook_k", TOKENS_FIRST, "TransformerLens"),
    Words("Qcur", "Kcur", TOKENS_FIRST, "llama.cpp"),
    Words("query", "key", projection=True),
    Words("q_proj", "k_proj", projection=True),
)
_PARTNERS = {word: other for words in WORDS for word, other in ((words.q, words.k), (words.k, words.q))}
_MASKS = ("mask", "attn_mask", "attention_mask")

_ENDING = re.compile(rf"(?P<before>(?:.*\.)?)(?P<word>{'|'.join(_PARTNERS)})(?P<after>)", re.DOTALL)
_NUMBERED = re.compile(rf"(?P<before>)(?P<word>{'|'.join(_PARTNERS)})(?P<after>[.-]\d{{1,9}})")
_LAYER = re.compile(r"(?:^|\.)(?:layers?|blocks?|h)\.(\d{1,9})\.")
_NUMBER = re.compile(r"(?:^|\.)(\d{1,9})\.")


@dataclass(frozen=True)
class Pair:
    """The names of one layer's queries, keys and, if any, mask."""

    index: int
    label: str  # the layer's name: the part the names share
    words: Words
    q: str
    k: str
    mask: str | None
    inside: bool  # whether the names include a module


def partner(name: str) -> str | None:
    """Return the name of the keys for this tensor of queries, or the reverse; None for any other name."""
    match = _match(name)
    return match and match["before"] + _PARTNERS[match["word"]] + match["after"]


def masks_beside(name: str) -> tuple[str, ...]:
    """Return the possible names of a mask for this tensor of queries or keys."""
    match = _match(name)
    return tuple(match["before"] + mask + match["after"] for mask in _MASKS) if match else ()


def pairs(names: Collection[str]) -> tuple[list[Pair], list[str]]:
    """Return the pairs among these names, sorted by layer, and a note for each tensor without its partner."""
    known = set(names)
    layers: dict[tuple[str, str], dict[str, str]] = {}
    for name in sorted(known):
        if match := _match(name):
            layers.setdefault((match["before"], match["after"]), {})[match["word"]] = name
    found: list[Pair] = []
    notes: list[str] = []
    for (before, after), found_words in layers.items():
        words = next((w for w in WORDS if w.q in found_words and w.k in found_words), None)
        halves = [w for w in WORDS if (w.q in found_words) != (w.k in found_words)]
        for half in halves:
            name = found_words.get(half.q) or found_words[half.k]
            notes.append(f"{quoted(name)} is ignored: there is no {quoted(partner(name))}")
        if words is None:
            continue
        q = found_words[words.q]
        beside = masks_beside(q) if before or after else ()  # a mask without a prefix applies to all layers
        mask = next((mask for mask in beside if mask in known), None)
        index = _index(before, after)
        label = before.rstrip(".") or f"layer {index}"
        found.append(Pair(index, label, words, q, found_words[words.k], mask, bool(before)))
    return sorted(found, key=lambda pair: (pair.index, pair.label)), notes


def shared_mask(names: Collection[str]) -> str | None:
    """Return the name of the mask for all layers, if any."""
    return next((mask for mask in _MASKS if mask in names), None)


def _match(name: str) -> re.Match[str] | None:
    return _ENDING.fullmatch(name) or _NUMBERED.fullmatch(name)


def _index(before: str, after: str) -> int:
    """Return the layer's number: the one after a word for layers, else the first number, else 0."""
    if after:
        return int(after[1:])
    match = _LAYER.search(before) or _NUMBER.search(before)
    return int(match[1]) if match else 0
