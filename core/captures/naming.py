"""Match tensors of queries and keys to layers by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ..message import message
from ..plain import quoted

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
    rotary: tuple[str, str] | None = None  # the words of further components, which follow those of q and k

    @property
    def all(self) -> tuple[str, ...]:
        """All words, those of q and k first."""
        return (self.q, self.k, *(self.rotary or ()))


# A layer's first complete pair is used, so names for tensors after rotary embedding and QK-norm precede names for
# tensors that may be captured before them.
WORDS = (
    Words("hook_rot_q", "hook_rot_k", TOKENS_FIRST, "TransformerLens"),
    Words("q", "k"),
    Words("Q", "K"),
    Words("q_nope", "k_nope", rotary=("q_pe", "k_pe")),
    Words("q_nope", "k_nope", rotary=("q_rope", "k_rope")),
    Words("q_pass", "k_pass", rotary=("q_rot", "k_rot")),
    Words("hook_q", "hook_k", TOKENS_FIRST, "TransformerLens"),
    Words("Qcur", "Kcur", TOKENS_FIRST, "llama.cpp"),
    Words("query", "key", projection=True),
    Words("q_proj", "k_proj", projection=True),
)
_PARTNERS = {
    word: other
    for words in WORDS
    for q, k in ((words.q, words.k), words.rotary or (words.q, words.k))
    for word, other in ((q, k), (k, q))
}

_ENDING = re.compile(rf"(?P<before>(?:.*\.)?)(?P<word>{'|'.join(_PARTNERS)})(?P<after>)", re.DOTALL)
_NUMBERED = re.compile(rf"(?P<before>)(?P<word>{'|'.join(_PARTNERS)})(?P<after>[.-]\d{{1,9}})")
_LAYER = re.compile(r"(?:^|\.)(?:layers?|blocks?|h)\.(\d{1,9})\.")
_NUMBER = re.compile(r"(?:^|\.)(\d{1,9})\.")


@dataclass(frozen=True)
class Pair:
    """The names of one layer's queries and keys."""

    index: int
    label: str  # the layer's name: the part the names share
    words: Words
    before: str  # what precedes the words
    after: str  # what follows them

    @property
    def q(self) -> str:
        return self.named(self.words.q)

    @property
    def k(self) -> str:
        return self.named(self.words.k)

    @property
    def rotary(self) -> tuple[str, str] | None:
        """The names of the queries' and keys' further components, if any."""
        found = self.words.rotary
        return found and (self.named(found[0]), self.named(found[1]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its tensors."""
        return tuple(map(self.named, self.words.all))

    @property
    def inside(self) -> bool:
        """Whether the names include a module."""
        return bool(self.before)

    @property
    def numbered(self) -> bool:
        """Whether the names tell the layer's number."""
        return bool(self.after or _number(self.before))

    @property
    def root(self) -> str:
        """The start of the names of this layer's tensors, up to its number."""
        match = _number(self.before)
        return self.before[: match.end()] if match else self.before

    def named(self, word: str) -> str:
        """Return the name of a tensor of this layer."""
        return self.before + word + self.after

    def word(self, name: str) -> str:
        """Return the last word of the name of a tensor, of this layer or without one."""
        return name.removeprefix(self.before).removesuffix(self.after).rpartition(".")[2]


def partner(name: str) -> str | None:
    """Return the name of the keys for this tensor of queries, or the reverse; None for any other name."""
    match = _match(name)
    return match and match["before"] + _PARTNERS[match["word"]] + match["after"]


def beside(name: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the names of tensors with these words that belong to this tensor of queries or keys."""
    match = _match(name)
    return tuple(match["before"] + word + match["after"] for word in words) if match else ()


def pairs(names: Collection[str]) -> tuple[list[Pair], list[str]]:
    """Return the pairs among these names, sorted by layer, and a note for each tensor without its partner."""
    layers: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names):
        if match := _match(name):
            layers.setdefault((match["before"], match["after"]), []).append(match["word"])
    found: list[Pair] = []
    notes: list[str] = []
    for (before, after), there in layers.items():
        words = next((w for w in WORDS if all(word in there for word in w.all)), None)
        for word in there:
            missing = [other for w in WORDS if word in w.all for other in w.all if other not in there]
            if missing and (words is None or word not in words.all):
                name = quoted(before + word + after)
                notes.append(
                    message(
                        "{name} is ignored: there is no {missing}",
                        name=name,
                        missing=quoted(before + missing[0] + after),
                    )
                )
        if words is not None:
            index = _index(before, after)
            found.append(
                Pair(index, before.rstrip(".") or message("layer {index}", index=index), words, before, after)
            )
    return sorted(found, key=lambda pair: (pair.index, pair.label)), notes


def _match(name: str) -> re.Match[str] | None:
    return _ENDING.fullmatch(name) or _NUMBERED.fullmatch(name)


def _index(before: str, after: str) -> int:
    """Return the layer's number: the one after a word for layers, else the first number, else 0."""
    if after:
        return int(after[1:])
    match = _number(before)
    return int(match[1]) if match else 0


def _number(before: str) -> re.Match[str] | None:
    return _LAYER.search(before) or _NUMBER.search(before)
