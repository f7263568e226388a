"""Match tensors of queries and keys to layers by name.

WORDS are the names of usual tools. Where a file has none of them, two names are a pair if they differ only in a word
for queries and a word for keys, such as `to_q` and `to_k`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..message import message, quoted
from .files import CaptureError

Axes = tuple[str, ...]
HEADS_FIRST: Axes = ("batch", "head", "token", "d_k")
TOKENS_FIRST: Axes = ("batch", "token", "head", "d_k")

ACCEPTED = message("like layers.0.attn.q and layers.0.attn.k, or chosen with --tensor 'q=NAME,k=NAME'")


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
    *(Words(f"{q}_{at}", f"{k}_{at}") for q, k in ("qk", ("query", "key")) for at in ("after_rope", "post_rope")),
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
_LAYER = re.compile(r"(?:^|[./])(?:layers?|blocks?|h)[._/](\d{1,9})[./]")
_NUMBER = re.compile(r"(?:^|\.)(\d{1,9})\.")

# Words for queries in any name, with those for keys and values in their place.
_ANY = {
    "q": "kv", "xq": ("xk", "xv"), "wq": ("wk", "wv"), "query": ("key", "value"), "queries": ("keys", "values"),
    "qs": ("ks", "vs"),
}  # fmt: skip
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d{1,9}")  # of a name: a word or a number
# Other words that make names those of something else: parameters, sizes, positions, halves of q and k, …
_ELSE = {
    *("weight", "weights", "bias", "kernel", "scale", "scales", "descale", "mask", "masks", "pos", "norms"),
    *("position", "positions", "id", "ids", "idx", "index", "indices", "len", "lens", "length", "lengths", "seqlen"),
    *("seqlens", "start", "offset", "grad", "nope", "pe", "rope", "rot", "pass", "lora", "cache", "map", "dim"),
    *("size", "std", "mean", "cu", "max", "min", "num", "rel", "amax", "zero", "point", "points", "stride"),
    *("before", "pre"),
}  # fmt: skip
# Words of the outputs of linear layers, whose heads are side by side.
_LINEAR = {"proj", "w", "wq", "to", "query", "queries", "linear", "lin", "dense", "fc", "matmul"}
_NUMBERS_OF = {"layer", "layers", "block", "blocks", "h", "l", "encoderblock"}  # what a layer is called


@dataclass(frozen=True)
class NamePair:
    """The names of one layer's queries and keys."""

    index: int
    label: str  # the layer's name: the part the names share
    words: Words
    before: str  # what precedes the words
    after: str  # what follows them
    given: Mapping[str, str] = field(default_factory=lambda: MappingProxyType[str, str]({}))  # names of q, k, v, …
    said: str = ""  # the note that says how they were recognised

    @property
    def q(self) -> str:
        return self.given.get("q") or self.named(self.words.q)

    @property
    def k(self) -> str:
        return self.given.get("k") or self.named(self.words.k)

    @property
    def rotary(self) -> tuple[str, str] | None:
        """The names of the queries' and keys' further components, if any."""
        words = self.words.rotary
        return words and (self.named(words[0]), self.named(words[1]))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its tensors."""
        return (self.q, self.k, *(self.rotary or ()))

    @property
    def inside(self) -> bool:
        """Whether the names include a module."""
        return bool(self.before)

    @property
    def numbered(self) -> bool:
        """Whether the names tell the layer's number."""
        return bool(self.after or _number(self.before) or _number_in(self.given.get("q", "")) is not None)

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


def companions(name: str, words: Iterable[str]) -> tuple[str, ...]:
    """Return the names of tensors with these words that belong to this tensor of queries or keys."""
    match = _match(name)
    return tuple(match["before"] + word + match["after"] for word in words) if match else ()


def pairs(names: Collection[str]) -> tuple[list[NamePair], list[str]]:
    """Return the pairs among these names, sorted by layer, and a note for each tensor without its partner.

    Raise CaptureError if a layer has several pairs of names that are not those of WORDS.
    """
    layers: dict[tuple[str, str], list[str]] = {}
    for name in sorted(names):
        if match := _match(name):
            layers.setdefault((match["before"], match["after"]), []).append(match["word"])
    known: list[NamePair] = []
    notes: list[str] = []
    for (before, after), there in layers.items():
        words = next((w for w in WORDS if all(word in there for word in w.all)), None)
        for word in there:
            missing = [other for w in WORDS if word in w.all for other in w.all if other not in there]
            if missing and (words is None or word not in words.all):
                name, other = quoted(before + word + after), quoted(before + missing[0] + after)
                notes.append(message("{name} is ignored: there is no {missing}", name=name, missing=other))
        if words is not None:
            index = _index(before, after)
            label = before.rstrip(".") or message("layer {index}", index=index)
            known.append(NamePair(index, label, words, before, after))
    return sorted(known or _similar(names), key=lambda pair: (pair.index, pair.label)), notes


def chosen_pairs(names: Collection[str], text: str) -> list[NamePair]:
    """Return the pairs that a text such as "q=h.*.foo,k=h.*.bar" chooses; `*` stands for the number of a layer.

    Raise CaptureError if the text is not accepted, or no tensors have these names.
    """
    split = (part.partition("=") for part in text.split(","))
    chosen = {side.strip(): name.strip() for side, _, name in split}
    if not {"q", "k"} <= chosen.keys() <= {"q", "k", "v"} or not all(chosen.values()):
        raise CaptureError(
            "--tensor: must be q=NAME,k=NAME, with * for the layer's number, not {text}", text=quoted(text)
        )
    pattern = re.compile(re.escape(chosen["q"]).replace(r"\*", r"(\d{1,9})", 1).replace(r"\*", r"\d{1,9}"), re.DOTALL)
    pairs: list[NamePair] = []
    for q in sorted(names):
        if (match := pattern.fullmatch(q)) is None:
            continue
        number = match[1] if match.groups() else ""
        given = {side: name.replace("*", number) for side, name in chosen.items()} | {"q": q}
        if missing := [name for name in given.values() if name not in names]:
            raise CaptureError("--tensor: the file has no tensor {name}", name=quoted(missing[0]))
        pairs.append(_pair(given, int(number) if number else _number_in(q) or 0, False, ""))
    if not pairs:
        raise CaptureError("--tensor: the file has no tensor {name}", name=quoted(chosen["q"]))
    return sorted(pairs, key=lambda pair: pair.index)


def _pair(given: Mapping[str, str], index: int, linear: bool, said: str) -> NamePair:
    """Return the pair of tensors with any names; their module is what the names share."""
    q, k = given["q"], given["k"]
    same = next((at for at, (a, b) in enumerate(zip(q, k, strict=False)) if a != b), 0)
    start = max(q.rfind(mark, 0, same) for mark in "./:") + 1
    label = q[:start].rstrip("./:") or message("layer {index}", index=index)
    return NamePair(index, label, Words(q[start:], k[start:], projection=linear), q[:start], "", given, said)


def _similar(names: Collection[str]) -> list[NamePair]:
    """Return the pairs of names that differ only in a word for queries and a word for keys."""
    there = frozenset(names)
    layers: dict[tuple[int, str], list[NamePair]] = {}
    for name in sorted(there):
        for part in reversed([*_PART.finditer(name)]):
            words = _ANY.get(part[0].lower(), "")
            k, v = (name[: part.start()] + _cased(word, part[0]) + name[part.end() :] for word in words or ("", ""))
            if not words or k not in there:
                continue
            start = max(name.rfind(mark, 0, part.start()) for mark in "./:") + 1  # of the module's tensors
            around = {match[0].lower() for match in _PART.finditer(name, start)}
            if _ELSE.isdisjoint(around):
                index = _number_in(name) or 0
                linear = not _LINEAR.isdisjoint(around) and name[start:].lower() != "query_states"
                given = {"q": name, "k": k, **({"v": v} if v in there else {})}
                said = message(
                    "{q} and {k} are read as queries and keys, by their names", q=quoted(name), k=quoted(k)
                )
                layers.setdefault((index, name[:start]), []).append(_pair(given, index, linear, said))
            break
    for (index, _), several in layers.items():
        if len(several) > 1:
            raise CaptureError(
                "layer {index} has several pairs of queries and keys, such as {one} and {other}; keep one of them, "
                "or choose it with --tensor 'q=NAME,k=NAME'",
                index=index,
                one=quoted(several[0].q),
                other=quoted(several[1].q),
            )
    return [pair for several in layers.values() for pair in several]


def _cased(word: str, like: str) -> str:
    """Return a word in capitals, or with a capital, as another one."""
    return word.upper() if like.isupper() else word.capitalize() if like[0].isupper() else word


def _number_in(name: str) -> int | None:
    """Return the number of a layer in any name: that after a word for layers, else the first; None without any."""
    parts = [match[0].lower() for match in _PART.finditer(name)]
    numbers = [at for at, part in enumerate(parts) if part.isdigit()]
    of_layers = [at for at in numbers if at and parts[at - 1] in _NUMBERS_OF]
    return int(parts[(of_layers or numbers)[0]]) if numbers else None


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
